"""Acts that tell whether a password was guessed, each as often as the throttle allows."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from slotlock.auth.accounts import EmailTaken, InvalidCredentials, TooManyAttempts, normalised
from slotlock.auth.auth import Auth
from slotlock.domain.refusals import InvalidInput

Outcome = TypeVar("Outcome")


async def throttled(
    auth: Auth, email: str | None, address: str | None, act: Callable[[], Awaitable[Outcome]]
) -> Outcome | TooManyAttempts:
    """What comes of the act, unless there were too many before it.

    `email`: of whose account, as it was sent, if it names one. `address`: where it comes from.
    """
    attempt = await auth.throttle.attempt(normalised(email or ""), address)
    if attempt.wait_ms:
        return TooManyAttempts(attempt.wait_ms)
    try:
        outcome = await act()
    except BaseException:
        await auth.throttle.withdrawn(attempt)
        raise
    if came_to_nothing(outcome):
        await auth.throttle.withdrawn(attempt)
    elif isinstance(outcome, InvalidCredentials | EmailTaken):
        await auth.throttle.failed(attempt)
    else:
        auth.throttle.succeeded(attempt)
    return outcome


def came_to_nothing(outcome: object) -> bool:
    """Whether it was refused before a password was hashed."""
    match outcome:
        case TooManyAttempts() | InvalidInput() | InvalidCredentials(guessed=False):
            return True
    return False
