"""A connection closes once no request began for some time after its latest response."""

import asyncio
import gc
import socket
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from slotlock.api.server.keep_alive import KeepAliveProtocol
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import read_until, reset_connection
from tests.support.transport.uvicorn_server import Address, connected, running_server

KEEP_ALIVE_S = 1
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
SLOW_REQUEST = REQUEST.replace(b"/ ", b"/slow ")


async def application(scope: Scope, _receive: Receive, send: Send) -> None:
    """Respond with "done"; to /slow after longer than a connection may be idle."""
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5 * KEEP_ALIVE_S)
    headers = [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture
def address() -> Iterator[Address]:
    """Yield the address of a server that closes idle connections early."""
    with running_server(application, 10, keep_alive_timeout_s=KEEP_ALIVE_S) as (_, address):
        yield address


def seconds_until_closed(connection: socket.socket) -> float:
    """Wait until the server closes the connection; return how long it took."""
    start = time.monotonic()
    assert connection.recv(1) == b""
    return time.monotonic() - start


@pytest.mark.parametrize("pause_s", [0.0, 0.4, 0.7])
def test_an_idle_connection_closes_that_long_after_its_latest_response(
    address: Address, pause_s: float
) -> None:
    with connected(address) as connection:
        for _ in range(3):
            time.sleep(pause_s)
            connection.sendall(REQUEST)
            read_until(connection, b"done")
        idle_s = seconds_until_closed(connection)
    assert 0.9 * KEEP_ALIVE_S < idle_s < 5 * KEEP_ALIVE_S


@pytest.mark.parametrize("earlier_requests", [0, 1])
def test_a_connection_with_a_request_in_progress_stays_open(
    address: Address, earlier_requests: int
) -> None:
    with connected(address) as connection:
        for _ in range(earlier_requests):
            connection.sendall(REQUEST)
            read_until(connection, b"done")
        connection.sendall(SLOW_REQUEST)
        read_until(connection, b"done")
        idle_s = seconds_until_closed(connection)
    assert 0.9 * KEEP_ALIVE_S < idle_s < 5 * KEEP_ALIVE_S


@pytest.mark.parametrize("end", [reset_connection, socket.socket.close])
def test_a_closed_connection_is_deleted_before_its_timer_ends(
    monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    closed: list[weakref.ref[KeepAliveProtocol]] = []
    original = KeepAliveProtocol.connection_lost

    def recorded(self: KeepAliveProtocol, exc: Exception | None) -> None:
        original(self, exc)
        closed.append(weakref.ref(self))

    def is_deleted() -> bool:
        gc.collect()
        return len(closed) == 1 and closed[0]() is None

    monkeypatch.setattr(KeepAliveProtocol, "connection_lost", recorded)
    with running_server(application, 10, keep_alive_timeout_s=60) as (_, address):
        with connected(address) as connection:
            connection.sendall(REQUEST)
            read_until(connection, b"done")
            end(connection)
        wait_until(is_deleted, "the closed connection is deleted")
