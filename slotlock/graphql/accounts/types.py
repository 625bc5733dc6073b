"""Being signed in, and the answers of those who are not."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.auth import sessions
from slotlock.auth.accounts import EmailTaken as Taken
from slotlock.auth.accounts import TooManyAttempts as TooMany
from slotlock.graphql.core.refusals import InvalidInput, Refusal, RefusalCode
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.types import User


@strawberry.type(description="A person is signed in.")
class Session:
    access_token: str = field(description="Goes into the Authorization header, after `Bearer `.")
    refresh_token: str = field(
        description="Good once, for the next pair; kept secret, lives 30 days."
    )
    expires_at: datetime = field(description="When the access token ends, 15 minutes from now.")
    user: User = field(description="Who is signed in.")

    @classmethod
    def from_domain(cls, session: sessions.SignedInSession) -> Self:
        return cls(
            access_token=session.access_token,
            refresh_token=session.refresh_token,
            expires_at=session.expires_at,
            user=User.for_self(session.user),
        )


@strawberry.type(description="Somebody registered with this address before.")
class EmailTaken(Refusal):
    email: EmailAddress = field(description="The address.")

    @classmethod
    def from_domain(cls, outcome: Taken) -> Self:
        return cls(
            code=RefusalCode.EMAIL_TAKEN,
            message="This e-mail address has an account already.",
            email=EmailAddress(outcome.email),
        )


@strawberry.type(description="No account has this address and this password.")
class InvalidCredentials(Refusal):
    @classmethod
    def from_domain(cls, message: str = "The e-mail address or the password is wrong.") -> Self:
        return cls(code=RefusalCode.INVALID_CREDENTIALS, message=message)


@strawberry.type(description="The person is who they say, and was banned.")
class Banned(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(
            code=RefusalCode.BANNED,
            message="This account was banned. Please ask an organiser.",
        )


@strawberry.type(
    description="The token of an invitation was used, is too old, gave way to a newer one, or "
    "never was."
)
class InvalidInvitation(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(
            code=RefusalCode.INVALID_INVITATION,
            message="This invitation is not good any more. If you have not set a password, please "
            "ask for a new one.",
        )


@strawberry.type(
    description="Too many attempts to sign in: at this account, from this address, or of everybody "
    "at once."
)
class TooManyAttempts(Refusal):
    retry_after_ms: int = field(description="Asking again is worth it after this many ms.")

    @classmethod
    def from_domain(cls, outcome: TooMany) -> Self:
        return cls(
            code=RefusalCode.TOO_MANY_ATTEMPTS,
            message="There were too many attempts to sign in. Please try again later.",
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(description="The refresh token is no good; the person has to sign in again.")
class InvalidSession(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(code=RefusalCode.INVALID_SESSION, message="Please sign in again.")


RegisterResult = Annotated[
    Session | EmailTaken | InvalidInput | TooManyAttempts,
    strawberry.union("RegisterResult", description="What came of registering."),
]
LoginResult = Annotated[
    Session | InvalidCredentials | Banned | TooManyAttempts,
    strawberry.union("LoginResult", description="What came of signing in."),
]
SetPasswordResult = Annotated[
    Session | InvalidInvitation | Banned | InvalidInput | TooManyAttempts,
    strawberry.union("SetPasswordResult", description="What came of setting a first password."),
]
RefreshResult = Annotated[
    Session | InvalidSession,
    strawberry.union("RefreshResult", description="What came of refreshing a session."),
]
