"""When a connection closes, and what an upgrade to an unsupported protocol does."""

import asyncio
import contextlib
import gc
import json
import re
import socket
import time
import weakref
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from starlette.types import Receive, Scope, Send

from slotlock.api.server import http_protocol
from slotlock.api.server.http_protocol import MAX_DROPPED_BYTES, HttpProtocol
from tests.support.apps.processes import AppProcess
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import (
    open_tcp_connection,
    read_until,
    read_until_closed,
    reset_connection,
)
from tests.support.transport.uvicorn_server import Address, connected, running_server

# A busy machine may hold up a client for a second or two between two requests.
KEEP_ALIVE_S = 3
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
SLOW_REQUEST = REQUEST.replace(b"/ ", b"/slow ")
SMUGGLED_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: slotlock\r\n\r\n"
BODY = json.dumps({"query": "{ __typename }"}).encode()
LAST_REQUEST = b"GET /last HTTP/1.1\r\nHost: slotlock\r\nConnection: close\r\n\r\n"


async def application(scope: Scope, _receive: Receive, send: Send) -> None:
    """Respond with "done"; to /slow after longer than a connection may be idle.

    Refuse a POST without reading its body, a little later than it begins.
    """
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5 * KEEP_ALIVE_S)
    headers, status = [(b"content-length", b"4")], 200
    if scope["method"] == "POST":
        await asyncio.sleep(0.02)
        headers, status = [*headers, (b"connection", b"close")], 413
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture
def address() -> Iterator[Address]:
    """Yield the address of a server that closes idle connections early."""
    with running_server(application, 10, keep_alive_timeout_s=KEEP_ALIVE_S) as (_, address):
        yield address


def wait_until_closed(connection: socket.socket, trickle: bytes = b"") -> None:
    """Send `trickle` now and then until the server closes."""
    connection.settimeout(0.05 if trickle else 20)
    with contextlib.suppress(ConnectionError):  # the server closed before the latest empty line
        while True:
            try:
                assert connection.recv(1) == b""
                break
            except TimeoutError:
                connection.sendall(trickle)


@pytest.mark.parametrize(("pause_s", "trickle"), [(0.0, b""), (1.2, b""), (1.2, b"\r\n")])
def test_an_idle_connection_closes_that_long_after_its_latest_response(
    address: Address, pause_s: float, trickle: bytes
) -> None:
    with connected(address) as connection:
        for _ in range(3):
            time.sleep(pause_s)
            sent_at = time.monotonic()  # this process may notice the response late
            connection.sendall(REQUEST)
            read_until(connection, b"done")
        wait_until_closed(connection, trickle)
    assert 0.9 * KEEP_ALIVE_S < time.monotonic() - sent_at < 5 * KEEP_ALIVE_S


@pytest.mark.parametrize("earlier_requests", [0, 1])
def test_a_connection_with_a_request_stays_open(address: Address, earlier_requests: int) -> None:
    with connected(address) as connection:
        for _ in range(earlier_requests):
            connection.sendall(REQUEST)
            read_until(connection, b"done")
        sent_at = time.monotonic()
        connection.sendall(SLOW_REQUEST)
        read_until(connection, b"done")
        wait_until_closed(connection)
    # The request takes 1.5 times as long.
    assert 0.9 * 2.5 * KEEP_ALIVE_S < time.monotonic() - sent_at < 7 * KEEP_ALIVE_S


