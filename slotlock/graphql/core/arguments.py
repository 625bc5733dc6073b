"""Arguments that several mutations share, and the conversion and validation of inputs."""

from datetime import datetime
from typing import Annotated, TypeVar

import strawberry
from strawberry import UNSET

from slotlock.domain.shared.text import validate_line
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.graphql.core.errors import bad_input

Value = TypeVar("Value")

MAX_WAIT_MS = 20_000
MAX_KEY_LENGTH = 255
# A new booking fails fast by default. A cancellation or a confirmation is worth a short wait.
DEFAULT_WAIT_MS = 5_000

WAIT_DESCRIPTION = (
    "How long the request may wait for other requests on the slot, in milliseconds from 0 to "
    "20000. The result is `Locked` when the time is over. By default, a new booking does not wait, "
    "and other changes wait for 5 s."
)
KEY_DESCRIPTION = (
    "A key that makes retries safe, 1 to 255 characters. Repeated requests with the same key and "
    "the same arguments take effect once and return the same result. The server remembers a key "
    "for at least 24 hours."
)

WaitMsArgument = Annotated[int, strawberry.argument(description=WAIT_DESCRIPTION)]
ReadForArgument = Annotated[
    strawberry.ID | None,
    strawberry.argument(
        name="userId",
        description="Whose, the caller's by default: the response is as that user reads it. Other "
        "users than the caller's dependents lead to FORBIDDEN.",
    ),
]
IdempotencyKeyArgument = Annotated[str | None, strawberry.argument(description=KEY_DESCRIPTION)]


def to_wait_seconds(wait_ms: int) -> float:
    """Convert `waitMs` to seconds. Errors: BAD_USER_INPUT."""
    if not 0 <= wait_ms <= MAX_WAIT_MS:
        raise bad_input("waitMs", f"`waitMs` must be a number from 0 to {MAX_WAIT_MS}.")
    return wait_ms / 1000


def require_valid_key(key: str | None) -> str | None:
    """Return the idempotency key. Errors: BAD_USER_INPUT."""
    if key is not None and (not key or validate_line(key, MAX_KEY_LENGTH)):
        raise bad_input(
            "idempotencyKey",
            f"`idempotencyKey` must be a single line of 1 to {MAX_KEY_LENGTH} characters.",
        )
    return key


def require_valid_period(
    begin_name: str, begin: datetime | None, end_name: str, end: datetime | None
) -> None:
    """Check that a period ends later than it begins. Errors: BAD_USER_INPUT."""
    if begin is not None and end is not None and end <= begin:
        raise bad_input(end_name, f"`{end_name}` must be later than `{begin_name}`.")


def to_change(value: Value | None) -> Value | Unchanged | None:
    """Convert a field of an update that can be null; one that is left out does not change."""
    return UNCHANGED if value is UNSET else value


def to_required_change(field_name: str, value: Value | None) -> Value | Unchanged:
    """Convert a field of an update that cannot be null. Errors: BAD_USER_INPUT."""
    if value is None:
        raise bad_input(field_name, f"`{field_name}` cannot be null.")
    return UNCHANGED if value is UNSET else value
