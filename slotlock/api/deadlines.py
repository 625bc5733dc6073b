"""HTTP connections that are not kept waiting: a request that is sent too slowly is given up.

uvicorn waits for ever for the rest of a header or a body, and whoever holds many such connections
holds the server (slowloris).
"""

import asyncio
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from slotlock.api.header_limit import BoundedProtocol

_TOO_SLOW = STATUS_LINE[408] + b"content-length: 0\r\nconnection: close\r\n\r\n"

HEADER, BODY = "header", "body"


class TimedConfig(Config):
    """Says besides how many seconds a whole header and a whole body may take."""

    def __init__(self, app: ASGIApp | str, header_s: float, body_s: float, **more: Any) -> None:
        super().__init__(app, http=TimedProtocol, **more)
        self.seconds = {HEADER: header_s, BODY: body_s}


class TimedProtocol(BoundedProtocol):
    """A connection, and what it waits for; only what does not come in one piece needs a timer."""

    config: TimedConfig
    # The number of the latest request, and which part of it is not whole: "" when all is.
    _number = 0
    _coming = HEADER
    _upgraded = False
    _timed: tuple[int, str] | None = None
    _timer: asyncio.TimerHandle | None = None

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
        self._coming = BODY

    def on_message_complete(self) -> None:
        """A request is whole."""
        super().on_message_complete()
        self._coming = ""

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection is a socket's, which has deadlines of its own."""
        self._upgraded = True
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._stop_waiting()
        super().connection_lost(exc)

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
        self._stop_waiting()
        if self.flow.read_paused or (self._answering and self._coming != BODY):
            self._wait()  # it is for us to read on, or to answer what came before
        elif self._awaited() is not None:
            self._give_up()

    def _give_up(self) -> None:
        answered = self._coming == BODY and (not self._answering or self.cycle.response_started)
        # A browser may open a connection for later: it takes no answer to what it never asked.
        if self._number and self._coming and not answered:
            self.transport.write(_TOO_SLOW)
        if self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