@pytest.mark.parametrize("end", [reset_connection, socket.socket.close])
def test_a_closed_connection_is_deleted_before_its_timer_ends(
    monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    closed: list[weakref.ref[HttpProtocol]] = []
    original = HttpProtocol.connection_lost

    def recorded(self: HttpProtocol, exc: Exception | None) -> None:
        original(self, exc)
        closed.append(weakref.ref(self))

    def is_deleted() -> bool:
        gc.collect()
        return len(closed) == 1 and closed[0]() is None

    monkeypatch.setattr(HttpProtocol, "connection_lost", recorded)
    with running_server(application, 10, keep_alive_timeout_s=60) as (_, address):
        with connected(address) as connection:
            connection.sendall(REQUEST)
            read_until(connection, b"done")
            end(connection)
        wait_until(is_deleted, "the closed connection is deleted")


def upgrade_request(body: bytes, upgrade: bytes = b"h2c") -> list[bytes]:
    """Return the header and the body of a request with an upgrade."""
    lines = b"Connection: Upgrade\r\nUpgrade: %s\r\nContent-Type: application/json" % upgrade
    start = b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\n" + lines
    return [start + b"\r\nContent-Length: %d\r\n\r\n" % len(body), body]


def send_pieces(app: AppProcess, pieces: list[bytes]) -> bytes:
    """Return the responses to these pieces of requests and to LAST_REQUEST."""
    with open_tcp_connection(app) as peer:
        for piece in [*pieces, LAST_REQUEST]:
            peer.sendall(piece)
            time.sleep(0.02)  # lets the server read each piece by itself
        return read_until_closed(peer)


@pytest.mark.parametrize("upgrade", [b"h2c", b"TLS/1.0", b"foo"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_body_is_read_as_the_body_and_not_as_another_request(
    app: AppProcess, upgrade: bytes, whole: bool
) -> None:
    def statuses(body: bytes) -> list[bytes]:
        pieces = upgrade_request(body, upgrade)
        responses = send_pieces(app, [b"".join(pieces)] if whole else pieces)
        return re.findall(rb"HTTP/1\.1 (\d+) ", responses)

    assert statuses(BODY) == [b"200", b"404"]
    assert statuses(SMUGGLED_REQUEST) == [b"400", b"404"]


def test_many_upgrade_requests_in_one_read_are_all_answered(app: AppProcess) -> None:
    responses = send_pieces(app, [b"".join(upgrade_request(BODY)) * 500])
    assert responses.count(b'"Query"}}') == 500


@pytest.mark.parametrize("connection", [b"close, Upgrade", b"Upgrade, close"])
def test_the_last_request_of_a_connection_is_answered_without_its_upgrade(
    app: AppProcess, connection: bytes
) -> None:
    request = b"".join(upgrade_request(BODY)).replace(b"Upgrade\r", connection + b"\r", 1)
    with open_tcp_connection(app) as peer:
        peer.sendall(request)
        assert read_until_closed(peer).startswith(b"HTTP/1.1 200 ")


def test_connect_is_rejected_as_the_only_request(app: AppProcess) -> None:
    with open_tcp_connection(app) as peer:
        peer.sendall(b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n" + SMUGGLED_REQUEST)
        response = read_until_closed(peer)
    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.1 ") == 1


UPLOAD = b"POST / HTTP/1.1\r\nHost: here\r\n"
PIECE = REQUEST * 2_000  # would be served if the rest of a body were read as requests
# Bodies whose response comes before they end, and its status.
REFUSED_UPLOADS = {
    "a body with a length": (UPLOAD + b"Content-Length: 9000000\r\n\r\n" + 4 * PIECE, b"413"),
    "chunks": (UPLOAD + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", b"413"),
    "a body for HTTP/1.0": (
        UPLOAD.replace(b"1.1", b"1.0") + b"Content-Length: 9000000\r\n\r\n",
        b"413",
    ),
    "a malformed chunk": (UPLOAD + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", b"400"),
    "a malformed request behind another": (REQUEST + b"nonsense\r\n\r\n", b"400"),
}


def upload(address: Address, start: bytes) -> bytes:
    """Send on while the response arrives; return all responses.

    Raises:
        OSError: the server has reset the connection (ENOTCONN is not a ConnectionError).
    """
    with connected(address) as connection:
        connection.sendall(start)
        connection.recv(1, socket.MSG_PEEK)
        for _ in range(40):
            connection.sendall(PIECE)
        connection.shutdown(socket.SHUT_WR)
        responses = b""
        while data := connection.recv(65_536):
            responses += data
        return responses


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_client_that_is_still_sending_reads_why_its_request_is_refused(
    loop: Literal["asyncio", "uvloop"],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_server(application, 10, loop=loop) as (_, address):
        for start, status in REFUSED_UPLOADS.values():
            responses = upload(address, start)
            assert re.findall(rb"HTTP/1\.1 (\d+) ", responses)[-1:] == [status]
            assert responses.count(b"HTTP/1.1 ") == 1 + start.startswith(REQUEST)
        assert caplog.records == []
        monkeypatch.setattr(HttpProtocol, "_linger", lambda self: self.transport.close())
        for start, _ in REFUSED_UPLOADS.values():
            with pytest.raises(OSError, match=r"reset by peer|Broken pipe|not connected"):
                upload(address, start)


def test_a_refused_client_sends_on_for_limited_bytes_and_seconds_and_delays_no_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_reset(connection: socket.socket, piece: bytes = b"x") -> bool:
        try:
            connection.sendall(piece)
        except ConnectionError:
            return True
        return False

    start, _ = REFUSED_UPLOADS["a body with a length"]
    with running_server(application, 10) as (_, address), connected(address) as connection:
        connection.sendall(start)
        sent = 0
        while not is_reset(connection, PIECE):
            sent += len(PIECE)
        assert 0.5 * MAX_DROPPED_BYTES < sent < 2 * MAX_DROPPED_BYTES
    with contextlib.ExitStack() as after_the_stop, running_server(application, 10) as (_, address):
        connection = after_the_stop.enter_context(connected(address))
        connection.sendall(REFUSED_UPLOADS["a malformed chunk"][0])
        read_until(connection, b"}")  # the server stops although this connection is open
    monkeypatch.setattr(http_protocol, "LINGER_S", 0.2)
    with running_server(application, 10) as (_, address), connected(address) as connection:
        connection.sendall(start)
        read_until(connection, b"done")
        wait_until(lambda: is_reset(connection), "the server has closed the connection")
