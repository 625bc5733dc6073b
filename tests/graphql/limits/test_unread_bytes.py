"""The bytes that clients leave unread are limited, for each address and for the process."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.types import Receive, Scope, Send

from slotlock.api.server.timeouts import TimeoutConfig
from slotlock.graphql.limits.unread_bytes import UNREAD_CUTS, UnreadBytes
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import read_until_closed
from tests.support.transport.uvicorn_server import Address, connected, running_server

BODY_BYTES = 1024 * 1024
# Room for the responses that two connections at one address leave in the process.
MAX_BYTES = 8 * BODY_BYTES
HEADERS = [(b"content-length", str(BODY_BYTES).encode()), (b"connection", b"close")]

Server = tuple[UnreadBytes, Address]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with a large body, after a large header or a large part if the path says so."""
    filler = b"x" * BODY_BYTES
    headers, parts = HEADERS, [filler]
    if scope["path"] == "/header":
        headers = [*HEADERS, (b"filler", filler)]
    elif scope["path"] == "/parts":
        headers, parts = [(b"connection", b"close")], [filler, filler]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield the unread bytes and the address of a server, at which nothing is left at the end."""
    with running_server(application, 1_000, max_unread_bytes=MAX_BYTES) as (running, address):
        assert isinstance(running.config, TimeoutConfig)
        unread = running.config.unread_bytes
        yield unread, address
        wait_until(lambda: unread.total == 0, "all connections are closed")


def ask(connection: socket.socket, host: str, path: str = "/") -> None:
    """Send a request from an address, and read only the first byte of the response."""
    request = f"GET {path} HTTP/1.1\r\nHost: here\r\nX-Forwarded-For: {host}\r\n\r\n"
    connection.sendall(request.encode())
    assert connection.recv(1)


def is_whole(connection: socket.socket) -> bool:
    """Read the rest; return whether it is the whole response."""
    return len(read_until_closed(connection)) >= BODY_BYTES


def test_an_address_may_leave_a_quarter_of_the_bytes_unread(server: Server) -> None:
    unread, address = server
    with ExitStack() as stack:
        other, *silent = [stack.enter_context(connected(address)) for _ in range(9)]
        ask(other, "192.0.2.1")
        for connection in silent:
            ask(connection, "192.0.2.2")
            # The byte can arrive before the protocol learns that the kernel took no more.
            wait_until(lambda: unread.total > BODY_BYTES // 4, "the rest is counted")
        wait_until(lambda: unread.total < 4 * BODY_BYTES, "connections are cut")
        assert [is_whole(each) for each in silent].count(True) in (2, 3)
        assert is_whole(other)


def test_all_addresses_together_leave_no_more_bytes_than_the_limit_unread(server: Server) -> None:
    unread, address = server
    cuts_before = UNREAD_CUTS._value.get()
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(address)) for _ in range(12)]
        for number, connection in enumerate(connections):
            ask(connection, f"192.0.2.{number // 2}")
            assert unread.total <= MAX_BYTES
        wait_until(lambda: UNREAD_CUTS._value.get() > cuts_before, "connections are cut")
        whole = [is_whole(each) for each in connections].count(True)
        assert 8 <= whole < len(connections)


@pytest.mark.parametrize("path", ["/header", "/parts"])
def test_what_waits_behind_an_unread_part_of_a_response_counts(server: Server, path: str) -> None:
    unread, address = server
    with connected(address) as connection:
        ask(connection, "192.0.2.1", path)
        wait_until(lambda: unread.total > BODY_BYTES, "both parts are counted")
        assert len(read_until_closed(connection)) >= 2 * BODY_BYTES
        wait_until(lambda: unread.total == 0, "nothing is left")


def test_what_a_client_has_read_meanwhile_does_not_count_towards_the_limit(
    server: Server,
) -> None:
    unread, address = server
    cuts_before = UNREAD_CUTS._value.get()
    with ExitStack() as stack:
        reader, *others = [stack.enter_context(connected(address)) for _ in range(3)]
        ask(reader, "192.0.2.1")
        received = 0
        while received < 0.6 * BODY_BYTES:
            received += len(reader.recv(64 * 1024))
        for connection in others:
            before = unread.total
            ask(connection, "192.0.2.1")
            wait_until(lambda before=before: unread.total > before, "it is counted")  # type: ignore[misc]
        assert UNREAD_CUTS._value.get() == cuts_before
        assert received + len(read_until_closed(reader)) >= BODY_BYTES
        assert all(is_whole(each) for each in others)
