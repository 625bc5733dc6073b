"""Immutable values that cost little to create, for the domain and the use cases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Value = TypeVar("Value")
# What a value was loaded from. The domain passes it on unread, so that a changed value retains what
# a newer version stored with it.
Stored = Mapping[str, object] | None


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_object(cls: type[Value]) -> type[Value]:
    """Make a class of immutable values: a dataclass with slots, equality and a hash.

    The type checker rejects every assignment to an attribute. A dataclass that is frozen at run
    time is created three to five times slower, and one booking creates about 30 values.
    """
    as_dataclass: Callable[[type[Value]], type[Value]] = dataclass(slots=True, unsafe_hash=True)
    return as_dataclass(cls)
