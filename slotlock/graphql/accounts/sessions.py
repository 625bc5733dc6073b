"""Sessions as their users see them: list them, end them, and change the credentials."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, email_verification, sessions
from slotlock.auth.accounts import throttle_login
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.ids import session_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.outcomes import Result, ResultView, register_type
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.user_queries import User

NEW_PASSWORD = (
    "The new password, 8 to 128 characters. "  # noqa: S105
    "It must not be common, a simple pattern, or contain the name, the e-mail address or the "
    "user name of the user."
)
END_CALENDAR_FEED = (
    "Whether the private calendar feed of the user ends, too. By default the calendars that "
    "subscribed to it continue."
)
RETAIN_SIGN_INS = (
    "Whether the sign-ins at providers stay that sessions of the user linked (`linkSignIn`) within "
    "30 days. By default they end: somebody else may have linked them."
)


@strawberry.type(
    description="The mail with a code that verifies the address of an account which was registered."
)
class VerificationMail:
    is_on_its_way: bool = field(
        description="Whether the mail was queued. If not, the user requests it again "
        "(`requestEmailVerification`)."
    )
    due_at: datetime | None = field(description=f"{email_verification.DUE_AT} Null without a mail.")
    retry_after_ms: int | None = field(
        description="How long to wait before the user requests the mail again, in milliseconds. "
        "Null if it is on its way, or if the site sends no mail."
    )

    @classmethod
    def from_domain(cls, mail: sessions.VerificationMail) -> Self:
        return cls(
            is_on_its_way=mail.due_at is not None,
            due_at=mail.due_at,
            retry_after_ms=mail.retry_after_ms,
        )


@strawberry.type(description="The tokens of a user who has just signed in or refreshed a session.")
class Session:
    access_token: str = field(
        description="The token for the Authorization header, after `Bearer `."
    )
    refresh_token: str = field(
        description="The secret that `refreshSession` exchanges for new tokens, once and within 30 "
        "days."
    )
    expires_at: datetime = field(
        description="When the access token expires: 15 minutes after it was issued."
    )
    user: User = field(description="The user who is signed in.")
    verification_mail: VerificationMail | None = field(
        description="The mail to the address of the new account. Null unless this is the response "
        "to `register` on a site that requires verified addresses."
    )

    @classmethod
    def from_domain(cls, session: sessions.SignedInSession) -> Self:
        mail = session.verification_mail
        return cls(
            access_token=session.access_token,
            refresh_token=session.refresh_token,
            expires_at=session.expires_at,
            user=User.for_self(session.user),
            verification_mail=VerificationMail.from_domain(mail) if mail else None,
        )


register_type(
    sessions.SignedInSession, Session, lambda outcome, _view: Session.from_domain(outcome)
)


@strawberry.type(description="An open session of the caller.")
class OpenSession(Node):
    created_at: datetime = field(description="When the user signed in.")
    last_used_at: datetime = field(
        description="When the user signed in or last refreshed the session."
    )
    client: str | None = field(
        description="The name that the client program gave itself (its User-Agent header), at most "
        "200 characters. Programs can claim any name."
    )
    current: bool = field(description="Whether this request belongs to the session.")

    @classmethod
    def from_domain(cls, session: sessions.SessionInfo, user_id: UserId) -> Self:
        return cls(
            id=session_global_id(user_id, session.key),
            created_at=session.created_at,
            last_used_at=session.last_used_at,
            client=session.user_agent,
            current=session.current,
        )


END_SESSION = Result[sessions.EndSessionOutcome](
    "EndSessionResult", "The ended session, or a refusal."
)
CHANGE_PASSWORD = Result[accounts.ChangePasswordOutcome](
    "ChangePasswordResult", "The password change, or a refusal."
)


REQUEST_VERIFICATION = Result[email_verification.RequestVerificationOutcome](
    "RequestEmailVerificationResult", "Where the mail goes, or a refusal."
)
CHANGE_EMAIL = Result[email_verification.ChangeEmailOutcome](
    "ChangeEmailResult", "Where the mail goes, or a refusal."
)
VERIFY_EMAIL = Result[email_verification.VerifyEmailOutcome](
    "VerifyEmailResult", "The verified address, or a refusal."
)


@strawberry.input(description="The current and the new password of the caller.")
class ChangePasswordInput:
    current_password: str = field(description="The current password of the caller.")
    new_password: str = field(description=NEW_PASSWORD)
    end_calendar_feed: bool = field(default=False, description=END_CALENDAR_FEED)
    retain_sign_ins: bool = field(default=False, description=RETAIN_SIGN_INS)


ChangePasswordArgument = Annotated[
    ChangePasswordInput, argument(description="The current and the new password.")
]


@strawberry.input(description="The new e-mail address of the caller.")
class ChangeEmailInput:
    new_email: EmailAddress = field(description="The address that gets the mail with a code.")
    current_password: str = field(description="The current password of the caller.")


ChangeEmailArgument = Annotated[
    ChangeEmailInput, argument(description="The new address and the current password.")
]


@strawberry.type
class OwnSessionQueries:
    @field(description="The open sessions of the caller, newest first; at most 100.")
    async def my_sessions(self, info: Info) -> list[OpenSession]:
        caller = info.context.caller
        found = await sessions.list_sessions(info.context.auth, caller)
        return [OpenSession.from_domain(session, caller.user_id) for session in found]


@strawberry.type
class OwnSessionMutations:
    @END_SESSION.mutation(
        "End a session of the caller and revoke all of its tokens immediately. Ending "
        "a session again gives the same result."
    )
    async def end_session(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the session.")],
    ) -> object:
        caller = info.context.caller
        session = ids.parse_session_id(id)
        if session is None or session[0] != caller.user_id:
            return END_SESSION.present(sessions.SessionNotFound(), ResultView(caller))
        await sessions.end_session_by_key(info.context.auth, caller, session[1])
        return END_SESSION.present(sessions.SessionEnded(id), ResultView(caller))

    @field(
        description="End all sessions of the caller except the current one. Returns how many were "
        "ended."
    )
    async def end_other_sessions(self, info: Info) -> int:
        return await sessions.end_other_sessions(info.context.auth, info.context.caller)

    @CHANGE_PASSWORD.mutation(
        "Change the caller's password. All other sessions of the caller end, including "
        "one that is being opened with the old password."
    )
    async def change_password(self, info: Info, input: ChangePasswordArgument) -> object:
        context = info.context
        caller = context.caller
        user = await context.loaders.user(caller.user_id)
        outcome = await throttle_login(
            context.auth,
            user.email if user else None,
            context.client.address,
            lambda _attempt: accounts.change_password(
                context.auth,
                caller,
                input.current_password,
                input.new_password,
                context.client.address,
                end_calendar_feed=input.end_calendar_feed,
                retain_sign_ins=input.retain_sign_ins,
            ),
        )
        return CHANGE_PASSWORD.present(outcome, ResultView(caller))

    @REQUEST_VERIFICATION.mutation(
        "Mail a code to the address of the caller, who verifies the address with it "
        "(`verifyEmail`)."
    )
    async def request_email_verification(self, info: Info) -> object:
        caller = info.context.caller
        outcome = await email_verification.request_email_verification(
            info.context.auth, caller, info.context.client.address
        )
        return REQUEST_VERIFICATION.present(outcome, ResultView(caller))

    @CHANGE_EMAIL.mutation(
        "Mail a code to another address. It becomes the caller's once they send the code back "
        "(`verifyEmail`); a mail to the old address says so."
    )
    async def change_email(self, info: Info, input: ChangeEmailArgument) -> object:
        context, caller = info.context, info.context.caller
        user = await context.loaders.user(caller.user_id)
        outcome = await throttle_login(
            context.auth,
            user.email if user else None,
            context.client.address,
            lambda _attempt: email_verification.change_email(
                context.auth,
                caller,
                input.new_email,
                input.current_password,
                context.client.address,
            ),
        )
        return CHANGE_EMAIL.present(outcome, ResultView(caller))

    @VERIFY_EMAIL.mutation(
        "Verify the address to which the code was mailed, for the account of the caller. A code "
        "works once, for 24 hours."
    )
    async def verify_email(
        self,
        info: Info,
        code: Annotated[str, argument(description="The code in the mail.")],
    ) -> object:
        caller = info.context.caller
        outcome = await email_verification.verify_email(
            info.context.auth, caller, code, info.context.client.address
        )
        return VERIFY_EMAIL.present(outcome, ResultView(caller))
