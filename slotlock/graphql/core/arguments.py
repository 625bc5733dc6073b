"""Arguments that several mutations share, and what they may be."""

from typing import Annotated

import strawberry

from slotlock.domain.shared.text import validate_line
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError

MAX_WAIT_MS = 20_000
MAX_KEY_LENGTH = 255
# Booking refuses at once unless asked to wait; to give a place back or to confirm one, people wait.
DEFAULT_WAIT_MS = 5_000

WAIT_DESCRIPTION = "How many ms to wait for one's turn instead of being told `Locked`, 0 to 20000."
KEY_DESCRIPTION = (
    "Sent again with the same arguments, the same key gets the same answer and has one effect; "
    "1 to 255 characters, kept for at least 24 hours."
)

WaitMsArgument = Annotated[int, strawberry.argument(description=WAIT_DESCRIPTION)]
IdempotencyKeyArgument = Annotated[str | None, strawberry.argument(description=KEY_DESCRIPTION)]


def to_wait_seconds(wait_ms: int) -> float:
    """The wait in seconds. Errors: BAD_USER_INPUT."""
    if not 0 <= wait_ms <= MAX_WAIT_MS:
        raise GraphQLRequestError(
            ErrorCode.BAD_USER_INPUT, f"`waitMs` is a number from 0 to {MAX_WAIT_MS}."
        )
    return wait_ms / 1000


def require_valid_key(key: str | None) -> str | None:
    """The key. Errors: BAD_USER_INPUT."""
    if key is not None and (not key or validate_line(key, MAX_KEY_LENGTH)):
        raise GraphQLRequestError(
            ErrorCode.BAD_USER_INPUT,
            f"`idempotencyKey` is a line of 1 to {MAX_KEY_LENGTH} characters.",
        )
    return key
