"""HTTP connections that close when a client sends or reads too slowly, or leaves too much unread.

uvicorn waits without limit for the rest of a header or body, and for a client to read a response.
A client with many such connections could exhaust the server (slowloris).
"""

import asyncio
import sys
from array import array
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, cast

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
)

from slotlock.api.server.header_limit import HeaderLimitProtocol
from slotlock.api.server.raw_response import raw_response
from slotlock.graphql.limits.unread_bytes import MAX_UNREAD_BYTES, UnreadBytes
from slotlock.graphql.transport.shutdown import SHUTDOWN_SEND_TIMEOUT_S

if sys.platform != "win32":
    import fcntl
    import termios

HEADER, BODY = "header", "body"
# A body gets one more second for every so many bytes that have arrived.
BODY_BYTES_PER_EXTRA_S = 16 * 1024
# A client that reads less than this within the timeout does not read.
MIN_READ_BYTES = 16 * 1024


class TimeoutConfig(Config):
    """uvicorn's configuration, with seconds for a header, for a body and for reading a response.

    `unread_bytes` counts what the clients of the process have not read.
    """

    def __init__(
        self,
        app: ASGIApp | str,
        header_timeout_s: float,
        body_timeout_s: float,
        unread_timeout_s: float,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
        **kwargs: Any,
    ) -> None:
        # uvicorn would call an application without `async def`, as a middleware may be, as ASGI 2.
        super().__init__(app, http=TimeoutProtocol, interface="asgi3", **kwargs)
        self.timeouts_s = {HEADER: header_timeout_s, BODY: body_timeout_s}
        self.unread_timeout_s = unread_timeout_s
        self.unread_bytes = UnreadBytes(max_unread_bytes)


