"""Spans of traces, which cost nothing but a comparison while no endpoint for them is set.

Every part of slotlock calls these functions. `opentelemetry_spans` does the work, and is imported
only by `start`. A span of a part begins only within the span of a request or of a ticket, so that
background work makes no traces.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from slotlock.infrastructure.telemetry.open_span import NO_SPAN, OpenSpan, Origin

if TYPE_CHECKING:
    import asyncio

    from slotlock.infrastructure.telemetry.opentelemetry_spans import Spans

__all__ = ["OpenSpan", "Origin"]

_spans: "Spans | None" = None
# Whether spans are recorded.
is_on = False


def start(version: str) -> None:
    """Start to record spans, and to send them to the endpoint of OpenTelemetry's variables."""
    global _spans, is_on
    from slotlock.infrastructure.telemetry.opentelemetry_spans import Spans  # an optional extra

    _spans, is_on = Spans(version), True


def stop() -> None:
    """Send the spans that are left, and record no more. It may block for seconds."""
    global _spans, is_on
    spans, _spans, is_on = _spans, None, False
    if spans is not None:
        spans.close()


def span(name: str) -> AbstractContextManager[OpenSpan]:
    """Open a span within that of the current request, if there is one."""
    return NO_SPAN if _spans is None else _spans.internal(name)


def shared_span(name: str, origins: Sequence[Origin]) -> AbstractContextManager[OpenSpan]:
    """Open a span for the work of several callers: a child of the first, linked to the others."""
    return NO_SPAN if _spans is None else _spans.shared(name, origins)


def server_span(name: str, headers: Mapping[str, str]) -> AbstractContextManager[OpenSpan]:
    """Open the span of a request, which continues the trace of its `traceparent`."""
    return NO_SPAN if _spans is None else _spans.server(name, headers)


def tickets_span(
    traceparents: Sequence[str],
) -> AbstractContextManager[OpenSpan]:
    """Open a span for queued requests: one in the trace of each, and one for their common work."""
    return NO_SPAN if _spans is None else _spans.tickets(traceparents)


def origin() -> Origin:
    """Return the span of the current caller, for `shared_span`; None if it has none."""
    return None if _spans is None else _spans.origin()


def describe_operation(operation_type: str, name: str | None, root_fields: Sequence[str]) -> None:
    """Add a GraphQL operation to the span of its request."""
    if _spans is not None:
        _spans.describe_operation(operation_type, name, root_fields)


def end_request_span() -> None:
    """End the span of a subscription as soon as its stream has begun."""
    if _spans is not None:
        _spans.end_current()


def trace_redis_command(name: object, reply: "asyncio.Future[Any]") -> None:
    """Record a command to Redis from now until its reply."""
    if _spans is not None:
        _spans.redis_command(str(name), reply)


def mongo_listeners() -> list[Any]:
    """Return the listeners with which PyMongo records its commands."""
    return [] if _spans is None else [_spans.mongo_listener()]


def traceparent() -> str:
    """Return the trace of the current request as a W3C header, or an empty text."""
    return "" if _spans is None else _spans.traceparent()


def current_ids() -> dict[str, str]:
    """Return the ids of the current trace and span, for log lines."""
    return {} if _spans is None else _spans.current_ids()


def sampled_trace_id() -> str | None:
    """Return the id of the current trace if it is recorded, for exemplars."""
    return None if _spans is None else _spans.sampled_trace_id()
