"""A whole request gets the same response in one write as any other request in several."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.message import Message

import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.middleware.security_headers import SECURITY_HEADERS, SecurityHeadersMiddleware
from slotlock.graphql.transport.http_exchange import HttpResponse, find_exchange, send_response
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import read_until, read_until_closed, reset_connection
from tests.support.transport.uvicorn_server import Address, connected, running_server

UNREAD_TIMEOUT_S = 1.0
LARGE_BODY = b"x" * 2**20
MAX_REQUESTS = 2
released = threading.Event()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Return the body of the request, or what the path asks for."""
    path = scope["path"]
    exchange = find_exchange(scope)
    body = await Request(scope, receive).body() if exchange is None else exchange.body
    headers = [(b"content-type", b"text/plain"), (b"x-exchange", str(bool(exchange)).encode())]
    if path == "/close":
        headers.append((b"connection", b"close"))
    if path == "/wait":
        while not released.is_set():
            await asyncio.sleep(0.01)
    if path == "/large":
        body = LARGE_BODY
    await send_response(HttpResponse(200, tuple(headers), body), scope, send)


@pytest.fixture
def address() -> Iterator[Address]:
    """Yield the address of a server with room for two requests at once."""
    released.clear()
    limited = LoadSheddingMiddleware(application, max_requests=MAX_REQUESTS, max_sockets=1)
    with running_server(SecurityHeadersMiddleware(limited), UNREAD_TIMEOUT_S) as (_, address):
        yield address
        released.set()


def post(body: bytes, path: str = "/", fields: bytes = b"", version: bytes = b"1.1") -> bytes:
    """Return a request."""
    head = b"POST %s HTTP/%s\r\nHost: here\r\n%s" % (path.encode(), version, fields)
    return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)


def read_response(connection: socket.socket) -> tuple[Message, bytes]:
    """Return the header fields and the body of the next response."""
    with connection.makefile("rb", buffering=0) as stream:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = stream.read(1)
            assert byte, head
            head += byte
        status_line, _, fields = head.partition(b"\r\n")
        assert status_line.endswith((b" 200 OK", b" 503 Service Unavailable")), status_line
        headers = message_from_bytes(fields)
        body = b""
        while len(body) < int(headers["content-length"]):
            body += stream.read(int(headers["content-length"]) - len(body)) or b""
        return headers, body


def test_both_kinds_of_responses_have_the_same_headers(address: Address) -> None:
    with connected(address) as connection:
        connection.sendall(post(b"whole"))
        whole, whole_body = read_response(connection)
        head, _, body = post(b"parts").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(20)
        connection.sendall(body)
        parts, parts_body = read_response(connection)
    assert (whole_body, parts_body) == (b"whole", b"parts")
    assert (whole["x-exchange"], parts["x-exchange"]) == ("True", "False")
    assert sorted(map(str.lower, whole.keys())) == sorted(map(str.lower, parts.keys()))
    for name, value in SECURITY_HEADERS:
        assert whole.get_all(name.decode()) == [value.decode()]
    assert whole["date"]
    assert "connection" not in whole


def test_a_client_that_waits_for_100_continue_gets_it(address: Address) -> None:
    with connected(address) as connection:
        connection.sendall(post(b"body", fields=b"Expect: 100-continue\r\n"))
        responses = read_until(connection, b"\r\n\r\nbody")
    assert responses.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_pipelined_requests_get_their_responses_in_order(address: Address) -> None:
    bodies = [b"%d" % number for number in range(50)]
    with connected(address) as connection:
        connection.sendall(b"".join(map(post, bodies)))
        assert [read_response(connection)[1] for _ in bodies] == bodies


@pytest.mark.parametrize(
    "request_",
    [
        post(b"x", fields=b"Connection: close\r\n"),
        post(b"x", version=b"1.0"),
        post(b"x", path="/close"),
    ],
)
def test_the_connection_closes_after_the_response_if_one_side_asks(
    address: Address, request_: bytes
) -> None:
    with connected(address) as connection:
        connection.sendall(request_)
        response = read_until_closed(connection)
    assert response.endswith(b"\r\n\r\nx")
    assert response.lower().count(b"connection: close\r\n") == 1


def test_the_response_to_head_has_no_body(address: Address) -> None:
    with connected(address) as connection:
        connection.sendall(b"HEAD /large HTTP/1.1\r\nHost: here\r\n\r\n" + post(b"next"))
        head = read_until(connection, b"\r\n\r\nnext")
    assert b"content-length: %d\r\n" % len(LARGE_BODY) in head
    assert b"xx" not in head


def is_full(address: Address) -> bool:
    """Return whether the server has no room for another request."""
    with connected(address) as connection:
        connection.sendall(post(b"small"))
        return read_response(connection)[1] != b"small"


def test_responses_wait_until_the_client_has_read_earlier_ones(address: Address) -> None:
    with connected(address) as first, connected(address) as second:
        for connection in (first, second):
            connection.sendall(post(b"", "/large") * 8)
        wait_until(lambda: is_full(address), "a response of each waits")
        for connection in (first, second):
            assert [read_response(connection)[1] for _ in range(8)] == [LARGE_BODY] * 8


def test_clients_that_read_nothing_lose_their_places(address: Address) -> None:
    with connected(address) as first, connected(address) as second:
        for connection in (first, second):
            connection.sendall(post(b"", "/large") * 8)
        wait_until(lambda: is_full(address), "a response of each waits")
        wait_until(lambda: not is_full(address), "a place is free again")
        assert min(len(read_until_closed(peer)) for peer in (first, second)) < 8 * len(LARGE_BODY)


@pytest.mark.parametrize("end", [reset_connection, socket.socket.close])
def test_a_client_that_disconnects_while_it_waits_leaves_its_neighbors_unharmed(
    address: Address, end: Callable[[socket.socket], None], caplog: pytest.LogCaptureFixture
) -> None:
    with connected(address) as leaving, connected(address) as staying:
        leaving.sendall(post(b"leaving", "/wait") * 2)
        staying.sendall(post(b"staying", "/wait") * 2)
        wait_until(lambda: is_full(address), "both are processed")
        end(leaving)
        released.set()
        assert [read_response(staying)[1] for _ in range(2)] == [b"staying"] * 2
        wait_until(lambda: not is_full(address), "both places are free")
    assert not caplog.records
