"""Many tiny frames that come at once hold up nobody else of the process for long."""

import socket
import threading

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.frames import Frame

from slotlock.api.server import websockets
from slotlock.api.server.timeouts import TimeoutConfig
from tests.support.clients.raw_connection import WEBSOCKET_HANDSHAKE, read_until, websocket_frame
from tests.support.polling import wait_until

PONG, TEXT = websocket_frame(b"", 10), "the end " * 2_000
PONGS = 10_000


class Counted(websockets.StrictWebSocketProtocol):
    """Counts the pongs that it takes, in all and in one turn of the loop at most."""

    taken = most = now = 0

    def handle_pong(self, event: Frame) -> None:
        """Take one."""
        if Counted.now == 0:
            self.loop.call_soon(self.turn)
        Counted.now += 1
        Counted.taken += 1
        Counted.most = max(Counted.most, Counted.now)
        super().handle_pong(event)

    def turn(self) -> None:
        """Others have had one."""
        Counted.now = 0


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Say what was said."""
    await receive()
    await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0]})
    while (said := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": said["text"]})


def flood() -> None:
    """Send pongs and a message to a server, all at once, and hear the message again."""
    config = TimeoutConfig(
        echo, 10, 10, 10, lifespan="off", log_config=None, ws=Counted, ws_max_size=64 * 1024
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            wait_until(lambda: server.started, "the server")
            with socket.create_connection(bound.getsockname(), 20) as peer:
                peer.sendall(WEBSOCKET_HANDSHAKE)
                read_until(peer, b"\r\n\r\n")
                peer.sendall(PONG * PONGS + websocket_frame(TEXT.encode()))
                read_until(peer, TEXT.encode())
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Begin at zero."""
    Counted.taken = Counted.most = Counted.now = 0


def test_others_have_a_turn_between_frames_that_come_at_once() -> None:
    flood()
    assert Counted.taken == PONGS
    assert Counted.most <= websockets.READ_CHUNK // len(PONG) + 1


def test_control_taken_as_they_come_frames_leave_nobody_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = websockets.READ_CHUNK // len(PONG) + 1
    monkeypatch.setattr(websockets, "READ_CHUNK", 1 << 30)
    flood()
    assert Counted.taken == PONGS
    assert Counted.most > few
