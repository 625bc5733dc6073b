"""WebSockets under uvicorn, for peers that are silent, deaf or talk nonsense."""

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.api.server.raw_response import raw_response
from slotlock.graphql.transport.websocket import SHUTDOWN_SEND_TIMEOUT_S

# How often the server pings, and how long the answer may take.
PING_INTERVAL_S = 20.0
PONG_TIMEOUT_S = 20.0
# A message may come in so many frames: some may be empty, and each costs more than it holds.
MAX_FRAMES = 1_000
# So much is taken before others have a turn: it may be hundreds of frames.
READ_CHUNK = 4 * 1024
CLOSE_INVALID_UTF8 = 1007
CLOSE_TOO_BIG = 1009


class _HandshakeProtocol(ServerProtocol):
    """Whoever is refused here is told what every answer tells."""

    def reject(self, status: HTTPStatus | int, text: str) -> Response:
        response = super().reject(status, text)
        for name, value in SECURITY_HEADERS:
            response.headers[name.decode()] = value.decode()
        return response


class StrictWebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, which would wait for some peers for ever."""

    # What came and was not taken yet.
    _unparsed = b""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _HandshakeProtocol(
            extensions=self.conn.available_extensions,
            max_size=self.config.ws_max_size,
            logger=self.conn.logger,
        )

    def data_received(self, data: bytes) -> None:
        """Take a handshake, or begin to take what follows."""
        if not self.handshake_initiated:
            self._receive_handshake(data)
            return
        waiting, self._unparsed = bool(self._unparsed), self._unparsed + data
        if waiting:
            self._pause_or_resume_reading()
        else:
            self._parse_next_chunk()

    def _receive_handshake(self, data: bytes) -> None:
        super().data_received(data)
        # uvicorn leaves what can be none unanswered and open.
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(raw_response(400, "This is no handshake of a WebSocket."))
            self.transport.close()

    def _parse_next_chunk(self) -> None:
        if self.transport.is_closing():
            return
        piece, self._unparsed = self._unparsed[:READ_CHUNK], self._unparsed[READ_CHUNK:]
        super().data_received(piece)
        if self._unparsed and not self.transport.is_closing():
            self.loop.call_soon(self._parse_next_chunk)
        self._pause_or_resume_reading()

    def _pause_or_resume_reading(self) -> None:
        """Read from a peer that reads (else each ping would be answered) what can be taken."""
        if self.transport.is_closing():
            return
        if self._unparsed or self.read_paused or not self.writable.is_set():
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """The peer does not read."""
        super().pause_writing()
        self._pause_or_resume_reading()

    def resume_writing(self) -> None:
        """The peer has read."""
        super().resume_writing()
        self._pause_or_resume_reading()

    async def receive(self) -> ASGIReceiveEvent:
        """Give what came to the application; uvicorn then reads on, whether or not it may."""
        message = await super().receive()
        self._pause_or_resume_reading()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        """Send it. A handshake that was refused is done: uvicorn would log an error for each."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def handle_cont(self, event: Frame) -> None:
        """Take a further frame of a message, if it has not too many."""
        if len(self.frames) >= MAX_FRAMES:
            self._close_with_code(CLOSE_TOO_BIG)
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Close for text that is none, as uvicorn does, but without a traceback in the log."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self.frames = []
            self._close_with_code(CLOSE_INVALID_UTF8)
        else:
            super().send_receive_event_to_app()

    def keepalive_timeout(self) -> None:
        """Cut a peer that answers no ping, even if it left unread what was sent before."""
        super().keepalive_timeout()
        self.transport.abort()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Nobody speaks to the peer any more: what it has not read in time is not waited for."""
        super().on_task_complete(task)
        self.loop.call_later(self.close_timeout, self.transport.abort)

    def shorten_close(self) -> None:
        """The server is about to stop: what is unread when a socket is closed is not long kept."""
        self.close_timeout = SHUTDOWN_SEND_TIMEOUT_S
        if self.close_sent or self.transport.is_closing():
            self.loop.call_later(self.close_timeout, self.transport.abort)

    def shutdown(self) -> None:
        """End with the server; who had time to read the farewell and did not is cut."""
        super().shutdown()
        if not self.writable.is_set():
            self.transport.abort()

    def _close_with_code(self, code: int) -> None:
        if self.conn.state is OPEN:
            self.conn.send_close(code)
            self.handle_parser_exception()


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
