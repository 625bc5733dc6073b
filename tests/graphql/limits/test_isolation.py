"""A client cannot use up what others need: attempts, rates and unread bytes."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from slotlock.api.server.http_protocol import ServerConfig
from slotlock.api.server.unread_bytes import UNREAD_CUTS, UnreadBytes
from slotlock.auth.login_throttle import PER_ADDRESS
from slotlock.auth.sessions import open_session
from slotlock.graphql.limits.operation_rates import (
    MAX_SIGN_IN_ATTEMPTS_PER_MINUTE,
    MAX_SIGN_INS_PER_MINUTE,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import rate_limit_key
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    CANCEL_UNKNOWN_BOOKING,
    LOGIN_WITH_BAD_EMAIL,
    USERS_PER_ADDRESS,
    WRITES_PER_MINUTE,
    AddressedClient,
    client_at_new_address,
)
from tests.support.polling import wait_until
from tests.support.stores.users import auth_for_database, insert_user
from tests.support.transport.raw_connection import WEBSOCKET_HANDSHAKE, read_until_closed
from tests.support.transport.uvicorn_server import Address, connected, running_server

FIELDS_PER_MUTATION = 15
# Fields with an invalid token, which are rejected quickly.
INVALID_TOKENS = {
    "refreshSession": 'refreshSession(refreshToken: "x") { __typename }',
    "setPassword": 'setPassword(token: "x", password: "12345678") { __typename }',
}
# Fields that are rejected before a password is hashed, and how many of them count as a guess.
WITHOUT_HASH = {
    "a short password": (
        'register(input: {name: "A", email: "a@b.example", password: "short"}) { __typename }',
        0,
    ),
    "a long password": (
        f'login(input: {{email: "a@b.example", password: "{"x" * 129}"}}) {{ __typename }}',
        0,
    ),
    "too many guesses": (
        'login(input: {email: "guessed@b.example", password: "wrong"}) { __typename }',
        10,
    ),
}
LOGIN_FIELD = LOGIN_WITH_BAD_EMAIL.removeprefix("mutation { ").removesuffix(" }")
BODY_BYTES = 1024 * 1024
# Room for the responses that two connections at one address leave in the process.
MAX_BYTES = 8 * BODY_BYTES
HEADERS = [(b"content-length", str(BODY_BYTES).encode()), (b"connection", b"close")]

Server = tuple[UnreadBytes, Address]


@pytest.fixture
async def thief_and_owner(
    rate_limited: AppProcess, http: httpx.AsyncClient
) -> tuple[AddressedClient, AddressedClient]:
    """Return two open sessions of one user at two addresses; the first one was stolen."""
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        user = await insert_user(auth)
        stolen, own = [(await open_session(auth, user)).access_token for _ in range(2)]
    return (
        client_at_new_address(http, rate_limited, stolen),
        client_at_new_address(http, rate_limited, own),
    )


def repeated(field: str) -> str:
    """Build a mutation with many copies of a field."""
    return "mutation {" + " ".join(f"a{n}: {field}" for n in range(FIELDS_PER_MUTATION)) + "}"


async def failed_sign_ins(app: AppProcess, address: str) -> int:
    """Return how many failed sign-ins are counted at an address."""
    pipeline = AutoPipeline(redis_client(app.environment["SLOTLOCK_REDIS_URL"]))
    value = await pipeline.send("GET", rate_limit_key(f"address:{address}", PER_ADDRESS.name))
    await pipeline.close()
    return int(value.split()[1]) if value else 0


@pytest.mark.parametrize("mutation", INVALID_TOKENS)
async def test_invalid_tokens_do_not_use_up_the_sign_ins_of_an_address(
    stranger: AddressedClient, rate_limited: AppProcess, mutation: str
) -> None:
    limit = USERS_PER_ADDRESS * MAX_SIGN_IN_ATTEMPTS_PER_MINUTE // FIELDS_PER_MUTATION
    mutations = repeated(INVALID_TOKENS[mutation])
    assert await stranger.count_accepted(limit + 1, mutations) == limit
    assert await stranger.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 1
    assert await failed_sign_ins(rate_limited, stranger.address) == 1  # the login with a bad email


@pytest.mark.parametrize("reason", WITHOUT_HASH)
async def test_sign_ins_without_a_password_hash_do_not_use_up_the_sign_ins_of_an_address(
    stranger: AddressedClient, rate_limited: AppProcess, reason: str
) -> None:
    field, guess_count = WITHOUT_HASH[reason]
    times = 2 * USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // FIELDS_PER_MUTATION
    assert await stranger.count_accepted(times, repeated(field)) == times
    assert await stranger.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 1
    assert await failed_sign_ins(rate_limited, stranger.address) == guess_count + 1


async def test_control_sign_ins_with_a_password_hash_use_up_the_sign_ins_of_an_address(
    stranger: AddressedClient,
) -> None:
    limit = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // FIELDS_PER_MUTATION
    assert await stranger.count_accepted(limit + 1, repeated(LOGIN_FIELD)) == limit
    assert await stranger.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 0


async def test_an_address_has_a_limited_number_of_attempts_even_without_a_password_hash(
    stranger: AddressedClient,
) -> None:
    limit = USERS_PER_ADDRESS * MAX_SIGN_IN_ATTEMPTS_PER_MINUTE // FIELDS_PER_MUTATION
    mutations = repeated(WITHOUT_HASH["a short password"][0])
    assert await stranger.count_accepted(limit + 1, mutations) == limit


async def test_a_token_of_an_ended_session_uses_up_no_limit_of_its_user(
    thief_and_owner: tuple[AddressedClient, AddressedClient],
) -> None:
    thief, owner = thief_and_owner
    limit = WRITES_PER_MINUTE
    assert "errors" not in (await owner.post("mutation { endOtherSessions }")).json()
    # The first request still counts: it is the one that learns that the session has ended.
    await thief.count_accepted(1, CANCEL_UNKNOWN_BOOKING)
    assert await thief.count_accepted(limit, CANCEL_UNKNOWN_BOOKING) == limit
    assert await owner.count_accepted(limit, CANCEL_UNKNOWN_BOOKING) == limit - 1


async def test_a_thief_cannot_use_up_the_limit_for_ending_the_stolen_session(
    thief_and_owner: tuple[AddressedClient, AddressedClient],
) -> None:
    thief, owner = thief_and_owner
    end_sessions = repeated('endSession(id: "x") { __typename }')
    limit = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // FIELDS_PER_MUTATION
    assert await thief.count_accepted(MAX_SIGN_INS_PER_MINUTE, end_sessions) == limit
    writes = await thief.count_accepted(WRITES_PER_MINUTE + 1, CANCEL_UNKNOWN_BOOKING)
    assert writes == WRITES_PER_MINUTE
    assert await owner.count_accepted(1, "mutation { endOtherSessions }") == 1


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with a large body, after a large header or a large part if the path says so.

    A socket gets two messages of as many bytes, each character of which has three.
    """
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        for _ in range(2):
            await send({"type": "websocket.send", "text": "\u6570" * (BODY_BYTES // 3)})
        return
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
        assert isinstance(running.config, ServerConfig)
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
            # The server counts and cuts in its own thread.
            wait_until(lambda: unread.total <= MAX_BYTES, "what is beyond the limit is cut")
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


def test_what_waits_behind_an_unread_message_of_a_socket_counts_in_bytes(server: Server) -> None:
    unread, address = server
    with connected(address) as connection:
        connection.sendall(WEBSOCKET_HANDSHAKE)
        wait_until(lambda: unread.total > 1.5 * BODY_BYTES, "both messages are counted")


def test_what_a_client_has_read_meanwhile_does_not_count_towards_the_limit(server: Server) -> None:
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
