"""Whoever sends a request too slowly is given up, and nobody else is."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from itertools import repeat

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import open_websocket as graphql_socket

ASKED = json.dumps({"query": "{ __typename }"}).encode()
START = b"POST /graphql HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
WHOLE = START + b"Content-Length: %d\r\n\r\n" % len(ASKED) + ASKED
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)


@pytest.fixture(scope="module")
def hasty(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """An app that hardly waits."""
    settings = {
        **app_environment(servers, "hasty"),
        "SLOTLOCK_HEADER_TIMEOUT_S": "2",  # these tests send their headers, or begin them, in time
        "SLOTLOCK_BODY_TIMEOUT_S": "0.6",
    }
    with forked_app(settings, tmp_path_factory.mktemp("hasty")) as app:
        yield app


@contextlib.contextmanager
def connected(app: AppProcess) -> Iterator[socket.socket]:
    """A connection on which nothing was sent yet."""
    url = httpx.URL(app.url)
    with socket.create_connection((url.host, url.port or 80), timeout=20) as connection:
        yield connection


def rest(connection: socket.socket, trickle: bytes = b"") -> bytes:
    """What comes until the server closes, while a byte is sent every now and then."""
    told = b""
    connection.settimeout(0.05 if trickle else 20)
    for _ in repeat(None, 400):
        with contextlib.suppress(TimeoutError, ConnectionError):
            if not (more := connection.recv(4096)):
                return told
            told += more
            continue
        if trickle:
            with contextlib.suppress(OSError):
                connection.sendall(trickle)
    raise AssertionError(f"the server does not close; it said {told!r}")


def answer(connection: socket.socket) -> bytes:
    """One answer of the app."""
    told = b""
    while not told.endswith(b'{"data":{"__typename":"Query"}}'):
        more = connection.recv(4096)
        assert more, told
        told += more
    return told


def test_who_connects_and_says_nothing_is_hung_up_on(hasty: AppProcess) -> None:
    with connected(hasty) as connection:
        assert rest(connection) == b""


async def test_a_header_that_does_not_end_is_a_408(hasty: AppProcess) -> None:
    def told(begun: bytes, trickle: bytes) -> bytes:
        with connected(hasty) as connection:
            connection.sendall(begun)
            return rest(connection, trickle)

    cases = [(START + b"X-Long: ", b"x"), (START, b""), (HANDSHAKE + b"Sec-WebSocket-Key: ", b"x")]
    for answered in await asyncio.gather(*(asyncio.to_thread(told, *case) for case in cases)):
        assert answered.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("length", "trickle"),
    [(b"Content-Length: 60000", b"x"), (b"Transfer-Encoding: chunked", b"1\r\nx\r\n")],
)
def test_a_body_that_does_not_end_is_a_408(
    hasty: AppProcess, length: bytes, trickle: bytes
) -> None:
    with connected(hasty) as connection:
        connection.sendall(START + length + b"\r\n\r\n")
        assert rest(connection, trickle).startswith(b"HTTP/1.1 408 ")


def test_a_large_body_may_come_slowly_as_long_as_it_comes(hasty: AppProcess) -> None:
    body, piece = ASKED.ljust(64 * 1024), 16 * 1024
    with connected(hasty) as connection:
        connection.sendall(START + b"Content-Length: %d\r\n\r\n" % len(body))
        for begin in range(0, len(body), piece):
            time.sleep(0.4)  # in the end they are more than twice of what a small one may take
            connection.sendall(body[begin : begin + piece])
        assert answer(connection).startswith(b"HTTP/1.1 200 ")


def test_the_next_request_of_a_connection_has_as_long(hasty: AppProcess) -> None:
    with connected(hasty) as connection:
        for _ in range(2):
            connection.sendall(WHOLE)
            assert answer(connection).startswith(b"HTTP/1.1 200 ")
        connection.sendall(START)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")


def test_empty_lines_do_not_keep_a_connection_open(hasty: AppProcess) -> None:
    with connected(hasty) as connection:
        connection.sendall(WHOLE)
        answer(connection)
        connection.sendall(b"\r\n")
        assert rest(connection, trickle=b"\r\n") == b""


def test_a_body_that_nobody_waits_for_does_not_keep_a_connection_open(hasty: AppProcess) -> None:
    with connected(hasty) as connection:
        connection.sendall(START.replace(b"/graphql", b"/none") + b"Content-Length: 60000\r\n\r\n")
        told = rest(connection, trickle=b"x")
        assert told.startswith(b"HTTP/1.1 404 ")
        assert b" 408 " not in told


async def test_what_was_asked_in_time_goes_on(hasty: AppProcess) -> None:
    async with graphql_socket(hasty) as opened:
        with connected(hasty) as kept, connected(hasty) as idle:
            kept.sendall(WHOLE)
            answer(kept)
            assert rest(idle) == b""  # by now the deadlines of all three are over
            kept.sendall(WHOLE)
            assert answer(kept).startswith(b"HTTP/1.1 200 ")
        await opened.subscribe("1", "{ __typename }")
        assert await opened.next_result() == "Query"
