"""The server gives up on clients that send a request too slowly, and on no others."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from itertools import repeat

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import open_websocket
from tests.support.transport.raw_connection import open_tcp_connection

BODY = json.dumps({"query": "{ __typename }"}).encode()
RESULT = b'{"data":{"__typename":"Query"}}'
POST = b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
REQUEST = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: slotlock\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)


@pytest.fixture(scope="module")
def impatient_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app with short timeouts."""
    settings = {
        **app_environment(servers, "impatient"),
        "SLOTLOCK_HEADER_TIMEOUT_S": "2",  # enough for the requests that are sent in time
        "SLOTLOCK_BODY_TIMEOUT_S": "0.6",
    }
    with forked_app(settings, tmp_path_factory.mktemp("impatient")) as app:
        yield app


def read_to_end(connection: socket.socket, trickle: bytes = b"") -> bytes:
    """Return what arrives until the server closes, while sending `trickle` again and again."""
    received = b""
    connection.settimeout(0.05 if trickle else 20)
    for _ in repeat(None, 400):
        with contextlib.suppress(TimeoutError, ConnectionError):
            if not (data := connection.recv(4096)):
                return received
            received += data
            continue
        if trickle:
            with contextlib.suppress(OSError):
                connection.sendall(trickle)
    raise AssertionError(f"the server does not close; it sent {received!r}")


def read_result(connection: socket.socket) -> bytes:
    """Return one response with RESULT."""
    received = b""
    while not received.endswith(RESULT):
        data = connection.recv(4096)
        assert data, received
        received += data
    return received


def test_a_connection_without_a_request_is_closed(impatient_app: AppProcess) -> None:
    with open_tcp_connection(impatient_app) as connection:
        assert read_to_end(connection) == b""


async def test_a_header_that_does_not_end_gets_408(impatient_app: AppProcess) -> None:
    def response(start: bytes, trickle: bytes) -> bytes:
        with open_tcp_connection(impatient_app) as connection:
            connection.sendall(start)
            return read_to_end(connection, trickle)

    cases = [(POST + b"X-Long: ", b"x"), (POST, b""), (HANDSHAKE + b"Sec-WebSocket-Key: ", b"x")]
    responses = await asyncio.gather(*(asyncio.to_thread(response, *case) for case in cases))
    assert [each.split(b" ")[:2] for each in responses] == [[b"HTTP/1.1", b"408"]] * 3


@pytest.mark.parametrize(
    ("length", "trickle"),
    [(b"Content-Length: 60000", b"x"), (b"Transfer-Encoding: chunked", b"1\r\nx\r\n")],
)
def test_a_body_that_does_not_end_gets_408(
    impatient_app: AppProcess, length: bytes, trickle: bytes
) -> None:
    with open_tcp_connection(impatient_app) as connection:
        connection.sendall(POST + length + b"\r\n\r\n")
        assert read_to_end(connection, trickle).startswith(b"HTTP/1.1 408 ")


def test_a_large_body_may_arrive_slowly_but_steadily(impatient_app: AppProcess) -> None:
    body, piece_bytes = BODY.ljust(64 * 1024), 16 * 1024
    with open_tcp_connection(impatient_app) as connection:
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), piece_bytes):
            time.sleep(0.4)  # in total more than twice the time that a small body has
            connection.sendall(body[start : start + piece_bytes])
        assert read_result(connection).startswith(b"HTTP/1.1 200 ")


def test_each_request_of_a_connection_has_the_full_time(impatient_app: AppProcess) -> None:
    with open_tcp_connection(impatient_app) as connection:
        for _ in range(2):
            connection.sendall(REQUEST)
            assert read_result(connection).startswith(b"HTTP/1.1 200 ")
        connection.sendall(POST)
        assert read_to_end(connection).startswith(b"HTTP/1.1 408 ")


def test_empty_lines_do_not_hold_a_connection_open(impatient_app: AppProcess) -> None:
    with open_tcp_connection(impatient_app) as connection:
        connection.sendall(REQUEST)
        read_result(connection)
        connection.sendall(b"\r\n")
        assert read_to_end(connection, trickle=b"\r\n") == b""


def test_the_body_of_a_rejected_request_does_not_hold_a_connection_open(
    impatient_app: AppProcess,
) -> None:
    with open_tcp_connection(impatient_app) as connection:
        connection.sendall(POST.replace(b"/graphql", b"/none") + b"Content-Length: 60000\r\n\r\n")
        responses = read_to_end(connection, trickle=b"x")
        assert responses.startswith(b"HTTP/1.1 404 ")
        assert b" 408 " not in responses


async def test_the_timeouts_do_not_affect_idle_connections_after_a_request(
    impatient_app: AppProcess,
) -> None:
    async with open_websocket(impatient_app) as opened:
        with (
            open_tcp_connection(impatient_app) as reused,
            open_tcp_connection(impatient_app) as unused,
        ):
            reused.sendall(REQUEST)
            read_result(reused)
            assert read_to_end(unused) == b""  # by now the timeouts of all three have passed
            reused.sendall(REQUEST)
            assert read_result(reused).startswith(b"HTTP/1.1 200 ")
        await opened.subscribe("1", "{ __typename }")
        assert await opened.next_result() == "Query"
