"""A server in a thread, for applications that are simpler than slotlock."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from slotlock.api.server.http_protocol import ServerConfig
from slotlock.api.server.unread_bytes import MAX_UNREAD_BYTES
from slotlock.api.server.websockets import StrictWebSocketProtocol
from tests.support.polling import wait_until

# The size of the buffers of both kernels.
SOCKET_BUFFER_BYTES = 64 * 1024

Address = tuple[str, int]


@contextlib.contextmanager
def running_server(
    app: ASGIApp,
    unread_timeout_s: float,
    lifespan: Literal["on", "off"] = "off",
    keep_alive_timeout_s: int = 5,
    max_unread_bytes: int = MAX_UNREAD_BYTES,
    graceful_stop_s: int | None = None,
    loop: Literal["auto", "asyncio", "uvloop"] = "auto",
) -> Iterator[tuple[uvicorn.Server, Address]]:
    """Run a server in a thread; at the end it must stop by itself."""
    config = ServerConfig(
        app,
        10,
        10,
        unread_timeout_s,
        max_unread_bytes,
        lifespan=lifespan,
        timeout_keep_alive=keep_alive_timeout_s,
        timeout_graceful_shutdown=graceful_stop_s,
        loop=loop,
        log_config=None,
        ws=StrictWebSocketProtocol,
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        yield server, listener.getsockname()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@contextlib.contextmanager
def connected(address: Address) -> Iterator[socket.socket]:
    """Open a connection with a small buffer for what the server sends."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
        connection.settimeout(20)
        connection.connect(address)
        yield connection
