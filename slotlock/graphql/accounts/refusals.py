"""Refusals about accounts, passwords and sessions."""

from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.auth import accounts, invitations, sessions
from slotlock.domain.shared import validation
from slotlock.graphql.core.refusals import InvalidInput, Refusal, RefusalCode, RefusalWithoutDetails
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.scalars import EmailAddress


@strawberry.type(description="The e-mail address already has an account.")
class EmailTaken(Refusal):
    email: EmailAddress = field(description="The e-mail address in its stored form.")

    @classmethod
    def from_domain(cls, outcome: accounts.EmailTaken, _view: ResultView) -> Self:
        """Show which address has an account."""
        return cls(
            code=RefusalCode.EMAIL_TAKEN,
            message="This e-mail address already has an account.",
            email=EmailAddress(outcome.email),
        )


@strawberry.type(
    description="Nobody can register on this server (`register`), or even set a first password "
    "with an invitation (`setPassword`)."
)
class RegistrationClosed(RefusalWithoutDetails):
    CODE = RefusalCode.REGISTRATION_CLOSED
    MESSAGE = "Registration is closed. Please ask an organizer."


@strawberry.type(description="No account has this e-mail address and this password.")
class InvalidCredentials(RefusalWithoutDetails):
    CODE = RefusalCode.INVALID_CREDENTIALS
    # It does not reveal which of the two values is wrong.
    MESSAGE = "The e-mail address or the password is wrong."

    @classmethod
    def for_current_password(cls) -> Self:
        """Refuse a password change with a wrong current password."""
        return cls(code=RefusalCode.INVALID_CREDENTIALS, message="Your current password is wrong.")


@strawberry.type(description="The credentials are right, but the account is banned.")
class Banned(RefusalWithoutDetails):
    CODE = RefusalCode.BANNED
    MESSAGE = "Your account is banned. Please contact an organizer."


@strawberry.type(
    description="The invitation token is unknown, expired, already used or replaced by a newer one."
)
class InvalidInvitation(RefusalWithoutDetails):
    CODE = RefusalCode.INVALID_INVITATION
    MESSAGE = (
        "This invitation is no longer valid. If you have not set a password yet, "
        "please ask for a new invitation."
    )


@strawberry.type(
    description="Too many sign-in attempts: for this account, from this address, or in total."
)
class TooManyAttempts(Refusal):
    retry_after_ms: int = field(description="How long to wait before a retry, in milliseconds.")

    @classmethod
    def from_domain(cls, outcome: accounts.TooManyAttempts, _view: ResultView) -> Self:
        """Show when a retry may succeed."""
        return cls(
            code=RefusalCode.TOO_MANY_ATTEMPTS,
            message="There were too many sign-in attempts. Please try again later.",
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(
    description="The refresh token is invalid, or its session has ended. The user must sign in "
    "again."
)
class InvalidSession(RefusalWithoutDetails):
    CODE = RefusalCode.INVALID_SESSION
    MESSAGE = "Your session has ended. Please sign in again."


@strawberry.type(description="The caller has no session of this id.")
class SessionNotFound(RefusalWithoutDetails):
    CODE = RefusalCode.SESSION_NOT_FOUND
    MESSAGE = "You have no such session."


def present_account_refusal(
    refusal: accounts.EmailTaken
    | accounts.RegistrationClosed
    | accounts.InvalidCredentials
    | accounts.Banned
    | accounts.TooManyAttempts
    | invitations.InvalidInvitation
    | sessions.InvalidSession
    | validation.InvalidInput,
    view: ResultView,
) -> Refusal:
    """Show why an account or a session was refused."""
    match refusal:
        case accounts.EmailTaken():
            return EmailTaken.from_domain(refusal, view)
        case accounts.RegistrationClosed():
            return RegistrationClosed.create()
        case accounts.InvalidCredentials():
            return InvalidCredentials.create()
        case accounts.Banned():
            return Banned.create()
        case accounts.TooManyAttempts():
            return TooManyAttempts.from_domain(refusal, view)
        case invitations.InvalidInvitation():
            return InvalidInvitation.create()
        case sessions.InvalidSession():
            return InvalidSession.create()
        case validation.InvalidInput():
            return InvalidInput.from_domain(refusal, view)
        case _:
            assert_never(refusal)
