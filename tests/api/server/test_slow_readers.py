"""A client that does not read its response loses its place; one that reads slowly does not."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.server import read_timer
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import read_until, reset_connection
from tests.support.transport.uvicorn_server import (
    SOCKET_BUFFER_BYTES,
    Address,
    connected,
    running_server,
)

# A busy machine may hold up a client that reads steadily for a second or two.
UNREAD_TIMEOUT_S = 3.0
PAUSE_S = 0.2
LARGE_BYTES = 2 * 1024 * 1024
LARGE_HEADERS = [(b"content-length", str(LARGE_BYTES).encode())]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with a small body, a large one (whole or in parts), or one that does not end."""
    if scope["path"] == "/small":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"small"})
        return
    if scope["path"] == "/endless":
        await send_until_disconnected(receive, send)
        return
    part_count = {"/whole": 1, "/parts": 64}[scope["path"]]
    await send({"type": "http.response.start", "status": 200, "headers": LARGE_HEADERS})
    for part in range(part_count):
        more = part + 1 < part_count
        body = b"x" * (LARGE_BYTES // part_count)
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def send_until_disconnected(receive: Receive, send: Send) -> None:
    """Send a byte now and then until the client disconnects."""
    await receive()
    disconnected = asyncio.ensure_future(receive())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not disconnected.done():
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.wait((disconnected,), timeout=0.02)


def one_request_at_once() -> ASGIApp:
    """Return the application with room for one request."""
    return LoadSheddingMiddleware(application, max_requests=1, max_sockets=1)


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """Yield the address of a server with room for one request and a short timeout for readers."""
    with running_server(one_request_at_once(), UNREAD_TIMEOUT_S) as (_, address):
        yield address


@contextlib.contextmanager
def sent_request(address: Address, path: str) -> Iterator[socket.socket]:
    """Open a connection and send a request without reading the response."""
    with connected(address) as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % path.encode())
        yield connection


def small_status(address: Address) -> int:
    """Return the status of another, small request: 503 while the only place is taken."""
    url = f"http://{address[0]}:{address[1]}/small"
    return httpx.get(url, trust_env=False, timeout=30).status_code


def count_bytes(connection: socket.socket, pause_s: float = 0.0) -> int:
    """Read a large response with pauses; return how many bytes arrived."""
    count = 0
    with contextlib.suppress(ConnectionError):
        while count < LARGE_BYTES and (received := connection.recv(SOCKET_BUFFER_BYTES)):
            count += len(received)
            time.sleep(pause_s)
    return count


@pytest.mark.parametrize("bytes_per_read", [0, 1])
def test_a_client_that_hardly_reads_loses_its_place_and_the_rest_of_the_response(
    address: Address, bytes_per_read: int
) -> None:
    with sent_request(address, "/parts") as connection:
        wait_until(lambda: small_status(address) == 503, "the place is taken")

        def is_free_again() -> bool:
            connection.recv(bytes_per_read)
            return small_status(address) == 200

        wait_until(is_free_again, "the place is free again")
        assert count_bytes(connection) < LARGE_BYTES


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_a_client_that_reads_slowly_but_steadily_gets_the_whole_response(
    address: Address, path: str
) -> None:
    with sent_request(address, path) as connection:
        started_at = time.monotonic()
        assert count_bytes(connection, PAUSE_S) >= LARGE_BYTES
        assert time.monotonic() - started_at > 2 * UNREAD_TIMEOUT_S


@pytest.mark.parametrize("end", [reset_connection, socket.socket.close])
@pytest.mark.parametrize("next_path", ["", "/small"])
def test_a_disconnected_client_gets_nothing_more_even_after_another_request(
    address: Address,
    next_path: str,
    end: Callable[[socket.socket], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with sent_request(address, "/endless") as connection:
        read_until(connection, b"x")
        if next_path:
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % next_path.encode())
        wait_until(lambda: small_status(address) == 503, "the place is taken")
        end(connection)
        wait_until(lambda: small_status(address) == 200, "the place is free again")
    assert "Exception in ASGI application" not in caplog.text


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_a_client_that_reads_nothing_does_not_delay_a_stop(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_timer, "SHUTDOWN_SEND_TIMEOUT_S", 0.5)
    with (
        contextlib.ExitStack() as after_the_stop,
        running_server(one_request_at_once(), 1_000) as (_, address),
    ):
        after_the_stop.enter_context(sent_request(address, path)).recv(1)


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_a_stop_waits_for_a_client_that_reads_slowly_but_steadily(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_timer, "SHUTDOWN_SEND_TIMEOUT_S", UNREAD_TIMEOUT_S)
    with (
        running_server(one_request_at_once(), 1_000) as (server, address),
        sent_request(address, path) as connection,
    ):
        connection.recv(1)
        server.should_exit = True
        started_at = time.monotonic()
        assert count_bytes(connection, PAUSE_S) + 1 >= LARGE_BYTES
        assert time.monotonic() - started_at > 1.5 * UNREAD_TIMEOUT_S
