"""The limits on the size of a result: its values and its bytes.

The complexity of a document bounds only paginated lists; a course may have 500 meetings. Nor does
it know how long the texts are that each alias repeats.
"""

from collections.abc import Iterable, Sized
from typing import Any

import orjson
from graphql import Executor, GraphQLObjectType, GraphQLOutputType
from graphql.pyutils import AwaitableOrValue, Path

from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError, error_body
from slotlock.graphql.limits.complexity import DOCUMENT_LIMITS

# Twice what 20,000 values of the usual length take. A description has at most 10,000 characters.
MAX_RESULT_BYTES = 2 * 1024 * 1024
TOO_LARGE_MESSAGE = (
    f"The result has more than {DOCUMENT_LIMITS.values} values or {MAX_RESULT_BYTES} bytes. "
    "Please request fewer at once. A mutation whose result is too large has been executed."
)
RESULT_TOO_LARGE_BODY = {
    "data": None,
    "errors": [error_body(ErrorCode.LIMIT_EXCEEDED, TOO_LARGE_MESSAGE)],
}
RESULT_TOO_LARGE_JSON = orjson.dumps(RESULT_TOO_LARGE_BODY)


def result_too_large() -> GraphQLRequestError:
    """Create the error for a result that exceeds a limit."""
    return GraphQLRequestError(ErrorCode.LIMIT_EXCEEDED, TOO_LARGE_MESSAGE)


class ResultSizeLimitExecutor(Executor[Any]):
    """Stops an execution whose result has more than `max_values` fields and list items."""

    max_values = DOCUMENT_LIMITS.values
    value_count = 0

    def execute_fields(
        self,
        parent_type: GraphQLObjectType,
        source: Any,
        path: Path | None,
        fields: Any,
        *rest: Any,
    ) -> AwaitableOrValue[dict[str, Any]]:
        """Execute the fields of one object. Errors: LIMIT_EXCEEDED."""
        self._add_values(len(fields))
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
        """Complete the items of one list. Errors: LIMIT_EXCEEDED."""
        self._add_values(len(items) if isinstance(items, Sized) else 0)
        return super().complete_iterable_value(item_type, nodes, info, path, items, *rest)

    def _add_values(self, count: int) -> None:
        self.value_count += count
        if self.value_count > self.max_values:
            raise result_too_large()
