"""Connections of HTTP under uvicorn that withstand slow, malformed and silent clients.

`docs/decisions/0057-one-protocol-class.md` says of each guard who is harmed without it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from math import inf
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
)
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from slotlock.api.middleware.load_shedding import (
    OVERLOADED_RESPONSE,
    SHED_REQUESTS,
)
from slotlock.api.server.direct_posts import DirectPosts, find_post, response_head
from slotlock.api.server.read_timer import ReadTimer
from slotlock.api.server.request_headers import (
    MAX_HEADER_BYTES,
    TOO_LARGE_MESSAGE,
    RejectedRequestError,
    raw_response,
    validate_header,
)
from slotlock.api.server.unread_bytes import MAX_UNREAD_BYTES, UnreadBytes
from slotlock.graphql.transport.client_info import client_address
from slotlock.graphql.transport.content_negotiation import negotiate
from slotlock.graphql.transport.http import (
    EVENT_STREAM,
    MAX_ACCEPT_LENGTH,
    OFFERED_MEDIA_TYPES,
)
from slotlock.graphql.transport.http_messages import (
    STOPPING_RESPONSE,
    HttpRequest,
    HttpResponse,
)
from slotlock.infrastructure.telemetry import request_ids

# What a client has to send next. Between two requests, it may send empty lines.
HEADER, BODY, NEXT_REQUEST, NOTHING, END = "header", "body", "next request", "", "end"
# A body gets one more second for every so many bytes that have arrived.
BODY_BYTES_PER_EXTRA_S = 16 * 1024
# A client that is still sending gets so many seconds and bytes to read its last response.
LINGER_S = 30.0
MAX_DROPPED_BYTES = 16 * 1024 * 1024
# When the server stops, a proxy may just be sending a request on an idle connection, and cannot
# know whether a POST that got no response was processed.
IDLE_AT_STOP_S = 0.5


class ServerConfig(Config):
    """uvicorn's configuration, with seconds for a header, for a body and for reading a response.

    `unread_bytes` counts what the clients of the process have not read. A connection made
    while `is_stopping` ends after one request.
    """

    is_stopping = False

    def __init__(
        self,
        app: ASGIApp | Callable[[], ASGIApp],
        header_timeout_s: float,
        body_timeout_s: float,
        unread_timeout_s: float,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
        **kwargs: Any,
    ) -> None:
        # uvicorn would call an application without `async def`, as a middleware may be, as ASGI 2.
        super().__init__(app, http=HttpProtocol, interface="asgi3", **kwargs)
        self.timeouts_s = {
            HEADER: header_timeout_s,
            BODY: body_timeout_s,
            NEXT_REQUEST: float(self.timeout_keep_alive),
            END: LINGER_S,
        }
        self.unread_timeout_s = unread_timeout_s
        self.unread_bytes = UnreadBytes(max_unread_bytes)


class DirectRequest(RequestResponseCycle):
    """A request without ASGI, with the attributes that uvicorn reads of every request."""

    disconnected = response_started = response_complete = more_body = False
    keep_alive = True
    message_event = asyncio.Event()  # nobody waits for parts of a request that arrived as a whole
    post: HttpRequest


# Creates a request in C, without the state that uvicorn's constructor adds for ASGI.
_new_request = object.__new__


class HttpProtocol(HttpToolsProtocol):
    """One connection. `cycle` is the request that arrived last, `_current` the processed one."""

    config: ServerConfig
    _current: RequestResponseCycle | None = None
    # The next request, while the client does not read the response before it.
    _delayed: tuple[RequestResponseCycle, ASGI3Application] | None = None
    # The response to a malformed request that arrived behind others in progress.
    _rejection = b""

    # What the client has to send next, and until when. One timer goes off then, or earlier.
    _part = NEXT_REQUEST
    _deadline = inf
    _timer: asyncio.TimerHandle | None = None
    # Bytes of the body that have not extended its time yet.
    _uncredited_body_bytes = 0
    # The size of the latest reads that completed no header and contained no part of a body.
    _headless_bytes = 0
    # Whether the connection ends after the current response, although the client is still sending.
    _is_last = False
    # Bytes of a client that sends on after the last response.
    _dropped_bytes = 0

    # The address that the unread bytes count for: that of the client whose response is written.
    _unread_address: str | None = None
    # The size of the part of a response that waits until the client reads.
    _waiting_bytes = 0
    _is_lost = False
    _is_stopping = False
    _read_timer: ReadTimer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._posts: DirectPosts | None = self.app_state.get("direct_posts")
        self._trusted_proxy: ProxyHeadersMiddleware | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first header."""
        super().connection_made(transport)
        # Each byte that the kernel does not take counts as unread, also on a socket.
        transport.set_write_buffer_limits(high=0)
        app, host = self.app, self.client[0] if self.client else None
        if isinstance(app, ProxyHeadersMiddleware) and host in app.trusted_hosts:
            self._trusted_proxy = app
        self._read_timer = ReadTimer(self.loop, transport, self.config.unread_timeout_s)
        self._deadline = self.loop.time() + self.config.timeouts_s[HEADER]
        self._start_timer()
        if self.config.is_stopping:
            self.shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and tell the application that the client has disconnected."""
        self._stop_timers()
        self._is_lost = True
        self._count_unread()
        super().connection_lost(exc)
        if self._current is not None:  # uvicorn does that for the request that arrived last
            self._current.disconnected = True
            self._current.message_event.set()

    # Reading

    def data_received(self, data: bytes) -> None:
        """Serve a read that is a usual POST to /graphql; let the parser read all others."""
        if self._rejection:
            return
        if self._part == NEXT_REQUEST and self._serve_directly(data):
            return
        if self._part == END:
            self._drop(len(data))
            return
        self._headless_bytes += len(data)
        try:
            self._parse(memoryview(data))
        except HttpParserUpgrade:
            self.handle_websocket_upgrade()
            return
        except RejectedRequestError as error:
            self._reject(error)
        except HttpParserError as error:
            cause = error.__context__  # what a callback raised
            if not isinstance(cause, RejectedRequestError):
                cause = RejectedRequestError(400, "Invalid HTTP request received.")
            self._reject(cause)
        else:
            if self._headless_bytes > MAX_HEADER_BYTES:
                self._reject(RejectedRequestError(431, TOO_LARGE_MESSAGE))
        self._start_timer()

    def _parse(self, data: memoryview) -> None:
        """Let the parser read; it calls the methods `on_*`.

        It stops at each request that asks for an upgrade. If the server does not support that, it
        reads the header again without the upgrade (RFC 9110, 7.8): otherwise it would lose the
        body, or read it as another request.

        Raises:
            HttpParserUpgrade: the connection becomes a WebSocket.
            HttpParserError: the request is malformed.
        """
        while True:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    raise
                data = data[upgrade.args[0] :]
                header = self._header_without_upgrade()
                self.parser = HttpRequestParser(self)  # the old one may expect no more requests
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn
                self.parser.feed_data(header)
            else:
                return

    def _ignores_upgrade(self) -> bool:
        """Return whether the parser will read this header again without its upgrade."""
        return self.parser.should_upgrade() and not self._should_upgrade()

    def _header_without_upgrade(self) -> bytes:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise RejectedRequestError(400, "This server is not a proxy.")
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        """Expect the rest of a header."""
        super().on_message_begin()
        self._expect(HEADER)

    def on_headers_complete(self) -> None:
        """Reject a malformed or too large header before the application is called."""
        validate_header(self.headers, self.url, self.parser.get_http_version())
        if self._ignores_upgrade():
            return
        # The parser appends trailers, which are no part of the header (RFC 9110, 6.5.1).
        self.headers = self.headers.copy()
        super().on_headers_complete()
        self._headless_bytes = self._uncredited_body_bytes = 0
        self._expect(BODY)

    def on_body(self, body: bytes) -> None:
        """Count the bytes that extend the time of the body."""
        self._headless_bytes = 0
        self._uncredited_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect nothing more of this request."""
        if self._ignores_upgrade():
            return
        super().on_message_complete()
        self._expect(NOTHING if self._is_responding else NEXT_REQUEST)

    def _reject(self, error: RejectedRequestError) -> None:
        """Respond to a malformed request, after the responses to those before it, and close."""
        response, current = raw_response(error.status, str(error)), self._current
        if self._is_responding and self.cycle.more_body and self.cycle is not current:
            # Its body is malformed while it waits for those before it: it is not processed.
            if self.pipeline:
                self.pipeline.popleft()
            else:
                self._delayed = None
        in_progress = current if current and not current.response_complete else None
        if self._delayed or (in_progress and not in_progress.more_body):
            self._rejection = response
        else:
            if not (in_progress and in_progress.response_started):
                self.transport.write(response)
            self._linger()

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the WebSocket protocol, which has timers of its own."""
        if self.flow.write_paused:
            self.transport.abort()  # no client asks for a socket before it has read a response
            return
        self._stop_timers()
        super().handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment]  # they refer to each other

    # Requests without ASGI

    def _serve_directly(self, data: bytes) -> bool:
        """Serve a usual POST to /graphql. Return False if the read is something else."""
        posts = self._posts
        if posts is None or self.flow.write_paused or self.transport.is_closing():
            return False
        if (found := find_post(data)) is None:
            return False
        headers, body = found
        host = self.client[0] if self.client else None
        if self._trusted_proxy and (forwarded_for := headers.get("x-forwarded-for")) is not None:
            host = _forwarded_host(self._trusted_proxy, forwarded_for) or host
        id_ = request_ids.request_id(headers.get(request_ids.HEADER))
        accepted = headers.get("accept", "")[:MAX_ACCEPT_LENGTH] or "*/*"
        media_type = negotiate(accepted, OFFERED_MEDIA_TYPES)
        if media_type == EVENT_STREAM or (posts.has_cors and "origin" in headers):
            return False  # only middleware counts streams as sockets, and adds headers of CORS
        post = HttpRequest(headers, media_type, body, host, id_)
        self._part, self._deadline = NOTHING, inf
        self.cycle = self._current = request = _new_request(DirectRequest)
        request.post = post
        request.keep_alive = not self._is_stopping
        limit = posts.limit
        if limit.active >= limit.max_active:
            SHED_REQUESTS.labels("http").inc()
            self._write_response(request, OVERLOADED_RESPONSE)
            return True
        limit.active += 1
        task = self.loop.create_task(posts.respond(post))
        self.tasks.add(task)  # type: ignore[arg-type]  # no task of it is awaited
        task.add_done_callback(partial(self._on_response, request, posts))
        return True

    def _on_response(
        self, request: DirectRequest, posts: DirectPosts, task: asyncio.Task[HttpResponse]
    ) -> None:
        """Write the response of a task that has ended in the iteration before.

        A write wakes its reader, who takes the processor. The responses to one batch are therefore
        written in a row, and the next requests arrive together.
        """
        self.tasks.discard(task)
        posts.limit.active -= 1
        if task.cancelled():  # by a stop, before it began
            self._write_response(request, STOPPING_RESPONSE)
        elif (error := task.exception()) is None:
            self._write_response(request, task.result())
        else:
            self.logger.error("a direct request failed", exc_info=error)
            if not request.disconnected:
                self.transport.write(raw_response(500, "Internal Server Error"))
            request.response_complete = True
            self.transport.close()

    def _write_response(self, request: DirectRequest, response: HttpResponse) -> None:
        if request.disconnected:
            return
        headers, body = response.headers, response.body
        keep_alive = request.keep_alive and CLOSE_HEADER not in headers
        request.response_started = request.response_complete = True
        head = response_head(response.status, headers)
        for header in self.server_state.default_headers:
            head += b"%s: %s\r\n" % header
        if not keep_alive:
            head += b"connection: close\r\n"
        self.transport.write(
            b"%sx-request-id: %s\r\ncontent-length: %d\r\n\r\n%s"
            % (head, request.post.request_id.encode(), len(body), body)
        )
        if not keep_alive:
            self.transport.close()
        self.on_response_complete()

    # Requests over ASGI

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Start to process a request, once the client has read the response before it."""
        if self.flow.write_paused:
            self._delayed = cycle, app
            return
        self._current = cycle
        if self._is_stopping:
            cycle.keep_alive = False
        super()._start_asgi_task(cycle, partial(self._call_app, app))

    def _call_app(
        self,
        app: ASGI3Application,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> Awaitable[None]:
        return app(scope, receive, partial(self._send, send))

    def _send(self, send: ASGISendCallable, message: ASGISendEvent) -> Awaitable[None]:
        current = self._current
        if current and current.more_body and current.response_started and not current.keep_alive:
            current.keep_alive = self._is_last = True  # uvicorn would close at once
        if self.flow.write_paused and not self.transport.is_closing():
            return self._send_when_read(send, message)
        return send(message)

    async def _send_when_read(self, send: ASGISendCallable, message: ASGISendEvent) -> None:
        """Send an event once the client has read those before; uvicorn would not count it."""
        size = len(cast("dict[str, Any]", message).get("body", b""))
        self._waiting_bytes += size
        self._count_unread()
        try:
            while self.flow.write_paused:
                await self.flow.drain()
        finally:
            self._waiting_bytes -= size
            self._count_unread()
        await send(message)

    def on_response_complete(self) -> None:
        """Start the next request of a pipeline; without one, expect another request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self._is_last:
            self._linger()
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._rejection:
            self.transport.write(self._rejection)
            self._linger()
        elif self._part == NOTHING:
            self._part = NEXT_REQUEST
            self._deadline = self.loop.time() + self.config.timeouts_s[NEXT_REQUEST]
            if self._timer is None or self._timer.when() > self._deadline:
                self._start_timer()

    # Slow clients: the time to send the next part

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect(self, part: str) -> None:
        """Expect this part of a request from now on, for its time."""
        self._part = part
        self._deadline = self.loop.time() + self.config.timeouts_s.get(part, inf)

    def _start_timer(self) -> None:
        """Let the timer go off at the deadline, unless it goes off earlier."""
        if self._timer is not None:
            if self._timer.when() <= self._deadline:
                return
            self._timer.cancel()
        is_needed = self._deadline < inf and not self.transport.is_closing()
        self._timer = self.loop.call_at(self._deadline, self._on_timer) if is_needed else None

    def _on_timer(self) -> None:
        self._timer = None
        if self._deadline <= self.loop.time() and not self.transport.is_closing():
            self._on_timeout()
        self._start_timer()

    def _on_timeout(self) -> None:
        if self._part == BODY and self._is_responding and self._uncredited_body_bytes:
            extra_s = self._uncredited_body_bytes / BODY_BYTES_PER_EXTRA_S
            self._uncredited_body_bytes = 0
            self._deadline = self.loop.time() + extra_s
        elif self.flow.read_paused or (self._is_responding and self._part != BODY):
            self._expect(self._part)  # the server has to read on or to respond first
        else:
            self._close_slow_connection()

    def _close_slow_connection(self) -> None:
        has_response = self._part == BODY and (
            not self._is_responding or self.cycle.response_started
        )
        # Browsers open connections in advance: without a request there is no response either.
        if self._part in (NEXT_REQUEST, END):
            self.transport.close()
            return
        if not has_response:
            self.transport.write(raw_response(408, "The request took too long to arrive."))
        self._linger()

    def _linger(self) -> None:
        """End what the server sends, and drop for a while what the client is still sending.

        A close with unread bytes resets the connection, and the client may lose the response
        (RFC 9112, 9.6).
        """
        if self._is_stopping:
            self.transport.close()
        if self.transport.is_closing():
            return
        for cycle in (self.cycle, self._current):
            if cycle is not None:
                cycle.disconnected = cycle.response_complete = True
                cycle.message_event.set()
        self.pipeline.clear()
        self._delayed, self._rejection = None, b""
        self._expect(END)
        self._start_timer()
        self.flow.resume_reading()
        self.transport.write_eof()

    def _drop(self, size: int) -> None:
        self._dropped_bytes += size
        if self._dropped_bytes > MAX_DROPPED_BYTES:
            self.transport.close()

    def _stop_timers(self) -> None:
        self._deadline = inf
        self._read_timer.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Slow readers: the time to read a response, and how much of it waits

    def pause_writing(self) -> None:
        """Start the timer for reading, and count what the kernel did not take."""
        super().pause_writing()
        self._read_timer.start()
        cycle = self._current
        if isinstance(cycle, DirectRequest):
            client: Any = (cycle.post.client_host,)
        else:
            client = cycle.scope["client"] if cycle else self.client
        self._unread_address = client_address({"client": client})
        self._count_unread()

    def resume_writing(self) -> None:
        """Stop the timer for reading, except during a stop; process the request that waited."""
        self._read_timer.stop()
        self._count_unread()
        super().resume_writing()
        if self._delayed is not None:
            delayed, self._delayed = self._delayed, None
            self._start_asgi_task(*delayed)

    def shutdown(self) -> None:
        """End the connection after its response, or after that to a request on its way.

        The client has SHUTDOWN_SEND_TIMEOUT_S to read on in the response, and IDLE_AT_STOP_S to
        begin a request.
        """
        if self._is_responding:
            super().shutdown()
        elif not self._is_stopping:
            self._deadline = min(self._deadline, self.loop.time() + IDLE_AT_STOP_S)
            self._start_timer()
        self._is_stopping = True
        self._read_timer.start_for_shutdown()

    def _count_unread(self) -> None:
        unread_bytes = self.config.unread_bytes
        if self._is_lost:
            unread_bytes.forget(self.transport)
        else:
            unread_bytes.update(self.transport, self._unread_address, self._waiting_bytes)


@lru_cache(maxsize=10_000)
def _forwarded_host(proxies: ProxyHeadersMiddleware, forwarded_for: str) -> str | None:
    """Return the client that a trusted proxy names, as uvicorn does for requests over ASGI."""
    return proxies.trusted_hosts.get_trusted_client_address(forwarded_for)[0]
