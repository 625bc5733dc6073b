"""The completion of values: null, errors and leaf values (spec, 6.4.3)."""

from collections.abc import Awaitable, Callable
from enum import Enum
from types import CoroutineType
from typing import Any

from graphql import (
    GRAPHQL_MAX_INT,
    GRAPHQL_MIN_INT,
    FieldNode,
    GraphQLEnumType,
    GraphQLInt,
    GraphQLLeafType,
    Undefined,
    located_error,
)
from graphql.pyutils import inspect

from strawberry_compiled.awaitables import is_awaitable
from strawberry_compiled.execution import Execution, ValuePath, path_keys
from strawberry_compiled.variables import unchanged_type_of

# Completes a value that is not null. The result is data, or a coroutine of data.
Completer = Callable[[Any, Execution, ValuePath], Any]

PLAIN_RESULTS = frozenset({str, int, float, bool})


class OutputPosition:
    """A place for a value in the response: a field, or the items of a list.

    An error becomes null here, or passes through to the next position if null is not allowed.
    """

    __slots__ = ("_nodes", "_null_message", "completer", "is_nullable")

    def __init__(
        self,
        completer: Completer,
        nodes: list[FieldNode],
        field_coordinate: str,
        *,
        is_nullable: bool,
    ) -> None:
        self.completer = completer
        self._nodes = nodes
        self._null_message = f"Cannot return null for non-nullable field {field_coordinate}."
        self.is_nullable = is_nullable

    def complete(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        """Complete a value that is not awaitable. The result may be a coroutine."""
        if value is None or value is Undefined:
            if self.is_nullable:
                return None
            raise TypeError(self._null_message)
        if isinstance(value, Exception):
            raise value
        return self.completer(value, execution, path)

    async def complete_later(
        self, awaitable: Awaitable[Any], execution: Execution, path: ValuePath
    ) -> Any:
        """Await and complete a value."""
        try:
            completed = self.complete(await awaitable, execution, path)
            if type(completed) is CoroutineType:
                completed = await completed
        except Exception as error:
            self.handle_error(error, execution, path)
            return None
        return completed

    async def finish_later(
        self, completed: Awaitable[Any], execution: Execution, path: ValuePath
    ) -> Any:
        """Await the result of a completion that has begun."""
        try:
            return await completed
        except Exception as error:
            self.handle_error(error, execution, path)
            return None

    def handle_error(self, error: Exception, execution: Execution, path: ValuePath) -> None:
        """Record an error. Raises it, located, if the value cannot be null."""
        located = located_error(error, self._nodes, path_keys(path))
        if not self.is_nullable:
            raise located
        execution.add_error(located, path)


class LeafCompleter:
    """Converts a value of a scalar or an enum to its result."""

    __slots__ = ("_type", "serialize", "unchanged_type")

    def __init__(self, leaf_type: GraphQLLeafType) -> None:
        self._type = leaf_type
        self.serialize = _serializer(leaf_type)
        self.unchanged_type = unchanged_type_of(leaf_type)

    def __call__(self, value: Any, _execution: Execution, _path: ValuePath) -> Any:
        """Return the result. Raises an error for a value that the type does not have."""
        result = self.serialize(value)
        if type(result) in PLAIN_RESULTS:
            return result
        if result is None or result is Undefined:
            raise TypeError(
                f"Expected `{inspect(self._type)}.coerce_output_value({inspect(value)})`"
                f" to return non-nullable value, returned: {inspect(result)}"
            )
        return _await(result) if is_awaitable(result) else result


class TextCompleter(LeafCompleter):
    """Converts a value of `String`, and counts its characters."""

    __slots__ = ()

    def __call__(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the result. Raises an error for a value that is not a text."""
        result = self.serialize(value)
        if type(result) is not str:
            return super().__call__(value, execution, path)
        execution.characters_left -= len(result)
        return result


def _serializer(leaf_type: GraphQLLeafType) -> Callable[[Any], Any]:
    if leaf_type is GraphQLInt:
        return serialize_int
    if isinstance(leaf_type, GraphQLEnumType):
        return EnumSerializer(leaf_type)
    return leaf_type.coerce_output_value


def serialize_int(value: Any) -> Any:
    """Return an integer of 32 bits as it is, and what graphql-core makes of anything else."""
    if type(value) is int and GRAPHQL_MIN_INT <= value <= GRAPHQL_MAX_INT:
        return value
    return GraphQLInt.coerce_output_value(value)


class EnumSerializer:
    """Converts a member of an enum to its name, and remembers the name."""

    __slots__ = ("_coerce", "_names")

    def __init__(self, enum_type: GraphQLEnumType) -> None:
        self._coerce = enum_type.coerce_output_value
        # By the identity of the member, which is faster to hash than the member.
        self._names: dict[int, tuple[Enum, str]] = {}

    def __call__(self, value: Any) -> Any:
        """Return the name. Raises an error for a value that the enum does not have."""
        known = self._names.get(id(value))
        if known is not None:
            return known[1]
        name = self._coerce(value)
        if isinstance(value, Enum):
            self._names[id(value)] = (value, name)
        return name


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
