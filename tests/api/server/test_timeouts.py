"""The server gives up on slow clients only; responses without the app have all headers."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from email import message_from_bytes
from itertools import repeat

import pytest

from slotlock.api.middleware.response_headers import SECURITY_HEADERS
from slotlock.api.server.request_headers import MAX_HEADER_BYTES
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import open_websocket
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    open_tcp_connection,
    read_until,
    read_until_closed,
)

BODY = json.dumps({"query": "{ __typename }"}).encode()
RESULT = b'{"data":{"__typename":"Query"}}'
POST = b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
REQUEST = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: slotlock\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)
EXPECTED_HEADERS = {(name.decode(), value.decode()) for name, value in SECURITY_HEADERS}
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
KEY, VERSION = b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Version: "
# Requests with the status of their only response.
REJECTED_REQUESTS = {
    "malformed HTTP": (b"nonsense\r\n\r\n", 400),
    "a tunnel": (b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n", 400),
    "a header that is too large": (POST + b"X: " + b"a" * MAX_HEADER_BYTES, 431),
    "a header that does not end": (POST, 408),
    "a body that does not arrive": (POST + b"Content-Length: 9\r\n\r\n", 408),
    "a handshake by POST": (POST + UPGRADE + b"\r\n", 405),
    "a handshake with too many headers": (
        WEBSOCKET_HANDSHAKE.replace(KEY, b"X: y\r\n" * 200 + KEY),
        400,
    ),
    "a handshake without a key": (WEBSOCKET_HANDSHAKE.replace(KEY, b"X: "), 400),
    "a handshake of another version": (WEBSOCKET_HANDSHAKE.replace(VERSION, VERSION + b"1"), 400),
    "a handshake at an unknown path": (WEBSOCKET_HANDSHAKE.replace(b"/graphql", b"/nothing"), 403),
    "a handshake from another site": (
        WEBSOCKET_HANDSHAKE.replace(b"\r\n\r\n", b"\r\nOrigin: https://evil.example.org\r\n\r\n"),
        403,
    ),
}


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
def test_an_endless_body_gets_408(impatient_app: AppProcess, length: bytes, trickle: bytes) -> None:
    with open_tcp_connection(impatient_app) as connection:
        connection.sendall(POST + length + b"\r\n\r\n")
        assert read_to_end(connection, trickle).startswith(b"HTTP/1.1 408 ")
        connection.sendall(bytes(4 * 1024 * 1024))  # no reset, which could take the response away


def test_a_large_body_may_arrive_slowly_but_steadily(impatient_app: AppProcess) -> None:
    # The large first piece gives the others three seconds more, which a busy machine may need.
    body, first_bytes, piece_bytes = BODY.ljust(64 * 1024), 48 * 1024, 4 * 1024
    with open_tcp_connection(impatient_app) as connection:
        header = POST + b"Content-Length: %d\r\n\r\n" % len(body)
        connection.sendall(header + body[:first_bytes])
        for start in range(first_bytes, len(body), piece_bytes):
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


def test_the_body_of_a_rejected_request_holds_no_connection_open(impatient_app: AppProcess) -> None:
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


@pytest.fixture(scope="module")
def strict_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app with short timeouts and room for two sockets, one for each address."""
    settings = {
        **app_environment(servers, "strict"),
        "SLOTLOCK_HEADER_TIMEOUT_S": "2",  # enough for the requests with complete headers
        "SLOTLOCK_BODY_TIMEOUT_S": "0.6",
        "SLOTLOCK_MAX_SOCKETS": "2",
        "SLOTLOCK_STREAMS_PER_ADDRESS": "1",
        "SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1",
    }
    with forked_app(settings, tmp_path_factory.mktemp("strict")) as running:
        yield running


def status_of_only_response(app: AppProcess, request: bytes) -> int:
    """Check that there is one response with each security header once; return its status."""
    with open_tcp_connection(app) as peer:
        peer.sendall(request)
        response = read_until_closed(peer)
    assert response.count(b"HTTP/1.1 ") == 1, response
    status_line, _, rest = response.partition(b"\r\n")
    headers = message_from_bytes(rest).items()
    names = {name for name, _ in EXPECTED_HEADERS}
    security_headers = [(n.lower(), v) for n, v in headers if n.lower() in names]
    assert sorted(security_headers) == sorted(EXPECTED_HEADERS)
    return int(status_line.split()[1])


@pytest.mark.parametrize("kind", REJECTED_REQUESTS)
def test_an_early_rejection_has_the_security_headers(strict_app: AppProcess, kind: str) -> None:
    request, status = REJECTED_REQUESTS[kind]
    assert status_of_only_response(strict_app, request) == status


def test_sockets_beyond_the_limits_are_rejected_with_all_headers(strict_app: AppProcess) -> None:
    def handshake_from(address: bytes) -> bytes:
        return WEBSOCKET_HANDSHAKE.replace(
            b"\r\n\r\n", b"\r\nX-Forwarded-For: " + address + b"\r\n\r\n"
        )

    with open_tcp_connection(strict_app) as first, open_tcp_connection(strict_app) as second:
        first.sendall(handshake_from(b"192.0.2.1"))
        assert read_until(first, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert status_of_only_response(strict_app, handshake_from(b"192.0.2.1")) == 429
        second.sendall(handshake_from(b"192.0.2.2"))
        assert read_until(second, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert status_of_only_response(strict_app, handshake_from(b"192.0.2.3")) == 503
    assert "ERROR" not in strict_app.log
