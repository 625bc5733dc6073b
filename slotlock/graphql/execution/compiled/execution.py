"""The state of one execution: its inputs, its errors and its unfinished work."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import iscoroutine
from math import inf
from typing import Any

from graphql import (
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
)
from graphql.execution.values import VariableValues
from graphql.pyutils import gather_with_cancel
from graphql.type.definition import GraphQLResolveInfoHelpers

from slotlock.graphql.execution.compiled.awaitables import is_awaitable
from slotlock.graphql.execution.compiled.errors import FieldErrors

# Calls the resolver that it gets with the source, the info and the arguments of a root field.
RootFieldMiddleware = Callable[..., Any]


class ResultLimit:
    """The maximum of fields and list items, and of characters, and the error for a larger result.

    Only texts whose resolvers are called count as characters: an attribute is short.
    """

    __slots__ = ("create_error", "max_characters", "max_values")

    def __init__(
        self,
        create_error: Callable[[], Exception],
        *,
        max_values: float = inf,
        max_characters: float = inf,
    ) -> None:
        self.create_error = create_error
        self.max_values = max_values
        self.max_characters = max_characters


UNLIMITED = ResultLimit(lambda: RuntimeError("a result without a limit exceeded it"))


class Execution:
    """One execution of an operation."""

    __slots__ = (
        "_background",
        "_helpers",
        "_limit",
        "characters_left",
        "context",
        "field_errors",
        "fragments",
        "middleware",
        "operation",
        "root_value",
        "schema",
        "values_left",
        "variables",
    )

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        fragments: dict[str, FragmentDefinitionNode],
        variables: VariableValues,
        root_value: object,
        context: object,
        middleware: RootFieldMiddleware | None,
        limit: ResultLimit,
    ) -> None:
        self.schema = schema
        self.operation = operation
        self.fragments = fragments
        self.variables = variables
        self.root_value = root_value
        self.context = context
        self.middleware = middleware
        self.field_errors = FieldErrors()
        self.values_left = limit.max_values
        self.characters_left = limit.max_characters
        self._limit = limit
        self._background: set[asyncio.Future[Any]] | None = None
        self._helpers: GraphQLResolveInfoHelpers | None = None

    def too_large_error(self) -> Exception:
        """Create the error for more values or characters than allowed."""
        return self._limit.create_error()

    @property
    def errors(self) -> list[GraphQLError] | None:
        """The errors for the response; None if there are none."""
        return self.field_errors.errors or None

    @property
    def helpers(self) -> GraphQLResolveInfoHelpers:
        """The functions that resolvers get to await or to track work of their own."""
        if self._helpers is None:
            self._helpers = GraphQLResolveInfoHelpers(gather=_gather, track=self._track)
        return self._helpers

    def settle_in_background(self, awaitables: Iterable[Awaitable[Any]]) -> None:
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
        if self._background is None:
            self._background = set()
        self._background.add(future)
        future.add_done_callback(self._background.discard)

    def _track(self, values: Sequence[Any]) -> None:
        if awaitables := [value for value in values if is_awaitable(value)]:
            self.settle_in_background(awaitables)


def _gather(values: Sequence[Awaitable[Any]]) -> Awaitable[list[Any]]:
    return gather_with_cancel(*values)
