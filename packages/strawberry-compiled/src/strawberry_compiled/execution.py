"""The state of one execution: its inputs, its errors, and what resolvers learn of it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import iscoroutine
from math import inf
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLField,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
    pyutils,
)
from graphql.execution.values import VariableValues
from graphql.pyutils import Path, gather_with_cancel
from graphql.type.definition import GraphQLResolveInfoHelpers

from strawberry_compiled.awaitables import is_awaitable
from strawberry_compiled.variables import VariablesConverter

# Is called as `middleware(resolver, source, info, **arguments)`, and calls `resolver(source, info,
# **arguments)` or does not. Returns the value of a root field, or an awaitable of it.
RootFieldMiddleware = Callable[..., Any]

# A linked path from a value to the root: the path before it, its key, and the name of the object
# type for a field. The fields are those of graphql-core's `Path`, but a plain tuple is made in a
# tenth of the time, and most paths are never read.
ValuePath = tuple["ValuePath | None", str | int, str | None]


def path_keys(path: ValuePath) -> list[str | int]:
    """Return the keys of a path from the root to the value."""
    keys = [one[1] for one in _to_root(path)]
    keys.reverse()
    return keys


def _to_root(path: ValuePath | None) -> Iterator[ValuePath]:
    while path is not None:
        yield path
        path = path[0]


def _to_path(path: ValuePath) -> Path:
    prev, key, type_name = path
    return Path(_to_path(prev) if prev is not None else None, key, type_name)


@dataclass(frozen=True, slots=True)
class ResultLimit:
    """The maximum of fields and list items, and of characters, and the error for a larger result.

    Only texts whose resolvers are called count as characters: an attribute is short. The error of
    too many values is located at a field, and nulls it as any other error does.
    """

    create_error: Callable[[], Exception]
    max_values: float = inf
    max_characters: float = inf


UNLIMITED = ResultLimit(lambda: RuntimeError("a result without a limit exceeded it"))


class Execution:
    """One execution of an operation."""

    __slots__ = (
        "_converter",
        "_inputs",
        "_nulled_paths",
        "_variables",
        "characters_left",
        "coerced",
        "context",
        "errors",
        "fragments",
        "middleware",
        "operation",
        "root_value",
        "schema",
        "too_large_error",
        "values_left",
    )

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        fragments: dict[str, FragmentDefinitionNode],
        converter: VariablesConverter,
        inputs: dict[str, Any],
        coerced: dict[str, Any],
        root_value: object,
        context: object,
        middleware: RootFieldMiddleware | None,
        limit: ResultLimit,
    ) -> None:
        self.schema = schema
        self.operation = operation
        self.fragments = fragments
        self.coerced = coerced
        self._converter = converter
        self._inputs = inputs
        self._variables: VariableValues | None = None
        self.root_value = root_value
        self.context = context
        self.middleware = middleware
        self.errors: list[GraphQLError] = []
        self.values_left = limit.max_values
        self.characters_left = limit.max_characters
        self.too_large_error = limit.create_error
        self._nulled_paths: set[ValuePath | None] = set()

    @property
    def variables(self) -> VariableValues:
        """The variables as resolvers get them: most never ask for their sources."""
        if self._variables is None:
            self._variables = self._converter.describe(self._inputs, self.coerced)
        return self._variables

    def add_error(self, error: GraphQLError, path: ValuePath | None) -> None:
        """Add the error that made the value at this path null; None is the whole response.

        An error below a value that is null already is dropped: the value that it belongs to is
        not in the response.
        """
        nulled = self._nulled_paths
        if None in nulled or any(one in nulled for one in _to_root(path)):
            return
        nulled.add(path)
        self.errors.append(error)


# Work that nobody awaits any more. The event loop itself has only weak references to it.
_background: set[asyncio.Future[Any]] = set()


def settle_in_background(awaitables: Iterable[Awaitable[Any]]) -> None:
    """Finish work whose result is not needed any more, and ignore its errors.

    Without an event loop the work can never run, so its coroutines are closed.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        for awaitable in awaitables:
            if iscoroutine(awaitable):
                awaitable.close()
        return
    future = asyncio.gather(*awaitables, return_exceptions=True)
    _background.add(future)
    future.add_done_callback(_background.discard)


def _track(values: Sequence[Any]) -> None:
    if awaitables := [value for value in values if is_awaitable(value)]:
        settle_in_background(awaitables)


def _gather(values: Sequence[Awaitable[Any]]) -> Awaitable[list[Any]]:
    return gather_with_cancel(*values)


# The functions that resolvers get to await or to track work of their own.
HELPERS = GraphQLResolveInfoHelpers(_gather, _track)


class FieldInfo:
    """The part of `info` that is the same for every execution of a field in a document."""

    __slots__ = ("coordinate", "definition", "field_name", "nodes", "parent_type")

    def __init__(
        self, parent_type: GraphQLObjectType, definition: GraphQLField, nodes: list[FieldNode]
    ) -> None:
        self.parent_type = parent_type
        self.definition = definition
        self.nodes = nodes
        self.field_name = nodes[0].name.value
        self.coordinate = f"{parent_type}.{self.field_name}"

    def build(self, execution: Execution, path: ValuePath) -> GraphQLResolveInfo[object]:
        """Build the info for the field that a path leads to, or for an item of its lists."""
        while path[0] is not None and isinstance(path[1], int):
            path = path[0]
        return GraphQLResolveInfo(
            self.field_name,
            self.nodes,
            self.definition.type,
            self.parent_type,
            _to_path(path),
            execution.schema,
            execution.fragments,
            execution.root_value,
            execution.operation,
            execution.variables,
            execution.context,
            pyutils.is_awaitable,
            None,
            HELPERS,
        )
