"""HTTP connections that are not kept waiting: who sends or reads too slowly is given up.

uvicorn waits for ever for the rest of a header or a body, and until its answer is read; whoever
holds many such connections holds the server (slowloris).
"""

import asyncio
import sys
from array import array
from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from slotlock.api.server.header_limit import HeaderLimitProtocol
from slotlock.api.server.raw_response import raw_response
from slotlock.graphql.transport.websocket import SHUTDOWN_SEND_TIMEOUT_S

if sys.platform != "win32":
    import fcntl
    import termios

HEADER, BODY = "header", "body"
# A large body may take a second more for as many bytes that came of it.
BODY_BYTES_PER_EXTRA_S = 16 * 1024
# So much of an answer is read in time by whoever reads at all.
MIN_READ_BYTES = 16 * 1024


class TimeoutConfig(Config):
    """Says besides how many seconds a header, a body, and reading on in an answer may take."""

    def __init__(
        self,
        app: ASGIApp | str,
        header_timeout_s: float,
        body_timeout_s: float,
        unread_timeout_s: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(app, http=TimeoutProtocol, **kwargs)
        self.timeouts_s = {HEADER: header_timeout_s, BODY: body_timeout_s}
        self.unread_timeout_s = unread_timeout_s


class TimeoutProtocol(HeaderLimitProtocol):
    """A connection, and what it waits for; only what does not come in one piece needs a timer."""

    config: TimeoutConfig
    # The number of the latest request, and which part of it is not whole: "" when all is.
    _request_number = 0
    _incomplete_part = HEADER
    _upgraded = False
    _timed_part: tuple[int, str] | None = None
    _part_timer: asyncio.TimerHandle | None = None
    # Bytes of a body for which no time was given yet.
    _uncredited_body_bytes = 0
    _read_timer: asyncio.TimerHandle | None = None
    _stopping = False
    # The request being answered: `cycle` is the one that came last.
    _current_cycle: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._update_part_timer()

    def data_received(self, data: bytes) -> None:
        """Take what comes, then wait for what is missing of it."""
        super().data_received(data)
        self._update_part_timer()

    def on_message_begin(self) -> None:
        """A header begins."""
        super().on_message_begin()
        self._request_number, self._incomplete_part = self._request_number + 1, HEADER

    def on_headers_complete(self) -> None:
        """A header is whole; its body follows."""
        super().on_headers_complete()
        self._incomplete_part, self._uncredited_body_bytes = BODY, 0

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._uncredited_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        super().on_message_complete()
        self._incomplete_part = ""

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection is a socket's, which has deadlines of its own."""
        self._upgraded = True
        self._cancel_read_timer()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._cancel_part_timer()
        self._cancel_read_timer()
        super().connection_lost(exc)
        if self._current_cycle is not None:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        """More is unread than is kept for anybody: somebody has to read on."""
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        """It was read."""
        if not self._stopping:
            self._cancel_read_timer()
        super().resume_writing()

    def shutdown(self) -> None:
        """The server stops: the rest of the answer has to be read on soon, however little it is."""
        super().shutdown()
        if not self._stopping:
            self._stopping = True
            self._start_read_timer()

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expected_part(self) -> tuple[int, str] | None:
        """The part that the client has to send now, and of which request."""
        if self._upgraded or self.transport.is_closing():
            return None
        if self._incomplete_part:
            return self._request_number, self._incomplete_part
        # Empty lines begin no request, but they have stopped uvicorn's own timer.
        return None if self._is_responding else (self._request_number + 1, HEADER)

    def _update_part_timer(self) -> None:
        awaited = self._expected_part()
        if awaited != self._timed_part:
            self._cancel_part_timer()
            if awaited is not None:
                self._timed_part = awaited
                self._part_timer = self.loop.call_later(
                    self.config.timeouts_s[awaited[1]], self._on_part_timeout
                )

    def _cancel_part_timer(self) -> None:
        self._timed_part = None
        if self._part_timer is not None:
            self._part_timer.cancel()
            self._part_timer = None

    def _on_part_timeout(self) -> None:
        if self._uncredited_body_bytes and self._incomplete_part == BODY and self._is_responding:
            earned_s, self._uncredited_body_bytes = (
                self._uncredited_body_bytes / BODY_BYTES_PER_EXTRA_S,
                0,
            )
            self._part_timer = self.loop.call_later(earned_s, self._on_part_timeout)
            return
        self._cancel_part_timer()
        if self.flow.read_paused or (self._is_responding and self._incomplete_part != BODY):
            self._update_part_timer()  # it is for us to read on, or to answer what came before
        elif self._expected_part() is not None:
            self._close_slow_connection()

    def _close_slow_connection(self) -> None:
        answered = self._incomplete_part == BODY and (
            not self._is_responding or self.cycle.response_started
        )
        # A browser may open a connection for later: it takes no answer to what it never asked.
        if self._request_number and self._incomplete_part and not answered:
            self.transport.write(raw_response(408, "The request took too long to come."))
        if self._is_responding:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _start_read_timer(self) -> None:
        self._cancel_read_timer()
        seconds = SHUTDOWN_SEND_TIMEOUT_S if self._stopping else self.config.unread_timeout_s
        self._read_timer = self.loop.call_later(
            seconds, self._check_read_progress, self._unread_bytes()
        )

    def _cancel_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _check_read_progress(self, unread_before: int) -> None:
        read = unread_before - self._unread_bytes()
        # In the shorter time anything counts, and what was begun may have nothing to read yet.
        if (read <= 0 < unread_before) if self._stopping else read < MIN_READ_BYTES:
            self.transport.abort()  # to close is to wait until the rest is read
        else:
            self._start_read_timer()

    def _unread_bytes(self) -> int:
        """The bytes that the client has not taken, here and in the system's queue.

        That queue is filled again only when much of it is gone: what we keep ourselves would stand
        still for minutes before somebody who reads slowly.
        """
        queued = array("i", [0])
        if sys.platform != "win32":  # which does not tell
            with suppress(OSError):
                fcntl.ioctl(self.transport.get_extra_info("socket"), termios.TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size() + queued[0]
