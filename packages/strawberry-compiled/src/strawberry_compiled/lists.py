"""The completion of lists (spec, 6.4.3)."""

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sized
from contextlib import suppress
from types import CoroutineType
from typing import Any

from graphql import FieldNode, GraphQLError, located_error
from graphql.pyutils import gather_with_cancel, is_iterable
from strawberry.types.cast import TYPE_CAST_ATTRIBUTE

from strawberry_compiled import strawberry_fields
from strawberry_compiled.awaitables import is_awaitable
from strawberry_compiled.completion import OutputPosition
from strawberry_compiled.execution import (
    Execution,
    ValuePath,
    path_keys,
    settle_in_background,
)
from strawberry_compiled.plan import Data, ObjectPlan

# Fewer objects take more time together than one by one.
MIN_OBJECTS = 8


class ListCompleter:
    """Completes the items of a list, all at the same time."""

    __slots__ = ("_field_coordinate", "_item", "_nodes", "_object_plans")

    def __init__(
        self,
        item: OutputPosition,
        object_plans: Mapping[type, ObjectPlan],
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
        completed = self._complete_together(value, execution)
        return self._complete_items(value, execution, path) if completed is None else completed

    def _complete_together(self, values: Iterable[Any], execution: Execution) -> list[Data] | None:
        """Complete objects of one Python type field by field, if their fields are plain."""
        if not isinstance(values, list | tuple) or len(values) < MIN_OBJECTS:
            return None
        plan = self._object_plans.get(type(values[0]))
        if (
            plan is None
            or len(set(map(type, values))) > 1
            or not strawberry_fields.are_not_cast(values)
        ):
            return None
        return plan.execute_together(values, execution)

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
                settle_in_background(awaitables)
            raise
        return await_items(results, pending) if pending else results

    def _complete_item(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        item = self._item
        try:
            plan = self._object_plans.get(type(value))
            if plan is not None and getattr(value, TYPE_CAST_ATTRIBUTE, None) is None:
                completed = plan.execute(value, execution, path)
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
                settle_in_background([results[index] for index in pending])
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
