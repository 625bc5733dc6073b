"""The execution of operations, the same for every transport."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, cast

from graphql import (
    ExecutionResult,
    Executor,
    GraphQLError,
    MiddlewareManager,
    OperationType,
    create_source_event_stream,
    execute,
)
from prometheus_client import Counter, Gauge

from slotlock.graphql.context import Context
from slotlock.graphql.core.errors import format_error
from slotlock.graphql.execution.documents import MAX_ERRORS, Operation
from slotlock.graphql.execution.session_recheck import SessionRecheckMiddleware
from slotlock.graphql.limits.result_size import ResultSizeLimitExecutor
from slotlock.graphql.schema.schema import executable_schema

REQUESTS = Counter(
    "slotlock_requests_total",
    "Executed root fields, by field and by `ok` or the code of the error",
    ["operation", "outcome"],
)
ACTIVE_SUBSCRIPTIONS = Gauge(
    "slotlock_subscriptions_active", "Open subscriptions", multiprocess_mode="livesum"
)

Variables = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GraphQLResponse:
    """The body of a response. A request that was rejected before its execution has no `data`."""

    body: dict[str, Any]

    @property
    def is_request_error(self) -> bool:
        """Whether the request was rejected before its execution."""
        return "data" not in self.body


async def execute_operation(
    operation: Operation, variables: Variables | None, context: Context
) -> GraphQLResponse:
    """Execute a query or a mutation."""
    response = await _execute(operation, variables, context)
    record_metrics(operation, response)
    return response


async def execute_stream(
    operation: Operation, variables: Variables | None, context: Context
) -> AsyncGenerator[GraphQLResponse, None]:
    """Execute any operation: yield one response, or one for each event of a subscription."""
    if operation.operation_type is not OperationType.SUBSCRIPTION:
        yield await execute_operation(operation, variables, context)
        return
    source = await _create_event_source(operation, variables, context)
    if isinstance(source, ExecutionResult):
        response = _to_response(source)
        record_metrics(operation, response)
        yield response
        return
    record_metrics(operation, GraphQLResponse({"data": None}))
    with ACTIVE_SUBSCRIPTIONS.track_inprogress():
        try:
            async with aclosing(source):
                async for event in source:
                    yield await _execute(operation, variables, context.fork(), event)
        except Exception as error:
            # The source of the events failed, so the error belongs to the field, not to an event.
            path = [key for key, _ in operation.root_fields]
            body = format_error(GraphQLError(str(error), path=path, original_error=error))
            response = GraphQLResponse({"errors": [body]})
            record_metrics(operation, response)
            yield response


async def _execute(
    operation: Operation, variables: Variables | None, context: Context, event: object = None
) -> GraphQLResponse:
    result = execute(
        executable_schema,
        operation.document,
        root_value=event,
        context_value=context,
        variable_values=variables,
        operation_name=operation.name,
        # A mutation has taken effect, so its result is never rejected as too large.
        executor_class=None if operation.is_mutation else ResultSizeLimitExecutor,
        middleware=MiddlewareManager(SessionRecheckMiddleware())
        if operation.has_several_mutations
        else None,
        hide_suggestions=not operation.allows_suggestions,
        max_coercion_errors=MAX_ERRORS,
    )
    return _to_response(await result if isawaitable(result) else result)


async def _create_event_source(
    operation: Operation, variables: Variables | None, context: Context
) -> AsyncGenerator[object, None] | ExecutionResult:
    """Return the events of a subscription, or the errors that prevent it.

    graphql-core's own `subscribe` (3.3.2) keeps some kilobytes for each event until the
    subscription ends. Therefore each event is executed as an operation of its own.
    """
    executor = Executor.build(
        executable_schema,
        operation.document,
        context_value=context,
        raw_variable_values=variables,
        operation_name=operation.name,
        hide_suggestions=not operation.allows_suggestions,
        max_coercion_errors=MAX_ERRORS,
    )
    if isinstance(executor, list):
        return ExecutionResult(data=None, errors=executor)
    source = create_source_event_stream(executor)
    # graphql-core declares an iterable, but returns the generator that `aclosing` needs.
    return cast(
        "AsyncGenerator[object, None] | ExecutionResult",
        await source if isawaitable(source) else source,
    )


def _to_response(result: ExecutionResult) -> GraphQLResponse:
    if not result.errors:
        return GraphQLResponse({"data": result.data})
    errors = [format_error(error) for error in result.errors]
    if result.data is None and all(error.path is None for error in result.errors):
        return GraphQLResponse({"errors": errors})
    return GraphQLResponse({"data": result.data, "errors": errors})


def record_metrics(operation: Operation, response: GraphQLResponse) -> None:
    """Count the root fields of an operation by their outcome; of a subscription at its start."""
    errors = response.body.get("errors")
    if not errors:
        for _, name in operation.root_fields:
            REQUESTS.labels(name, "ok").inc()
        return
    codes = {
        error["path"][0] if error.get("path") else None: error["extensions"]["code"]
        for error in errors
    }
    for key, name in operation.root_fields:
        REQUESTS.labels(name, codes.get(key) or codes.get(None) or "ok").inc()
