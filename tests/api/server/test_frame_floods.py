"""A WebSocket peer that sends many tiny frames at once does not block the event loop for long."""

import socket
import threading

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.frames import Frame

from slotlock.api.server import websockets
from slotlock.api.server.http_protocol import ServerConfig
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import WEBSOCKET_HANDSHAKE, read_until, websocket_frame

PONG = websocket_frame(b"", 10)
LAST_MESSAGE = "the end " * 2_000
PONG_COUNT = 10_000


class CountingProtocol(websockets.StrictWebSocketProtocol):
    """Counts all pongs, and the most pongs in one iteration of the event loop."""

    total = max_per_iteration = in_this_iteration = 0

    def handle_pong(self, event: Frame) -> None:
        """Count a pong."""
        counts = CountingProtocol
        if counts.in_this_iteration == 0:
            self.loop.call_soon(self.start_iteration)
        counts.in_this_iteration += 1
        counts.total += 1
        counts.max_per_iteration = max(counts.max_per_iteration, counts.in_this_iteration)
        super().handle_pong(event)

    def start_iteration(self) -> None:
        """Start to count for the next iteration."""
        CountingProtocol.in_this_iteration = 0


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Send every message back."""
    await receive()
    await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0]})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


def send_flood() -> None:
    """Send pongs and a message to a server at once, and wait for the echo of the message."""
    config = ServerConfig(
        echo,
        10,
        10,
        10,
        lifespan="off",
        log_config=None,
        ws=CountingProtocol,
        ws_max_size=64 * 1024,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started, "the server has started")
            with socket.create_connection(listener.getsockname(), 20) as peer:
                peer.sendall(WEBSOCKET_HANDSHAKE)
                read_until(peer, b"\r\n\r\n")
                peer.sendall(PONG * PONG_COUNT + websocket_frame(LAST_MESSAGE.encode()))
                read_until(peer, LAST_MESSAGE.encode())
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(autouse=True)
def reset_counts() -> None:
    """Reset the counters, which all connections share."""
    counts = CountingProtocol
    counts.total = counts.max_per_iteration = counts.in_this_iteration = 0


def test_other_tasks_run_between_frames_that_arrive_at_once() -> None:
    send_flood()
    assert CountingProtocol.total == PONG_COUNT
    assert CountingProtocol.max_per_iteration <= websockets.READ_CHUNK // len(PONG) + 1


def test_control_without_chunks_all_frames_are_parsed_in_one_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pongs_per_chunk = websockets.READ_CHUNK // len(PONG) + 1
    monkeypatch.setattr(websockets, "READ_CHUNK", 1 << 30)
    send_flood()
    assert CountingProtocol.total == PONG_COUNT
    assert CountingProtocol.max_per_iteration > pongs_per_chunk
