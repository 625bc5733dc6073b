"""How much an answer may hold, counted as it is made.

What a document asks for is known only as far as lists are pages: a course may have 500 meetings.
"""

from collections.abc import Iterable, Sized
from typing import Any

from graphql import Executor, GraphQLObjectType, GraphQLOutputType
from graphql.pyutils import AwaitableOrValue, Path

from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.limits import LIMITS

TOO_LARGE = f"The answer holds more than {LIMITS.values} values: ask for fewer at once."


class BoundedExecutor(Executor[Any]):
    """Makes answers of no more fields and items of lists than may be asked for."""

    values = 0

    def execute_fields(
        self,
        parent_type: GraphQLObjectType,
        source: Any,
        path: Path | None,
        fields: Any,
        *rest: Any,
    ) -> AwaitableOrValue[dict[str, Any]]:
        """The fields of one object. Errors: LIMIT_EXCEEDED."""
        self._count(len(fields))
        return super().execute_fields(parent_type, source, path, fields, *rest)

    def complete_iterable_value(
        self,
        item_type: GraphQLOutputType,
        nodes: Any,
        info: Any,
        path: Path,
        items: Iterable[Any],
        *rest: Any,
    ) -> AwaitableOrValue[list[Any]]:
        """The items of one list. Errors: LIMIT_EXCEEDED."""
        self._count(len(items) if isinstance(items, Sized) else 0)
        return super().complete_iterable_value(item_type, nodes, info, path, items, *rest)

    def _count(self, more: int) -> None:
        self.values += more
        if self.values > LIMITS.values:
            raise RefusedError(Code.LIMIT_EXCEEDED, TOO_LARGE)