class TimeoutProtocol(HeaderLimitProtocol):
    """A connection with a timer for the part that it expects, and one for unread responses.

    A request that arrives in one read starts no timer.
    """

    config: TimeoutConfig
    # The number of the latest request and its incomplete part: HEADER, BODY or "".
    _request_number = 0
    _incomplete_part = HEADER
    _upgraded = False
    _timed_part: tuple[int, str] | None = None
    _part_timer: asyncio.TimerHandle | None = None
    # Bytes of the body that have not extended its time yet.
    _uncredited_body_bytes = 0
    _read_timer: asyncio.TimerHandle | None = None
    # The address that the unread bytes count for: that of the client whose response is written.
    _unread_address: str | None = None
    # The size of the part of a response that waits until the client reads.
    _waiting_bytes = 0
    _is_lost = False
    _stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first header."""
        super().connection_made(transport)
        # Each byte that the kernel does not take counts as unread, also on a socket.
        transport.set_write_buffer_limits(high=0)
        self._update_part_timer()

    def data_received(self, data: bytes) -> None:
        """Parse a read, then time the part that is still missing."""
        # Without a timer, the parser is between two requests.
        if self._timed_part is None and self.serve_repeated_header(data):
            return
        super().data_received(data)
        self._update_part_timer()

    def on_message_begin(self) -> None:
        """Expect the rest of a header."""
        super().on_message_begin()
        self._request_number, self._incomplete_part = self._request_number + 1, HEADER

    def on_headers_complete(self) -> None:
        """Expect a body."""
        super().on_headers_complete()
        self._incomplete_part, self._uncredited_body_bytes = BODY, 0

    def on_body(self, body: bytes) -> None:
        """Count the bytes that extend the time of the body."""
        self._uncredited_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect nothing more of this request."""
        super().on_message_complete()
        self._incomplete_part = ""

    def handle_websocket_upgrade(self) -> None:
        """Stop the timers: the WebSocket protocol has its own."""
        if self.flow.write_paused:
            self.transport.abort()  # no client asks for a socket before it has read a response
            return
        self._upgraded = True
        self._cancel_read_timer()
        super().handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment]  # they refer to each other

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and tell the application that the client has disconnected."""
        self._cancel_part_timer()
        self._cancel_read_timer()
        self._is_lost = True
        self._count_unread()
        super().connection_lost(exc)
        if self._current_cycle is not None:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()

    def pause_writing(self) -> None:
        """Start the timer for reading, and count what the kernel did not take."""
        super().pause_writing()
        self._start_read_timer()
        self._unread_address = self.responding_address()
        self._count_unread()

    def resume_writing(self) -> None:
        """Stop the timer for reading, except during a shutdown."""
        if not self._stopping:
            self._cancel_read_timer()
        self._count_unread()
        super().resume_writing()

    def shutdown(self) -> None:
        """Give the client SHUTDOWN_SEND_TIMEOUT_S to read on in the response."""
        super().shutdown()
        if not self._stopping:
            self._stopping = True
            self._start_read_timer()

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expected_part(self) -> tuple[int, str] | None:
        """Return the request and the part that the client has to send now."""
        if self._upgraded or self.transport.is_closing():
            return None
        if self._incomplete_part:
            return self._request_number, self._incomplete_part
        # Empty lines start no request, but they stop uvicorn's own keep-alive timer.
        return None if self._is_responding else (self._request_number + 1, HEADER)

    def _update_part_timer(self) -> None:
        expected = self._expected_part()
        if expected != self._timed_part:
            self._cancel_part_timer()
            if expected is not None:
                self._timed_part = expected
                self._part_timer = self.loop.call_later(
                    self.config.timeouts_s[expected[1]], self._on_part_timeout
                )

    def _cancel_part_timer(self) -> None:
        self._timed_part = None
        if self._part_timer is not None:
            self._part_timer.cancel()
            self._part_timer = None

    def _on_part_timeout(self) -> None:
        if self._uncredited_body_bytes and self._incomplete_part == BODY and self._is_responding:
            extra_s = self._uncredited_body_bytes / BODY_BYTES_PER_EXTRA_S
            self._uncredited_body_bytes = 0
            self._part_timer = self.loop.call_later(extra_s, self._on_part_timeout)
            return
        self._cancel_part_timer()
        if self.flow.read_paused or (self._is_responding and self._incomplete_part != BODY):
            self._update_part_timer()  # the server has to read on or to respond first
        elif self._expected_part() is not None:
            self._close_slow_connection()

    def _close_slow_connection(self) -> None:
        has_response = self._incomplete_part == BODY and (
            not self._is_responding or self.cycle.response_started
        )
        # Browsers open connections in advance: without a request there is no response either.
        if self._request_number and self._incomplete_part and not has_response:
            self.transport.write(raw_response(408, "The request took too long to arrive."))
        if self._is_responding:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _start_read_timer(self) -> None:
        self._cancel_read_timer()
        seconds = SHUTDOWN_SEND_TIMEOUT_S if self._stopping else self.config.unread_timeout_s
        self._read_timer = self.loop.call_later(
            seconds, self._check_read_progress, self._queued_bytes()
        )

    def _cancel_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _check_read_progress(self, unread_before: int) -> None:
        read_bytes = unread_before - self._queued_bytes()
        if self._stopping:
            # The time is short, so any progress counts; a response may also have no bytes yet.
            is_stuck = read_bytes <= 0 < unread_before
        else:
            is_stuck = read_bytes < MIN_READ_BYTES
        if is_stuck:
            self.transport.abort()  # close() would wait until the client has read the rest
        else:
            self._start_read_timer()

    def call_app(
        self,
        app: ASGI3Application,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> Awaitable[None]:
        """Call an application, and count what it sends while the client does not read."""
        return app(scope, receive, partial(self._send, send))

    def _send(self, send: ASGISendCallable, message: ASGISendEvent) -> Awaitable[None]:
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

    def _count_unread(self) -> None:
        unread_bytes = self.config.unread_bytes
        if self._is_lost:
            unread_bytes.forget(self.transport, self._unread_address)
        else:
            unread_bytes.update(self.transport, self._unread_address, self._waiting_bytes)

    def _queued_bytes(self) -> int:
        """Return how many bytes the client has not read, in this process and in the kernel.

        The kernel takes more only after much of its queue is gone. The buffer of the process alone
        would show no progress for minutes while a slow client reads.
        """
        queued = array("i", [0])
        if sys.platform != "win32":  # Windows does not report its queue
            with suppress(OSError):
                fcntl.ioctl(self.transport.get_extra_info("socket"), termios.TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size() + queued[0]
