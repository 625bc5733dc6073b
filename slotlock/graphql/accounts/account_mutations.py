"""Mutations that open, refresh and close sessions: register, log in, set a password by a link."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, TypeVar

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, email_verification, invitations, sessions
from slotlock.auth.accounts import throttle_login, was_rejected_before_hashing
from slotlock.auth.login_throttle import LoginAttempt
from slotlock.graphql.accounts.sessions import END_CALENDAR_FEED, NEW_PASSWORD, RETAIN_SIGN_INS
from slotlock.graphql.context import Context, Info
from slotlock.graphql.core.outcomes import Result, ResultView
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.limits.operation_kinds import OperationKind

Outcome = TypeVar("Outcome")
ANONYMOUS = ResultView(None)

REGISTER = Result[accounts.RegisterOutcome]("RegisterResult", "The first session, or a refusal.")
LOGIN = Result[accounts.LoginOutcome]("LoginResult", "The new session, or a refusal.")
SET_PASSWORD = Result[invitations.SetPasswordOutcome](
    "SetPasswordResult", "The new session, or a refusal."
)
REQUEST_PASSWORD_RESET = Result[invitations.RequestPasswordResetOutcome](
    "RequestPasswordResetResult", "The same for every address, or a refusal."
)
RESET_PASSWORD = Result[invitations.PasswordResetOutcome](
    "ResetPasswordResult", "The new password, or a refusal."
)
REFRESH = Result[sessions.RefreshOutcome]("RefreshResult", "The new tokens, or a refusal.")


@strawberry.input(description="The account to create.")
class RegisterInput:
    name: str = field(
        description="The name of the user, 1 to 100 characters. Organizers and team members see it."
    )
    email: EmailAddress = field(description="The e-mail address to sign in with.")
    password: str = field(description=NEW_PASSWORD)


@strawberry.input(description="The credentials of a user.")
class LoginInput:
    email: EmailAddress = field(
        description="The e-mail address of the account, or its user name (`User.username`)."
    )
    password: str = field(description="The password of the account.")


EndCalendarFeedArgument = Annotated[bool, argument(description=END_CALENDAR_FEED)]
RetainSignInsArgument = Annotated[bool, argument(description=RETAIN_SIGN_INS)]
RegisterArgument = Annotated[RegisterInput, argument(description="The account to create.")]
LoginArgument = Annotated[LoginInput, argument(description="The credentials of the user.")]


@strawberry.type
class AccountMutations:
    @REGISTER.mutation(
        "Create an account with the role MEMBER and sign in. If the site requires verified "
        "addresses, the user gets a mail with a code (`verifyEmail`): see "
        "`Session.verificationMail`."
    )
    async def register(self, info: Info, input: RegisterArgument) -> object:
        context, client = info.context, info.context.client
        outcome = await _throttled_sign_in(
            context,
            input.email,
            lambda _attempt: accounts.register(
                context.auth,
                input.name,
                input.email,
                input.password,
                client.user_agent,
                client.address,
            ),
        )
        if isinstance(outcome, sessions.SignedInSession) and context.site.require_verified_email:
            mail = await email_verification.mail_first_code(
                context.auth, outcome.user, client.address
            )
            outcome = replace(outcome, verification_mail=mail)
        return REGISTER.present(outcome, ANONYMOUS)

    @LOGIN.mutation("Sign in with an e-mail address or a user name, and a password.")
    async def login(self, info: Info, input: LoginArgument) -> object:
        context, client = info.context, info.context.client
        outcome = await _throttled_sign_in(
            context,
            input.email,
            lambda attempt: accounts.login(
                context.auth,
                input.email,
                input.password,
                client.user_agent,
                client.address,
                is_known=attempt.is_known,
            ),
        )
        return LOGIN.present(outcome, ANONYMOUS)

    @SET_PASSWORD.mutation(
        "Set a password with a token, and sign in: the first password of a user who was invited, "
        "or a new one with a reset token of an operator or an admin. A token works once."
    )
    async def set_password(
        self,
        info: Info,
        token: Annotated[str, argument(description="The token of the invitation or of the reset.")],
        password: Annotated[str, argument(description=NEW_PASSWORD)],
        end_calendar_feed: EndCalendarFeedArgument = False,
        retain_sign_ins: RetainSignInsArgument = False,
    ) -> object:
        # The login throttle does not apply: tokens cannot be guessed, and failed attempts would
        # lock out other users of the same address.
        client = info.context.client
        outcome = await invitations.set_password(
            info.context.auth,
            token,
            password,
            client.user_agent,
            client.address,
            end_calendar_feed=end_calendar_feed,
            retain_sign_ins=retain_sign_ins,
        )
        return SET_PASSWORD.present(outcome, ANONYMOUS)

    @REQUEST_PASSWORD_RESET.mutation(
        "Mail a link for a new password to the user with this address. Clients cannot see whether "
        "there is such a user. The old password and the sessions stay valid until `resetPassword`."
    )
    async def request_password_reset(
        self,
        info: Info,
        email: Annotated[
            EmailAddress, argument(description="The e-mail address of an account, or any other.")
        ],
    ) -> object:
        outcome = await invitations.request_password_reset(
            info.context.auth, email, info.context.client.address
        )
        return REQUEST_PASSWORD_RESET.present(outcome, ANONYMOUS)

    @RESET_PASSWORD.mutation(
        "Set a password with a token, as `setPassword` does, without signing in. All sessions of "
        "the user end, and a mail says so."
    )
    async def reset_password(
        self,
        info: Info,
        token: Annotated[str, argument(description="The token of the link.")],
        password: Annotated[str, argument(description=NEW_PASSWORD)],
        end_calendar_feed: EndCalendarFeedArgument = False,
        retain_sign_ins: RetainSignInsArgument = False,
    ) -> object:
        outcome = await invitations.reset_password(
            info.context.auth,
            token,
            password,
            info.context.client.address,
            end_calendar_feed=end_calendar_feed,
            retain_sign_ins=retain_sign_ins,
        )
        return RESET_PASSWORD.present(outcome, ANONYMOUS)

    @REFRESH.mutation(
        "Exchange a refresh token for new tokens. Each refresh token works once. For "
        "30 seconds after the response, one that is sent again returns the same refresh token "
        "again, unless that one was used meanwhile. Any other second use ends the session."
    )
    async def refresh_session(
        self,
        info: Info,
        refresh_token: Annotated[
            str, argument(description="The most recent refresh token of the session.")
        ],
    ) -> object:
        outcome = await sessions.refresh_session(info.context.auth, refresh_token)
        return REFRESH.present(outcome, ANONYMOUS)

    @field(description="End the caller's session and revoke all of its tokens. Returns true.")
    async def logout(self, info: Info) -> bool:
        await sessions.logout(info.context.auth, info.context.caller)
        return True


async def _throttled_sign_in(
    context: Context, login_name: str, sign_in: Callable[[LoginAttempt], Awaitable[Outcome]]
) -> Outcome | accounts.TooManyAttempts:
    """Sign in under the login throttle.

    An attempt that hashed no password is refunded: cheap rejections must not use up the sign-ins of
    everyone behind the same address.
    """
    outcome = await throttle_login(context.auth, login_name, context.client.address, sign_in)
    if was_rejected_before_hashing(outcome):
        await context.refund(OperationKind.SIGN_IN)
    return outcome
