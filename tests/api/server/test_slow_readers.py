"""Who leaves an answer unread keeps no place in a process; who reads slowly is waited for."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.server import timeouts
from slotlock.api.server.timeouts import TimeoutConfig
from tests.support.clients.raw_connection import read_until, reset_connection
from tests.support.polling import wait_until

UNREAD_S = 1.0
# What systems keep between a server and a client.
QUEUE = 64 * 1024
LARGE = 2 * 1024 * 1024
HEADERS = [(b"content-length", str(LARGE).encode())]


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """A large answer, whole or in parts; a small one; or one that lasts as long as its reader."""
    if scope["path"] == "/small":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"small"})
        return
    if scope["path"] == "/lasting":
        await last(receive, send)
        return
    parts = {"/whole": 1, "/parts": 64}[scope["path"]]
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    for part in range(parts):
        more = part + 1 < parts
        body = b"x" * (LARGE // parts)
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def last(receive: Receive, send: Send) -> None:
    """An answer that goes on until the client is gone."""
    await receive()
    gone = asyncio.ensure_future(receive())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not gone.done():
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.wait((gone,), timeout=0.02)


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A server with room for one request, that does not wait for readers for long."""
    with serving(UNREAD_S) as (_, bound):
        yield bound


@contextlib.contextmanager
def serving(unread_s: float) -> Iterator[tuple[uvicorn.Server, tuple[str, int]]]:
    """A server that waits so long for readers, and where it is; at the end it stops by itself."""
    app = LoadSheddingMiddleware(answers, max_requests=1, max_sockets=1)
    config = TimeoutConfig(app, 10, 10, unread_s, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, QUEUE)
        bound.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server")
        yield server, bound.getsockname()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@contextlib.contextmanager
def asked(address: tuple[str, int], path: str) -> Iterator[socket.socket]:
    """A connection on which something large was asked for, and nothing read yet."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, QUEUE)
        connection.settimeout(20)
        connection.connect(address)
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % path.encode())
        yield connection


def small(address: tuple[str, int]) -> int:
    """The status that the next one is told."""
    return httpx.get(f"http://{address[0]}:{address[1]}/small", trust_env=False).status_code


def read(connection: socket.socket, pause_s: float = 0.0) -> int:
    """How many bytes come, read by the piece."""
    count = 0
    with contextlib.suppress(ConnectionError):
        while count < LARGE and (more := connection.recv(QUEUE)):
            count += len(more)
            time.sleep(pause_s)
    return count


@pytest.mark.parametrize("sip", [0, 1])
def test_who_reads_next_to_nothing_loses_their_place_and_the_rest_of_the_answer(
    address: tuple[str, int], sip: int
) -> None:
    with asked(address, "/parts") as connection:
        wait_until(lambda: small(address) == 503, "the place to be taken")

        def let_go() -> bool:
            connection.recv(sip)
            return small(address) == 200

        wait_until(let_go, "the place to be free again")
        assert read(connection) < LARGE


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_who_reads_slowly_but_steadily_is_waited_for(address: tuple[str, int], path: str) -> None:
    with asked(address, path) as connection:
        begun = time.monotonic()
        assert read(connection, pause_s=0.06) >= LARGE
        assert time.monotonic() - begun > 2 * UNREAD_S


@pytest.mark.parametrize("end", [reset_connection, socket.socket.close])
@pytest.mark.parametrize("behind", ["", "/small"])
def test_who_is_gone_is_told_nothing_more_even_if_they_had_asked_for_more(
    address: tuple[str, int],
    behind: str,
    end: Callable[[socket.socket], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with asked(address, "/lasting") as connection:
        read_until(connection, b"x")
        if behind:
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % behind.encode())
        wait_until(lambda: small(address) == 503, "the place to be taken")
        end(connection)
        wait_until(lambda: small(address) == 200, "the place to be free again")
    assert "Exception in ASGI application" not in caplog.text


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_who_reads_nothing_holds_up_no_stop(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "SHUTDOWN_SEND_TIMEOUT_S", 0.5)
    with contextlib.ExitStack() as stack, serving(unread_s=1_000) as (_, bound):
        stack.enter_context(asked(bound, path)).recv(1)


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_who_reads_slowly_but_steadily_is_waited_for_by_a_stop(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "SHUTDOWN_SEND_TIMEOUT_S", UNREAD_S)
    with serving(unread_s=1_000) as (server, bound), asked(bound, path) as connection:
        connection.recv(1)
        server.should_exit = True
        begun = time.monotonic()
        assert read(connection, pause_s=0.06) + 1 >= LARGE
        assert time.monotonic() - begun > 1.5 * UNREAD_S
