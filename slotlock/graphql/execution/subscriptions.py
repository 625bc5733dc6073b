"""The execution of subscriptions: one response for each event."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from inspect import isawaitable
from typing import Any, cast

from graphql import (
    ExecutionResult,
    Executor,
    GraphQLError,
    OperationType,
    create_source_event_stream,
)
from prometheus_client import Gauge

from slotlock.graphql.context import Context
from slotlock.graphql.core.errors import format_error
from slotlock.graphql.execution.document_cache import MAX_ERRORS, Operation
from slotlock.graphql.execution.operation_executor import (
    GraphQLResponse,
    Variables,
    execute_event,
    execute_operation,
    record_metrics,
    to_response,
)
from slotlock.graphql.execution.shared_operations import (
    SharedOperation,
    SharedOperations,
)
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.shared_events import SharedEvents
from slotlock.infrastructure.telemetry import tracing
from slotlock.services.live.latest_states import LatestStates

ACTIVE_SUBSCRIPTIONS = Gauge(
    "slotlock_subscriptions_active", "Open subscriptions", multiprocess_mode="livesum"
)

# Sends the shared responses to the states of a subscription until the task is cancelled.
PushResponses = Callable[[LatestStates[Any, Any], SharedOperation], Awaitable[None]]


async def execute_stream(
    operation: Operation,
    variables: Variables | None,
    context: Context,
    shared_operations: SharedOperations | None = None,
    push: PushResponses | None = None,
) -> AsyncGenerator[GraphQLResponse, None]:
    """Execute any operation: yield one response, or one for each event of a subscription.

    The stream leaves responses that many subscribers share to `push`, and yields only the others.
    """
    if operation.operation_type is not OperationType.SUBSCRIPTION:
        yield await execute_operation(operation, variables, context)
        return
    source = await _create_event_source(operation, variables, context)
    if isinstance(source, ExecutionResult):
        response = to_response(operation, source)
        record_metrics(operation, response)
        yield response
        return
    if isinstance(source, SharedEvents):
        operations = shared_operations or SharedOperations()
        shared = operations.find(operation, variables, context, source.to_event)
        responses = _shared_responses(source, shared, push)
    else:
        responses = _responses(operation, variables, context, source)
    record_metrics(operation, GraphQLResponse({"data": None}))
    tracing.end_request_span()
    with ACTIVE_SUBSCRIPTIONS.track_inprogress():
        try:
            async with aclosing(responses):
                async for response in responses:
                    yield response
        except Exception as error:
            # The source of the events failed, so the error belongs to the field, not to an event.
            path = [key for key, _ in operation.root_fields]
            body = format_error(
                GraphQLError(str(error), path=path, original_error=error), is_mutation=False
            )
            response = GraphQLResponse({"errors": [body]})
            record_metrics(operation, response, is_timed=False)  # the stream had begun
            yield response


async def _responses(
    operation: Operation,
    variables: Variables | None,
    context: Context,
    source: AsyncGenerator[object, None],
) -> AsyncGenerator[GraphQLResponse, None]:
    async with aclosing(source):
        async for event in source:
            yield await execute_event(operation, variables, context.fork(), event)


async def _shared_responses(
    source: SharedEvents[Any], shared: SharedOperation, push: PushResponses | None
) -> AsyncGenerator[GraphQLResponse, None]:
    async with source.open() as subscription:
        if push is not None:
            await push(subscription, shared)
            return
        async with aclosing(subscription.states()) as states:
            async for state in states:
                yield shared.respond(state)


async def _create_event_source(
    operation: Operation, variables: Variables | None, context: Context
) -> AsyncGenerator[object, None] | SharedEvents[Any] | ExecutionResult:
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
    # graphql-core declares an iterable, but returns what the field of the subscription returned.
    return cast(
        "AsyncGenerator[object, None] | SharedEvents[Any] | ExecutionResult",
        await source if isawaitable(source) else source,
    )
