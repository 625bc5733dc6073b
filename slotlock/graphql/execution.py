"""Executing an operation, the same for every transport."""

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

from slotlock.graphql.answer_size import BoundedExecutor
from slotlock.graphql.context import Context
from slotlock.graphql.documents import MAX_ERRORS, Operation
from slotlock.graphql.errors import formatted
from slotlock.graphql.in_turn import InTurn
from slotlock.graphql.schema import executable

REQUESTS = Counter(
    "slotlock_requests_total",
    "Root fields answered, by field and by `ok` or the code of the error",
    ["operation", "outcome"],
)
SUBSCRIPTIONS = Gauge(
    "slotlock_subscriptions_active", "Subscriptions open now", multiprocess_mode="livesum"
)

Variables = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets. A request that was refused before it was executed has no `data`."""

    body: dict[str, Any]

    @property
    def refused(self) -> bool:
        """Whether nothing was executed."""
        return "data" not in self.body


async def run(operation: Operation, variables: Variables | None, context: Context) -> Answer:
    """The answer to a query or a mutation."""
    answer = await _executed(operation, variables, context)
    count(operation, answer)
    return answer


async def answers(
    operation: Operation, variables: Variables | None, context: Context
) -> AsyncGenerator[Answer, None]:
    """The answers to any operation: one, or for a subscription as many as there will be."""
    if operation.kind is not OperationType.SUBSCRIPTION:
        yield await run(operation, variables, context)
        return
    source = await _source(operation, variables, context)
    if isinstance(source, ExecutionResult):
        answer = _answer(source)
        count(operation, answer)
        yield answer
        return
    count(operation, Answer({"data": None}))
    with SUBSCRIPTIONS.track_inprogress():
        try:
            async with aclosing(source):
                async for event in source:
                    yield await _executed(operation, variables, context.afresh(), event)
        except Exception as error:
            # Raised by the source of events itself, so it belongs to no event but to its field.
            path = [key for key, _ in operation.roots]
            shown = formatted(GraphQLError(str(error), path=path, original_error=error))
            answer = Answer({"errors": [shown]})
            count(operation, answer)
            yield answer


async def _executed(
    operation: Operation, variables: Variables | None, context: Context, event: object = None
) -> Answer:
    result = execute(
        executable,
        operation.document,
        root_value=event,
        context_value=context,
        variable_values=variables,
        operation_name=operation.name,
        # What a mutation has done is told, however much it is.
        executor_class=None if operation.changes else BoundedExecutor,
        middleware=MiddlewareManager(InTurn()) if operation.changes_several else None,
        hide_suggestions=not operation.suggestions,
        max_coercion_errors=MAX_ERRORS,
    )
    return _answer(await result if isawaitable(result) else result)


async def _source(
    operation: Operation, variables: Variables | None, context: Context
) -> AsyncGenerator[object, None] | ExecutionResult:
    """The events of a subscription, or why there are none.

    Each event is then executed by itself: graphql-core's own `subscribe` (3.3.2) keeps what it
    collected for every event until the subscription ends, some kilobytes each.
    """
    executor = Executor.build(
        executable,
        operation.document,
        context_value=context,
        raw_variable_values=variables,
        operation_name=operation.name,
        hide_suggestions=not operation.suggestions,
        max_coercion_errors=MAX_ERRORS,
    )
    if isinstance(executor, list):
        return ExecutionResult(data=None, errors=executor)
    source = create_source_event_stream(executor)
    # Typed as an iterable, it is the generator that `aclosing` needs.
    return cast(
        "AsyncGenerator[object, None] | ExecutionResult",
        await source if isawaitable(source) else source,
    )


def _answer(result: ExecutionResult) -> Answer:
    if not result.errors:
        return Answer({"data": result.data})
    errors = [formatted(error) for error in result.errors]
    if result.data is None and all(error.path is None for error in result.errors):
        return Answer({"errors": errors})
    return Answer({"data": result.data, "errors": errors})


def count(operation: Operation, answer: Answer) -> None:
    """Count an operation's root fields by what came of them; a subscription when it begins."""
    errors = answer.body.get("errors")
    if not errors:
        for _, name in operation.roots:
            REQUESTS.labels(name, "ok").inc()
        return
    codes = {
        error["path"][0] if error.get("path") else None: error["extensions"]["code"]
        for error in errors
    }
    for key, name in operation.roots:
        REQUESTS.labels(name, codes.get(key) or codes.get(None) or "ok").inc()
