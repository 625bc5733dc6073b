"""Mutations that open, refresh and close sessions: register, log in, set a first password."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, invitations, sessions
from slotlock.auth.accounts import throttle_login, was_rejected_before_hashing
from slotlock.graphql.accounts.refusals import (
    Banned,
    EmailTaken,
    InvalidCredentials,
    InvalidInvitation,
    InvalidSession,
    RegistrationClosed,
    TooManyAttempts,
    present_account_refusal,
)
from slotlock.graphql.accounts.types import END_CALENDAR_FEED, NEW_PASSWORD, Session
from slotlock.graphql.context import Context, Info
from slotlock.graphql.core.refusals import InvalidInput, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.limits.operation_kinds import OperationKind

Outcome = TypeVar("Outcome")
ANONYMOUS = ResultView(None)

RegisterResult = Annotated[
    Session | RegistrationClosed | EmailTaken | InvalidInput | TooManyAttempts,
    strawberry.union("RegisterResult", description="The first session, or a refusal."),
]
LoginResult = Annotated[
    Session | InvalidCredentials | Banned | TooManyAttempts,
    strawberry.union("LoginResult", description="The new session, or a refusal."),
]
SetPasswordResult = Annotated[
    Session | InvalidInvitation | RegistrationClosed | Banned | InvalidInput | TooManyAttempts,
    strawberry.union("SetPasswordResult", description="The first session, or a refusal."),
]
RefreshResult = Annotated[
    Session | InvalidSession,
    strawberry.union("RefreshResult", description="The new tokens, or a refusal."),
]


@strawberry.input(description="The account to create.")
class RegisterInput:
    name: str = field(
        description="The name of the user, 1 to 100 characters. Organizers and team members see it."
    )
    email: EmailAddress = field(description="The e-mail address to sign in with.")
    password: str = field(description=NEW_PASSWORD)


@strawberry.input(description="The credentials of a user.")
class LoginInput:
    email: EmailAddress = field(description="The e-mail address of the account.")
    password: str = field(description="The password of the account.")


EndCalendarFeedArgument = Annotated[bool, argument(description=END_CALENDAR_FEED)]
RegisterArgument = Annotated[RegisterInput, argument(description="The account to create.")]
LoginArgument = Annotated[LoginInput, argument(description="The credentials of the user.")]


@strawberry.type
class AccountMutations:
    @field(
        description="Create an account with the role MEMBER and sign in.",
        graphql_type=RegisterResult,
    )
    async def register(self, info: Info, input: RegisterArgument) -> Session | Refusal:  # noqa: A002
        context, client = info.context, info.context.client
        outcome = await _throttled_sign_in(
            context,
            input.email,
            lambda: accounts.register(
                context.auth,
                input.name,
                input.email,
                input.password,
                client.user_agent,
                client.address,
            ),
        )
        if isinstance(outcome, sessions.SignedInSession):
            return Session.from_domain(outcome)
        return present_account_refusal(outcome, ANONYMOUS)

    @field(description="Sign in with an e-mail address and a password.", graphql_type=LoginResult)
    async def login(self, info: Info, input: LoginArgument) -> Session | Refusal:  # noqa: A002
        context, client = info.context, info.context.client
        outcome = await _throttled_sign_in(
            context,
            input.email,
            lambda: accounts.login(
                context.auth, input.email, input.password, client.user_agent, client.address
            ),
        )
        if isinstance(outcome, sessions.SignedInSession):
            return Session.from_domain(outcome)
        return present_account_refusal(outcome, ANONYMOUS)

    @field(
        description="Set the first password of an imported user with the token of an invitation, "
        "or a new password with a reset token, and sign in. A token works once.",
        graphql_type=SetPasswordResult,
    )
    async def set_password(
        self,
        info: Info,
        token: Annotated[str, argument(description="The token of the invitation.")],
        password: Annotated[str, argument(description=NEW_PASSWORD)],
        end_calendar_feed: EndCalendarFeedArgument = False,
    ) -> Session | Refusal:
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
        )
        if isinstance(outcome, sessions.SignedInSession):
            return Session.from_domain(outcome)
        return present_account_refusal(outcome, ANONYMOUS)

    @field(
        description="Exchange a refresh token for new tokens. Each refresh token works once. For "
        "30 seconds after the response, one that is sent again returns the same refresh token "
        "again, unless that one was used meanwhile. Any other second use ends the session.",
        graphql_type=RefreshResult,
    )
    async def refresh_session(
        self,
        info: Info,
        refresh_token: Annotated[
            str, argument(description="The most recent refresh token of the session.")
        ],
    ) -> Session | Refusal:
        outcome = await sessions.refresh_session(info.context.auth, refresh_token)
        if isinstance(outcome, sessions.SignedInSession):
            return Session.from_domain(outcome)
        return present_account_refusal(outcome, ANONYMOUS)

    @field(description="End the caller's session and revoke all of its tokens. Returns true.")
    async def logout(self, info: Info) -> bool:
        await sessions.logout(info.context.auth, info.context.caller)
        return True


async def _throttled_sign_in(
    context: Context, email: str, sign_in: Callable[[], Awaitable[Outcome]]
) -> Outcome | accounts.TooManyAttempts:
    """Sign in under the login throttle.

    An attempt that hashed no password is refunded: cheap rejections must not use up the sign-ins of
    everyone behind the same address.
    """
    outcome = await throttle_login(context.auth, email, context.client.address, sign_in)
    if was_rejected_before_hashing(outcome):
        await context.refund(OperationKind.SIGN_IN)
    return outcome
