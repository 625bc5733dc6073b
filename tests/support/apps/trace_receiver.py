"""A receiver of traces by OTLP over HTTP, as an OpenTelemetry collector is one."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.polling import wait_until


@dataclass
class TraceReceiver:
    """The spans that arrived, with the service and process of each."""

    url: str
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make an app send its traces here soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace."""
        return [span for span in list(self.spans) if span.trace_id.hex() == trace_id]

    def wait_for(self, trace_id: str, *names: str) -> list[Span]:
        """Wait until a trace has spans of these names, and return all of its spans."""
        wait_until(
            lambda: set(names) <= {span.name for span in self.trace(trace_id)},
            f"the trace has {names}",
        )
        return self.trace(trace_id)


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    """Run a receiver on a free port."""
    receiver = TraceReceiver("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                receiver.services |= {
                    each.value.string_value
                    for each in resource.resource.attributes
                    if each.key == "service.name"
                }
                for scope in resource.scope_spans:
                    receiver.spans.extend(scope.spans)
            response = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (of http.server)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
