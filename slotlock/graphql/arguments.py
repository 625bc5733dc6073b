"""Arguments that several mutations share, and what they may be."""

from typing import Annotated

import strawberry

from slotlock.domain.texts import line_problem
from slotlock.graphql.errors import Code, RefusedError

MAX_WAIT_MS = 20_000
MAX_KEY = 255
# Booking refuses at once unless asked to wait; to give a place back or to confirm one, people wait.
PATIENT_MS = 5_000

WAIT = "How many ms to wait for one's turn instead of being told `Locked`, 0 to 20000."
KEY = (
    "Sent again with the same arguments, the same key gets the same answer and has one effect; "
    "1 to 255 characters, kept for at least 24 hours."
)

WaitMs = Annotated[int, strawberry.argument(description=WAIT)]
Key = Annotated[str | None, strawberry.argument(description=KEY)]


def checked_wait(wait_ms: int) -> float:
    """The wait in seconds. Errors: BAD_USER_INPUT."""
    if not 0 <= wait_ms <= MAX_WAIT_MS:
        raise RefusedError(Code.BAD_USER_INPUT, f"`waitMs` is a number from 0 to {MAX_WAIT_MS}.")
    return wait_ms / 1000


def checked_key(key: str | None) -> str | None:
    """The key. Errors: BAD_USER_INPUT."""
    if key is not None and (not key or line_problem(key, MAX_KEY)):
        raise RefusedError(
            Code.BAD_USER_INPUT, f"`idempotencyKey` is a line of 1 to {MAX_KEY} characters."
        )
    return key
