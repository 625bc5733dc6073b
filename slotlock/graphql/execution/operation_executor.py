"""The execution of operations, the same for every transport."""

from functools import cache
from time import monotonic
from typing import Any

import msgspec
import orjson
from graphql import ExecutionResult, GraphQLError, MiddlewareManager, OperationType, execute
from graphql.pyutils import AwaitableOrValue
from prometheus_client import Counter

from slotlock.graphql.context import Context
from slotlock.graphql.core.errors import GraphQLRequestError, format_error
from slotlock.graphql.execution.document_cache import MAX_ERRORS, Operation
from slotlock.graphql.execution.input_errors import format_input_error, is_input_error
from slotlock.graphql.execution.session_recheck import SessionRecheckMiddleware
from slotlock.graphql.limits.complexity import DOCUMENT_LIMITS
from slotlock.graphql.limits.result_size import (
    MAX_RESULT_BYTES,
    RESULT_TOO_LARGE_BODY,
    RESULT_TOO_LARGE_JSON,
    ResultSizeLimitExecutor,
    result_too_large,
)
from slotlock.graphql.schema.schema import executable_schema
from slotlock.infrastructure.request_deadline import (
    RequestTimeoutError,
    current_request,
    within_deadline,
)
from slotlock.infrastructure.telemetry.buffered_metrics import BufferedCounter, observe_request
from strawberry_compiled import ResultLimit

REQUESTS = Counter(
    "slotlock_requests_total",
    "Executed root fields, by field and by `ok` or the code of the error",
    ["operation", "outcome"],
)

RESULT_LIMIT = ResultLimit(
    result_too_large, max_values=DOCUMENT_LIMITS.values, max_characters=MAX_RESULT_BYTES
)
# A mutation runs to its end, so that its error says for certain that it took effect.
MUTATION_RESULT_LIMIT = ResultLimit(result_too_large, max_characters=MAX_RESULT_BYTES)

Variables = dict[str, Any]


class GraphQLResponse(msgspec.Struct):
    """The body of a response. A request that was rejected before its execution has no `data`."""

    body: dict[str, Any]
    _encoded: bytes | None = None

    def encode(self) -> bytes:
        """Return the body in JSON. A response with several readers is encoded once."""
        if self._encoded is None:
            encoded = orjson.dumps(self.body)
            self._encoded = encoded if len(encoded) <= MAX_RESULT_BYTES else RESULT_TOO_LARGE_JSON
        return self._encoded

    @property
    def is_request_error(self) -> bool:
        """Whether the request was rejected before its execution."""
        return "data" not in self.body


async def execute_operation(
    operation: Operation, variables: Variables | None, context: Context
) -> GraphQLResponse:
    """Execute a query or a mutation, until the deadline of the request."""
    try:
        with within_deadline():
            result = start_execution(operation, variables, context)
            response = to_response(
                operation, result if isinstance(result, ExecutionResult) else await result
            )
    except (RequestTimeoutError, GraphQLRequestError) as error:
        response = failed_response(operation, error)
    record_metrics(operation, response)
    return response


def failed_response(
    operation: Operation, error: RequestTimeoutError | GraphQLRequestError
) -> GraphQLResponse:
    """Return the response to an operation that took too long, or whose result is too large."""
    if isinstance(error, GraphQLRequestError):  # all others belong to fields
        return GraphQLResponse(RESULT_TOO_LARGE_BODY)
    located = GraphQLError(str(error), original_error=error)
    errors = [format_error(located, is_mutation=operation.is_mutation)]
    return GraphQLResponse({"data": None, "errors": errors})


async def execute_event(
    operation: Operation, variables: Variables | None, context: Context, event: object
) -> GraphQLResponse:
    """Execute a subscription for one event, or another operation without an event."""
    result = start_execution(operation, variables, context, event)
    return to_response(operation, result if isinstance(result, ExecutionResult) else await result)


def execute_shared_event(
    operation: Operation, variables: Variables | None, context: Context, event: object
) -> GraphQLResponse:
    """Execute a subscription for one event whose fields are resolved without I/O.

    Raises:
        TypeError: a field waits.
    """
    result = start_execution(operation, variables, context, event)
    if not isinstance(result, ExecutionResult):
        raise TypeError("a field of a shared event waits")
    return to_response(operation, result)


def start_execution(
    operation: Operation, variables: Variables | None, context: Context, event: object = None
) -> AwaitableOrValue[ExecutionResult]:
    """Start to execute an operation, for one event if it is a subscription.

    Raises:
        GraphQLRequestError: the result is too large, as it may on awaiting the result.
    """
    if operation.result is not None:
        return operation.result
    result: AwaitableOrValue[ExecutionResult] | None = None
    if operation.compiled is not None:
        result = operation.compiled.execute(
            root_value=event,
            context_value=context,
            variable_values=variables,
            middleware=SessionRecheckMiddleware().resolve
            if operation.has_several_mutations
            else None,
            limit=MUTATION_RESULT_LIMIT
            if operation.operation_type is OperationType.MUTATION
            else RESULT_LIMIT,
        )
    if result is None:
        return _execute_uncompiled(operation, variables, context, event)
    return result


def _execute_uncompiled(
    operation: Operation, variables: Variables | None, context: Context, event: object
) -> AwaitableOrValue[ExecutionResult]:
    """Execute an operation that has no plan, with graphql-core and the same checks."""
    return execute(
        executable_schema,
        operation.document,
        root_value=event,
        context_value=context,
        variable_values=variables,
        operation_name=operation.name,
        executor_class=None if operation.is_mutation else ResultSizeLimitExecutor,
        middleware=MiddlewareManager(SessionRecheckMiddleware())
        if operation.has_several_mutations
        else None,
        hide_suggestions=not operation.allows_suggestions,
        max_coercion_errors=MAX_ERRORS,
    )


def to_response(operation: Operation, result: ExecutionResult) -> GraphQLResponse:
    """Format a result and its errors."""
    if not result.errors:
        return GraphQLResponse({"data": result.data})
    errors = [
        format_input_error(error, operation.document)
        if is_input_error(error)
        else format_error(error, is_mutation=operation.is_mutation)
        for error in result.errors
    ]
    if result.data is None and all(error.path is None for error in result.errors):
        return GraphQLResponse({"errors": errors})
    return GraphQLResponse({"data": result.data, "errors": errors})


def record_metrics(
    operation: Operation, response: GraphQLResponse, *, is_timed: bool = True
) -> None:
    """Count and time the root fields of an operation; of a subscription at its start."""
    request = current_request() if is_timed else None
    if request is not None:
        seconds = monotonic() - request.started_at
        for _, name in operation.root_fields:
            observe_request(name, seconds)
    errors = response.body.get("errors")
    if not errors:
        for _, name in operation.root_fields:
            _request_counter(name, "ok").inc()
        return
    codes = {
        error["path"][0] if error.get("path") else None: error["extensions"]["code"]
        for error in errors
    }
    for key, name in operation.root_fields:
        _request_counter(name, codes.get(key) or codes.get(None) or "ok").inc()


@cache
def _request_counter(field: str, outcome: str) -> BufferedCounter:
    """Return one counter of REQUESTS. The names are from the schema, so there are few."""
    return BufferedCounter(REQUESTS.labels(field, outcome))
