"""Acts that tell whether a password was guessed, each as often as the throttle allows."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from slotlock.auth.accounts import EmailTaken, InvalidCredentials, TooManyAttempts, normalize_email
from slotlock.auth.auth import Auth
from slotlock.domain.refusals import InvalidInput

Outcome = TypeVar("Outcome")


async def throttle_login(
    auth: Auth,
    email: str | None,
    client_address: str | None,
    action: Callable[[], Awaitable[Outcome]],
) -> Outcome | TooManyAttempts:
    """What comes of the act, unless there were too many before it.

    `email`: of whose account, as it was sent, if it names one. `address`: where it comes from.
    """
    attempt = await auth.login_throttle.start_attempt(normalize_email(email or ""), client_address)
    if attempt.retry_after_ms:
        return TooManyAttempts(attempt.retry_after_ms)
    try:
        outcome = await action()
    except BaseException:
        await auth.login_throttle.refund(attempt)
        raise
    if was_rejected_before_hashing(outcome):
        await auth.login_throttle.refund(attempt)
    elif isinstance(outcome, InvalidCredentials | EmailTaken):
        await auth.login_throttle.record_failure(attempt)
    else:
        auth.login_throttle.record_success(attempt)
    return outcome


def was_rejected_before_hashing(outcome: object) -> bool:
    """Whether it was refused before a password was hashed."""
    match outcome:
        case TooManyAttempts() | InvalidInput() | InvalidCredentials(counts_as_guess=False):
            return True
    return False
