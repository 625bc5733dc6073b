"""Fields of inputs that update something: a field that is left out does not change."""

from typing import TypeVar

from strawberry import UNSET

from slotlock.domain.shared.changes import UNCHANGED, Unchanged
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError

Value = TypeVar("Value")


def to_change(value: Value | None) -> Value | Unchanged | None:
    """Convert a field that can be null."""
    return UNCHANGED if value is UNSET else value


def to_required_change(value: Value | None, null_message: str) -> Value | Unchanged:
    """Convert a field that cannot be null. Errors: BAD_USER_INPUT with the message for null."""
    if value is None:
        raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, null_message)
    return UNCHANGED if value is UNSET else value
