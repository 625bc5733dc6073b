"""The mark of fields that an edit does not change, where None is a value of its own."""

from enum import Enum
from typing import Final, TypeVar

Value = TypeVar("Value")


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


def new_or_current(new: Value | Unchanged, current: Value) -> Value:
    """Return the new value of a field, or its current value if the edit does not change it."""
    return current if isinstance(new, Unchanged) else new
