"""The check whether a value must be awaited, remembered for each type."""

from types import CoroutineType, FunctionType, GeneratorType
from typing import Any, TypeGuard

from graphql import pyutils

# Programs have few types. The limit bounds the memory of one that creates types without end.
MAX_TYPES = 5_000

# The types of which no value is awaitable. Hot paths look here before they call.
plain_types: set[type] = set()


def is_awaitable(value: object) -> TypeGuard[Any]:
    """Return what graphql-core's `is_awaitable` returns, for most values without asking it."""
    value_type = type(value)
    if value_type in plain_types:
        return False
    if value_type is CoroutineType:
        return True
    if pyutils.is_awaitable(value):
        return True
    if _is_decided_by_type(value_type) and len(plain_types) < MAX_TYPES:
        plain_types.add(value_type)
    return False


def is_never_awaitable(value_type: type) -> bool:
    """Return whether `is_awaitable` is known to be false for all values of a type."""
    return value_type in plain_types


def _is_decided_by_type(value_type: type) -> bool:
    """Return whether a type computes no attributes, so that its values are all alike."""
    return not (
        any("__getattr__" in base.__dict__ for base in value_type.__mro__)
        or isinstance(value_type.__getattribute__, FunctionType)
        or issubclass(value_type, type | GeneratorType)
    )
