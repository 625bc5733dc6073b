"""WebSockets under uvicorn, for peers that are silent, deaf or talk nonsense."""

import asyncio

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import OPEN

# How often the server pings, and how long the answer may take.
PING_EVERY_S = 20.0
PONG_WITHIN_S = 20.0
INVALID_UTF8 = 1007
NO_HANDSHAKE = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, which would wait for some peers for ever."""

    def data_received(self, data: bytes) -> None:
        """Refuse what can be no handshake; uvicorn leaves it unanswered and open."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(NO_HANDSHAKE)
            self.transport.close()

    def send_receive_event_to_app(self) -> None:
        """Close for text that is none, as uvicorn does, but without a traceback in the log."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self.frames = []
            if self.conn.state is OPEN:
                self.conn.send_close(INVALID_UTF8)
                self.handle_parser_exception()
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


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
