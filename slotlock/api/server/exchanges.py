"""HTTP connections that respond to a whole request in one write.

uvicorn writes the header and the body of a response separately, and checks each header again.
"""

from functools import lru_cache

from uvicorn._types import ASGI3Application, HTTPScope
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.api.server.upgrades import NoUpgradeProtocol
from slotlock.graphql.transport.http_exchange import (
    EXTENSION,
    HttpExchange,
    HttpResponse,
    RawHeaders,
)


class ExchangeProtocol(NoUpgradeProtocol):
    """Offers the exchange of each request whose header and body arrived in one read."""

    # The request that the application processes; `cycle` is the one that arrived last.
    _current_cycle: RequestResponseCycle | None = None
    # The scope of the latest request whose header arrived in the current read. The application
    # is called for it after this read.
    _new_scope: HTTPScope | None = None

    def data_received(self, data: bytes) -> None:
        """Parse a read."""
        super().data_received(data)
        self._new_scope = None

    def on_headers_complete(self) -> None:
        """Note that the request began in this read."""
        super().on_headers_complete()
        self._new_scope = self.scope

    def on_message_complete(self) -> None:
        """Offer the exchange, unless the client waits for "100 Continue"."""
        super().on_message_complete()
        cycle = self.cycle
        if cycle is None or cycle.scope is not self._new_scope or cycle.waiting_for_100_continue:
            return
        # The exchange refers to the connection. With the request, it would be garbage that only a
        # collection deletes.
        exchange = HttpExchange(bytes(cycle.body), self._respond)
        cycle.scope["extensions"] = {EXTENSION: exchange}  # type: ignore[dict-item]

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    async def _respond(self, response: HttpResponse) -> None:
        """Write a response with the security headers, once the client has read earlier ones.

        A client that has disconnected gets nothing.
        """
        cycle = self._current_cycle
        if cycle is None or cycle.response_started:
            raise RuntimeError("a request has one response")
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if cycle.disconnected:
            return
        cycle.response_started = cycle.response_complete = True
        self.transport.write(_response_bytes(cycle, response))
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()


def _response_bytes(cycle: RequestResponseCycle, response: HttpResponse) -> bytes:
    lines = [b"%s: %s\r\n" % header for header in cycle.default_headers]
    if CLOSE_HEADER in response.headers:
        cycle.keep_alive = False
    elif not cycle.keep_alive:
        lines.append(b"%s: %s\r\n" % CLOSE_HEADER)
    return b"%scontent-length: %d\r\n%s\r\n%s" % (
        _header_block(response.status, response.headers),
        len(response.body),
        b"".join(lines),
        b"" if cycle.scope["method"] == "HEAD" else response.body,
    )


@lru_cache(maxsize=256)
def _header_block(status: int, headers: RawHeaders) -> bytes:
    """Return the status line, the headers of a response and the security headers."""
    names = {name for name, _ in headers}
    missing = (header for header in SECURITY_HEADERS if header[0] not in names)
    return STATUS_LINE[status] + b"".join(b"%s: %s\r\n" % each for each in (*headers, *missing))
