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

from slotlock.api.header_limit import BoundedProtocol
from slotlock.api.refusals import refusal
from slotlock.graphql.websocket import UNREAD_AT_STOP_S

if sys.platform != "win32":
    import fcntl
    import termios

HEADER, BODY = "header", "body"
# A large body may take a second more for as many bytes that came of it.
BYTES_A_SECOND = 16 * 1024
# So much of an answer is read in time by whoever reads at all.
LEAST_READ = 16 * 1024


class TimedConfig(Config):
    """Says besides how many seconds a header, a body, and reading on in an answer may take."""

    def __init__(
        self, app: ASGIApp | str, header_s: float, body_s: float, unread_s: float, **more: Any
    ) -> None:
        super().__init__(app, http=TimedProtocol, **more)
        self.seconds = {HEADER: header_s, BODY: body_s}
        self.unread_s = unread_s


class TimedProtocol(BoundedProtocol):
    """A connection, and what it waits for; only what does not come in one piece needs a timer."""

    config: TimedConfig
    # The number of the latest request, and which part of it is not whole: "" when all is.
    _number = 0
    _coming = HEADER
    _upgraded = False
    _timed: tuple[int, str] | None = None
    _timer: asyncio.TimerHandle | None = None
    # Bytes of a body for which no time was given yet.
    _received = 0
    _reader: asyncio.TimerHandle | None = None
    _stopping = False
    # The request being answered: `cycle` is the one that came last.
    _answered: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what comes, then wait for what is missing of it."""
        super().data_received(data)
        self._wait()

    def on_message_begin(self) -> None:
        """A header begins."""
        super().on_message_begin()
        self._number, self._coming = self._number + 1, HEADER

    def on_headers_complete(self) -> None:
        """A header is whole; its body follows."""
        super().on_headers_complete()
        self._coming, self._received = BODY, 0

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        super().on_message_complete()
        self._coming = ""

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection is a socket's, which has deadlines of its own."""
        self._upgraded = True
        self._stop_waiting_for_reader()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._stop_waiting()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        """More is unread than is kept for anybody: somebody has to read on."""
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """It was read."""
        if not self._stopping:
            self._stop_waiting_for_reader()
        super().resume_writing()

    def shutdown(self) -> None:
        """The server stops: the rest of the answer has to be read on soon, however little it is."""
        super().shutdown()
        if not self._stopping:
            self._stopping = True
            self._wait_for_reader()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _awaited(self) -> tuple[int, str] | None:
        """The part that the client has to send now, and of which request."""
        if self._upgraded or self.transport.is_closing():
            return None
        if self._coming:
            return self._number, self._coming
        # Empty lines begin no request, but they have stopped uvicorn's own timer.
        return None if self._answering else (self._number + 1, HEADER)

    def _wait(self) -> None:
        awaited = self._awaited()
        if awaited != self._timed:
            self._stop_waiting()
            if awaited is not None:
                self._timed = awaited
                self._timer = self.loop.call_later(self.config.seconds[awaited[1]], self._too_slow)

    def _stop_waiting(self) -> None:
        self._timed = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        if self._received and self._coming == BODY and self._answering:
            earned_s, self._received = self._received / BYTES_A_SECOND, 0
            self._timer = self.loop.call_later(earned_s, self._too_slow)
            return
        self._stop_waiting()
        if self.flow.read_paused or (self._answering and self._coming != BODY):
            self._wait()  # it is for us to read on, or to answer what came before
        elif self._awaited() is not None:
            self._give_up()

    def _give_up(self) -> None:
        answered = self._coming == BODY and (not self._answering or self.cycle.response_started)
        # A browser may open a connection for later: it takes no answer to what it never asked.
        if self._number and self._coming and not answered:
            self.transport.write(refusal(408, "The request took too long to come."))
        if self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _wait_for_reader(self) -> None:
        self._stop_waiting_for_reader()
        seconds = UNREAD_AT_STOP_S if self._stopping else self.config.unread_s
        self._reader = self.loop.call_later(seconds, self._look_at_reader, self._unread())

    def _stop_waiting_for_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def _look_at_reader(self, before: int) -> None:
        read = before - self._unread()
        # In the shorter time anything counts, and what was begun may have nothing to read yet.
        if (read <= 0 < before) if self._stopping else read < LEAST_READ:
            self.transport.abort()  # to close is to wait until the rest is read
        else:
            self._wait_for_reader()

    def _unread(self) -> int:
        """The bytes that the client has not taken, here and in the system's queue.

        That queue is filled again only when much of it is gone: what we keep ourselves would stand
        still for minutes before somebody who reads slowly.
        """
        queued = array("i", [0])
        if sys.platform != "win32":  # which does not tell
            with suppress(OSError):
                fcntl.ioctl(self.transport.get_extra_info("socket"), termios.TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size() + queued[0]
