"""The completion of values: null, errors, leaf values and lists (spec, 6.4.3)."""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sized,
)
from contextlib import suppress
from enum import Enum
from types import CoroutineType
from typing import Any

from graphql import (
    GRAPHQL_MAX_INT,
    GRAPHQL_MIN_INT,
    FieldNode,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLError,
    GraphQLID,
    GraphQLInt,
    GraphQLLeafType,
    GraphQLString,
    Undefined,
    located_error,
)
from graphql.pyutils import gather_with_cancel, inspect, is_iterable

from slotlock.graphql.execution.compiled import strawberry_fields
from slotlock.graphql.execution.compiled.awaitables import is_awaitable
from slotlock.graphql.execution.compiled.errors import ValuePath, path_keys
from slotlock.graphql.execution.compiled.execution import Execution

# Completes a value that is not null. The result is data, or a coroutine of data.
Completer = Callable[[Any, Execution, ValuePath], Any]

# Values of exactly these types are their own result for these scalars.
_UNCHANGED_TYPES = ((GraphQLString, str), (GraphQLID, str), (GraphQLBoolean, bool))
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
        execution.field_errors.add(located, path)


class LeafCompleter:
    """Converts a value of a scalar or an enum to its result."""

    __slots__ = ("_type", "serialize", "unchanged_type")

    def __init__(self, leaf_type: GraphQLLeafType) -> None:
        self._type = leaf_type
        self.serialize = _serializer(leaf_type)
        self.unchanged_type: type | None = next(
            (known for scalar, known in _UNCHANGED_TYPES if scalar is leaf_type), None
        )

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


class ListCompleter:
    """Completes the items of a list, all at the same time."""

    __slots__ = ("_field_coordinate", "_item", "_nodes", "_object_plans")

    def __init__(
        self,
        item: OutputPosition,
        object_plans: Mapping[type, Completer],
        nodes: list[FieldNode],
        field_coordinate: str,
    ) -> None:
        self._item = item
        # The plans of items whose Python type says all about them; the completer adds to them.
        self._object_plans = object_plans
        self._nodes = nodes
        self._field_coordinate = field_coordinate

    def __call__(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the list, or a coroutine of it."""
        if type(value) is not list and type(value) is not tuple:
            if hasattr(value, "__aiter__"):
                return self._complete_async_iterable(value, execution, path)
            if not is_iterable(value):
                raise GraphQLError(
                    f"Expected Iterable, but did not find one for field '{self._field_coordinate}'."
                )
        execution.values_left -= len(value) if isinstance(value, Sized) else 0
        if execution.values_left < 0:
            raise execution.too_large_error()
        return self._complete_items(value, execution, path)

    def _complete_items(
        self, values: Iterable[Any], execution: Execution, path: ValuePath
    ) -> list[Any] | Coroutine[Any, Any, list[Any]]:
        results: list[Any] = []
        pending: list[int] = []
        iterator = iter(values)
        try:
            for index, value in enumerate(iterator):
                completed = self._complete_item(value, execution, (path, index, None))
                if type(completed) is CoroutineType:
                    pending.append(index)
                results.append(completed)
        except Exception:
            awaitables = [results[index] for index in pending]
            awaitables.extend(_remaining_awaitables(iterator))
            if awaitables:
                execution.settle_in_background(awaitables)
            raise
        return await_items(results, pending) if pending else results

    def _complete_item(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        item = self._item
        try:
            execute_plan = self._object_plans.get(type(value))
            if execute_plan is not None and strawberry_fields.is_not_cast(value):
                completed = execute_plan(value, execution, path)
            elif is_awaitable(value):
                return item.complete_later(value, execution, path)
            else:
                completed = item.complete(value, execution, path)
            if type(completed) is CoroutineType:
                return item.finish_later(completed, execution, path)
        except Exception as error:
            item.handle_error(error, execution, path)
            return None
        return completed

    async def _complete_async_iterable(
        self, values: Any, execution: Execution, path: ValuePath
    ) -> list[Any]:
        results: list[Any] = []
        pending: list[int] = []
        iterator = aiter(values)
        try:
            while (value := await self._next_value(iterator, path)) is not _END:
                completed = self._complete_item(value, execution, (path, len(results), None))
                if type(completed) is CoroutineType:
                    pending.append(len(results))
                results.append(completed)
        except Exception:
            await _close_early(iterator)
            if pending:
                execution.settle_in_background([results[index] for index in pending])
            raise
        return await await_items(results, pending) if pending else results

    async def _next_value(self, iterator: AsyncIterator[Any], path: ValuePath) -> Any:
        try:
            return await anext(iterator)
        except StopAsyncIteration:
            return _END
        except Exception as error:
            raise located_error(error, self._nodes, path_keys(path)) from error


_END = object()


async def _close_early(iterator: Any) -> None:
    if hasattr(iterator, "aclose"):
        with suppress(Exception):
            await iterator.aclose()


def _remaining_awaitables(iterator: Iterator[Any]) -> list[Any]:
    try:
        return [value for value in iterator if is_awaitable(value)]
    except Exception:
        return []


async def await_items(results: list[Any], pending: list[int]) -> list[Any]:
    """Await the unfinished results and put them in their places."""
    if len(pending) == 1:
        results[pending[0]] = await results[pending[0]]
        return results
    finished = await gather_with_cancel(*(results[index] for index in pending))
    for index, value in zip(pending, finished, strict=True):
        results[index] = value
    return results
