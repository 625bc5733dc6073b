"""WebSockets under uvicorn that withstand silent, unresponsive and malformed peers."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from struct import pack
from typing import Any, cast

import orjson
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from slotlock.api.middleware.response_headers import SECURITY_HEADERS
from slotlock.api.server.http_protocol import ServerConfig
from slotlock.api.server.request_headers import raw_response
from slotlock.graphql.transport.client_info import client_address
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.graphql.transport.push.direct_writes import EXTENSION, DirectWrites
from slotlock.graphql.transport.shutdown import SHUTDOWN_SEND_TIMEOUT_S

PING_INTERVAL_S = 20.0
PONG_TIMEOUT_S = 20.0
# Every frame of a message costs memory, even an empty one.
MAX_FRAMES = 1_000
# A read is parsed in chunks of this size, with other tasks in between: it can be many frames.
READ_CHUNK = 4 * 1024
# The first byte of the only frame of a text message.
FINAL_TEXT = 0x81
CLOSE_INVALID_UTF8 = 1007
CLOSE_TOO_BIG = 1009
# The state of every socket whose peer reads. An event for each would take 0.9 kB.
_WRITABLE = asyncio.Event()
_WRITABLE.set()


class EventQueue:
    """The events that the application has not received yet; the application is its one reader.

    A queue of asyncio holds four deques, each of which has room for 64 items: 3.3 kB for a socket.
    """

    __slots__ = ("_events", "_reader")

    def __init__(self) -> None:
        self._events: list[ASGIReceiveEvent] = []
        self._reader: asyncio.Future[None] | None = None

    def put_nowait(self, event: ASGIReceiveEvent) -> None:
        """Add an event, and wake the reader."""
        self._events.append(event)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def empty(self) -> bool:
        """Return whether there is no event."""
        return not self._events

    async def get(self) -> ASGIReceiveEvent:
        """Remove and return the oldest event; wait until there is one."""
        while not self._events:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._events.pop(0)


class _HandshakeProtocol(ServerProtocol):
    """Rejects handshakes with the body of all errors, and with the security headers."""

    def reject(self, status: HTTPStatus | int, text: str) -> Response:
        body = orjson.dumps(HttpError(int(status), " ".join(text.split())).body)
        response = super().reject(status, body.decode())
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/json"
        for name, value in SECURITY_HEADERS:
            response.headers[name.decode()] = value.decode()
        return response


class StrictWebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol with limits, and without its unlimited waits for a peer."""

    config: ServerConfig
    # Bytes that have arrived and are not parsed yet.
    _unparsed = b""
    # The size of the messages that wait until the peer reads.
    _waiting_bytes = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._on_writable: Callable[[], None] = _ignore
        self.queue = cast("asyncio.Queue[ASGIReceiveEvent]", EventQueue())
        self.writable = _WRITABLE
        replaced, self.conn = (
            self.conn,
            _HandshakeProtocol(
                extensions=self.conn.available_extensions,
                max_size=self.config.ws_max_size,
                logger=self.conn.logger,
            ),
        )
        replaced.parser.close()  # it refers to the object that holds it

    async def run_asgi(self) -> None:
        """Run the application, which may write text without waiting."""
        extension = DirectWrites(
            self._is_writable, _text_frame, self.transport.write, self._set_on_writable
        )
        cast("dict[str, object]", self.scope["extensions"])[EXTENSION] = extension
        await super().run_asgi()

    def _is_writable(self) -> bool:
        return (
            self.writable.is_set() and self.conn.state is OPEN and not self.transport.is_closing()
        )

    def _set_on_writable(self, callback: Callable[[], None]) -> None:
        self._on_writable = callback

    def data_received(self, data: bytes) -> None:
        """Parse a handshake, or the next chunk of frames."""
        if not self.handshake_initiated:
            self._receive_handshake(data)
            return
        is_parsing, self._unparsed = bool(self._unparsed), self._unparsed + data
        if is_parsing:
            self._pause_or_resume_reading()
        else:
            self._parse_next_chunk()

    def _receive_handshake(self, data: bytes) -> None:
        super().data_received(data)
        # uvicorn would leave a malformed handshake without a response and the connection open.
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(raw_response(400, "This is not a WebSocket handshake."))
            self.transport.close()

    def _parse_next_chunk(self) -> None:
        if self.transport.is_closing():
            return
        chunk, self._unparsed = self._unparsed[:READ_CHUNK], self._unparsed[READ_CHUNK:]
        super().data_received(chunk)
        if self._unparsed and not self.transport.is_closing():
            self.loop.call_soon(self._parse_next_chunk)
        self._pause_or_resume_reading()

    def _pause_or_resume_reading(self) -> None:
        """Read only while the peer reads; else it could make the server queue endless pongs."""
        if self.transport.is_closing():
            return
        if self._unparsed or self.read_paused or not self.writable.is_set():
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read."""
        self.writable = asyncio.Event()
        self._count_unread()
        self._pause_or_resume_reading()

    def resume_writing(self) -> None:
        """Read again from a peer that reads."""
        super().resume_writing()
        self.writable = _WRITABLE
        self._count_unread()
        self._pause_or_resume_reading()
        self._on_writable()

    async def receive(self) -> ASGIReceiveEvent:
        """Return the next event for the application; uvicorn then resumes reading in any case."""
        message = await super().receive()
        self._pause_or_resume_reading()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        """Send an event once the peer reads.

        uvicorn would log an error after each rejected handshake.
        """
        if not self.writable.is_set():
            await self._wait_until_writable(message)
        await super().send(message)
        if message["type"] == "websocket.accept":
            # The parser and uvicorn refer to the headers as long as the socket is open.
            self.request.headers.clear()
            self.response.headers.clear()
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    async def _wait_until_writable(self, message: ASGISendEvent) -> None:
        """Wait until the peer reads; uvicorn would write all that waited as soon as one passes."""
        size = len((cast("dict[str, Any]", message).get("text") or "").encode())
        self._waiting_bytes += size
        self._count_unread()
        try:
            while not (self.writable.is_set() or self.disconnected):
                await self.writable.wait()
        finally:
            self._waiting_bytes -= size
            self._count_unread()

    def _count_unread(self) -> None:
        if self.disconnected or self.transport.is_closing():
            self.config.unread_bytes.forget(self.transport)
        else:
            # A malformed handshake has no scope.
            address = client_address(getattr(self, "scope", {}))
            self.config.unread_bytes.update(self.transport, address, self._waiting_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what the peer has not read."""
        super().connection_lost(exc)
        self._count_unread()

    def handle_cont(self, event: Frame) -> None:
        """Accept a further frame of a message, up to MAX_FRAMES."""
        if len(self.frames) >= MAX_FRAMES:
            self._close_with_code(CLOSE_TOO_BIG)
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Close on text that is not UTF-8, without the traceback that uvicorn logs."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self.frames = []
            self._close_with_code(CLOSE_INVALID_UTF8)
        else:
            super().send_receive_event_to_app()

    def keepalive_timeout(self) -> None:
        """Abort the connection of a peer that answers no ping, even with unread data."""
        super().keepalive_timeout()
        self.transport.abort()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Give the peer `close_timeout` to read the rest after the application has returned."""
        super().on_task_complete(task)
        self.loop.call_later(self.close_timeout, self.transport.abort)

    def shorten_close(self) -> None:
        """Wait only SHUTDOWN_SEND_TIMEOUT_S for a peer to read, as the server stops soon."""
        self.close_timeout = SHUTDOWN_SEND_TIMEOUT_S
        if self.close_sent or self.transport.is_closing():
            self.loop.call_later(self.close_timeout, self.transport.abort)

    def shutdown(self) -> None:
        """Close the socket; abort it if the peer did not read in time."""
        super().shutdown()
        if not self.writable.is_set():
            self.transport.abort()

    def _close_with_code(self, code: int) -> None:
        if self.conn.state is OPEN:
            self.conn.send_close(code)
            self.handle_parser_exception()


def _text_frame(text: bytes) -> bytes:
    """Return a message in one frame (RFC 6455, 5.2).

    It is uncompressed, which is also allowed on a connection with compression (RFC 7692, 6).
    """
    length = len(text)
    if length < 126:
        header = pack("!BB", FINAL_TEXT, length)
    elif length < 2**16:
        header = pack("!BBH", FINAL_TEXT, 126, length)
    else:
        header = pack("!BBQ", FINAL_TEXT, 127, length)
    return header + text


def _ignore() -> None:
    """Do nothing."""


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
