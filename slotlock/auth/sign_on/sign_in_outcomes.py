"""What starting, finishing and linking a sign-in at a provider can answer."""

from datetime import datetime

from slotlock.auth.accounts import (
    Banned,
    InvalidCredentials,
    RegistrationClosed,
    ServerBusy,
    TooManyAttempts,
)
from slotlock.auth.sessions import SignedInSession
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.email_addresses import EmailAddress
from slotlock.domain.users.user import User


@outcome
class SignInStarted:
    """The provider expects the user at an address."""

    url: str = shown("The address of the provider, to which the client sends the user.")
    state: str = shown("What the provider returns as `state`. Any other one is not of this client.")
    expires_at: datetime = shown("Until when `finishSignIn` is possible.")


@outcome
class SignInLinked:
    """The caller can sign in with the account at the provider, too."""

    user: User = shown("The caller.")


@refusal(message="The sign-in did not succeed. Please try again.")
class SignInFailed:
    """The sign-in has expired, was finished before, or is not valid: start it again.

    The log of the server says why.
    """


@refusal(message="The provider of the sign-in is not available. Please try again later.")
class ProviderUnavailable:
    """The provider did not respond, or not as a provider: start the sign-in again later."""


@refusal(
    message="There is an account with this email address. Please sign in with its password, and "
    "then link it to this sign-in in your account."
)
class LinkRequired:
    """An account has the e-mail address, and the provider does not prove that it is the user's.

    Sign in with its password, start a sign-in again, and finish it with `linkSignIn`.
    """

    email: EmailAddress = shown("The e-mail address in its stored form.")


@refusal(
    message="Please confirm that it is you: with your current password or, if you have none, by "
    "signing out and in again."
)
class ReauthenticationRequired:
    """The caller has to prove again who they are: a session alone is not enough.

    A user with a password sends it. For another one, the session must be at most ten minutes old,
    and a sign-in at a provider must have opened it.
    """


@refusal(message="This sign-in belongs to another account.")
class SignInTaken:
    """Another account has this sign-in: the user must unlink it there first."""


FinishRefusal = SignInFailed | ProviderUnavailable
StartSignInOutcome = SignInStarted | InvalidInput | ProviderUnavailable | ServerBusy
FinishSignInOutcome = (
    SignedInSession
    | SignInFailed
    | ProviderUnavailable
    | LinkRequired
    | RegistrationClosed
    | Banned
    | ServerBusy
)
LinkSignInOutcome = (
    SignInLinked
    | SignInFailed
    | ProviderUnavailable
    | SignInTaken
    | ReauthenticationRequired
    | InvalidCredentials
    | TooManyAttempts
    | ServerBusy
)
