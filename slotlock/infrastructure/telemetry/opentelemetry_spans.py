"""Spans of OpenTelemetry, sent by OTLP over HTTP. OpenTelemetry reads its own variables."""

import asyncio
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.pymongo import CommandTracer
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pymongo.monitoring import CommandStartedEvent

from slotlock.infrastructure.telemetry.open_span import NO_SPAN, OpenSpan

MAX_NAME_LENGTH = 100

_propagator = TraceContextTextMapPropagator()


class _RecordedSpan(OpenSpan):
    """A span that is recorded, with the callers that it works for."""

    def __init__(self, span: Span, parent: Span | None = None) -> None:
        self._span = span
        # The callers that the span belongs to already; a batch may be joined more than once.
        self._origins: list[Span | None] = [None, parent]

    def join(self, origins: Iterable[Any]) -> None:
        """Link this span and those of further callers with each other."""
        for origin in origins:
            if origin not in self._origins and origin.is_recording():
                self._origins.append(origin)
                self._span.add_link(origin.get_span_context())
                origin.add_link(self._span.get_span_context())

    def set_status_code(self, status: int) -> None:
        """Record the status of the HTTP response; those of the server are errors."""
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._span.set_status(Status(StatusCode.ERROR))


class _CommandsOfRequests(CommandTracer):
    """OpenTelemetry's listener of PyMongo, without the commands of background work."""

    def started(self, event: CommandStartedEvent) -> None:
        if get_current_span().is_recording():
            super().started(event)


def send_no_spans(timeout_s: float) -> str | None:
    """Send an empty list of spans; return why the endpoint did not take it, or None. It blocks."""
    logger = logging.getLogger(OTLPSpanExporter.__module__)
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    log = QueueHandler(records)  # the exporter returns no reason, but logs it
    previous, logger.propagate = logger.propagate, False
    logger.addHandler(log)
    exporter = OTLPSpanExporter(timeout=timeout_s)
    try:
        if exporter.export(()) is SpanExportResult.SUCCESS:
            return None
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
        logger.removeHandler(log)
        logger.propagate = previous
    return "no reason" if records.empty() else records.get().getMessage()


class Spans:
    """The spans of this process."""

    def __init__(self, version: str) -> None:
        attributes: dict[str, str] = {"service.version": version}
        # Attributes of the program would override those of the operator.
        named_by_operator = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        if "OTEL_SERVICE_NAME" not in os.environ and "service.name=" not in named_by_operator:
            attributes["service.name"] = "slotlock"
        self._provider = TracerProvider(
            resource=Resource.create(attributes), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("slotlock", version)

    def close(self) -> None:
        """Send the spans that are left."""
        self._provider.shutdown()

    @contextmanager
    def internal(self, name: str) -> Iterator[OpenSpan]:
        """Open a span within the current one, if that is recorded."""
        if not get_current_span().is_recording():
            yield NO_SPAN
            return
        with self._tracer.start_as_current_span(name) as span:
            yield _RecordedSpan(span)

    @contextmanager
    def shared(self, name: str, origins: Sequence[Any]) -> Iterator[OpenSpan]:
        """Open a child of the first caller, linked to the others."""
        recorded = [each for each in origins if each is not None and each.is_recording()]
        if not recorded:
            yield NO_SPAN
            return
        context = set_span_in_context(recorded[0], Context())
        with self._tracer.start_as_current_span(name, context) as span:
            shared = _RecordedSpan(span, recorded[0])
            shared.join(recorded[1:])
            yield shared

    @contextmanager
    def server(self, name: str, headers: Mapping[str, str]) -> Iterator[OpenSpan]:
        """Open the span of a request, in the trace that its headers name."""
        context = _propagator.extract(headers, Context())
        span = self._tracer.start_span(name, context, SpanKind.SERVER)
        try:
            with use_span(span):
                yield _RecordedSpan(span)
        finally:
            if span.is_recording():  # that of a subscription has ended at its start
                span.end()

    @contextmanager
    def tickets(self, traceparents: Sequence[str]) -> Iterator[OpenSpan]:
        """Open a span in the trace of each queued request, and one for their common work."""
        with ExitStack() as stack:
            origins: list[Any] = []
            for traceparent in filter(None, traceparents):
                context = _propagator.extract({"traceparent": traceparent}, Context())
                if not get_current_span(context).get_span_context().is_valid:
                    continue
                requested = Link(get_current_span(context).get_span_context())
                ticket = self._tracer.start_span(
                    "process ticket", context, SpanKind.CONSUMER, links=[requested]
                )
                ticket.set_attribute("messaging.operation.type", "process")
                stack.callback(ticket.end)
                origins.append(ticket)
            with self.shared("slotlock.batch", origins) as span:
                yield span

    def origin(self) -> Any:
        """Return the current span if it is recorded."""
        span = get_current_span()
        return span if span.is_recording() else None

    def describe_operation(
        self, operation_type: str, name: str | None, root_fields: Sequence[str]
    ) -> None:
        """Add a GraphQL operation to the current span."""
        span = get_current_span()
        if not span.is_recording():
            return
        # The semantic conventions name the span after the type: clients choose names of operations.
        span.update_name(operation_type)
        span.set_attribute("graphql.operation.type", operation_type)
        span.set_attribute("slotlock.root_fields", list(root_fields))
        if name is not None:
            span.set_attribute("graphql.operation.name", name[:MAX_NAME_LENGTH])

    def end_current(self) -> None:
        """End the current span."""
        if get_current_span().is_recording():
            get_current_span().end()

    def redis_command(self, name: str, reply: "asyncio.Future[Any]") -> None:
        """Record a command from now until its reply."""
        if not get_current_span().is_recording():
            return
        attributes = {"db.system.name": "redis", "db.operation.name": name}
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)

        def end(done: "asyncio.Future[Any]") -> None:
            if done.cancelled() or done.exception() is not None:
                span.set_status(Status(StatusCode.ERROR))
            span.end()

        reply.add_done_callback(end)

    def mongo_listener(self) -> CommandTracer:
        """Return a listener that records the commands of PyMongo."""
        return _CommandsOfRequests(self._tracer)

    def traceparent(self) -> str:
        """Return the current trace as a W3C header, or an empty text."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def current_ids(self) -> dict[str, str]:
        """Return the ids of the current trace and span."""
        context = get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}

    def sampled_trace_id(self) -> str | None:
        """Return the id of the current trace if it is recorded."""
        span = get_current_span()
        return f"{span.get_span_context().trace_id:032x}" if span.is_recording() else None
