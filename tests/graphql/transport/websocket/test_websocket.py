"""Sockets follow the graphql-transport-ws protocol and close with its codes."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from starlette.types import Message
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from slotlock.api.app_state import open_app_state
from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport import websocket
from tests.support.apps.processes import SECRET, AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, WebSocketTestClient, open_websocket
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    open_tcp_connection,
    read_until,
)

PROTOCOL = Subprotocol("graphql-transport-ws")
INIT = '{"type": "connection_init"}'
PING = {"type": "ping"}
PONG = {"type": "pong"}
QUERY = "{ __typename }"


def connect_to(app: AppProcess, **options: Any) -> connect:
    """Open a socket without initializing it."""
    return connect(app.websocket_url, subprotocols=[PROTOCOL], proxy=None, **options)


async def close_code(connection: ClientConnection) -> int:
    """Return the code with which the server closes the socket, after any other messages."""
    with contextlib.suppress(ConnectionClosed):
        async with asyncio.timeout(20):
            while True:
                await connection.recv()
    assert connection.close_code is not None
    return connection.close_code


@pytest.mark.parametrize(
    "message",
    [
        "[]", '"connection_init"', "7", "null", "{", "", '{"type": "next"}', "{}",
        '{"type": "start", "id": "1", "payload": {}}', '{"type": ["ping"]}', '{"type": null}',
        b'{"type": "connection_init"}', b"\x00", "[" * 50_000,
        '{"type": "connection_init", "payload": []}', '{"type": "connection_init", "payload": "x"}',
    ],
)  # fmt: skip
async def test_a_malformed_message_closes_the_socket_with_4400(
    app: AppProcess, message: str | bytes
) -> None:
    async with connect_to(app) as connection:
        await connection.send(message)
        assert await close_code(connection) == 4400


@pytest.mark.parametrize(
    "message",
    [
        {"type": "subscribe"}, {"type": "subscribe", "id": "1"},
        {"type": "subscribe", "payload": {"query": QUERY}},
        {"type": "subscribe", "id": 1, "payload": {"query": QUERY}},
        {"type": "subscribe", "id": "", "payload": {"query": QUERY}},
        {"type": "subscribe", "id": "1", "payload": [QUERY]},
        {"type": "subscribe", "id": "1", "payload": {"query": 7}},
        {"type": "subscribe", "id": "1", "payload": {"query": QUERY, "variables": 7}},
        {"type": "subscribe", "id": "1", "payload": {"query": QUERY, "variables": [1]}},
        {"type": "subscribe", "id": "1", "payload": {"query": QUERY, "extensions": "x"}},
        {"type": "subscribe", "id": "1", "payload": {"query": QUERY, "operationName": 7}},
        {"type": "complete"}, {"type": "complete", "id": None}, {"type": "complete", "id": 1},
        {"type": "complete", "id": ""}, {"type": "ping", "payload": "x"},
        {"type": "ping", "payload": [1]}, {"type": "pong", "payload": 7},
        {"type": "next", "id": "1", "payload": {}}, {"type": "connection_ack"},
    ],
)  # fmt: skip
async def test_a_message_with_a_missing_or_invalid_field_closes_the_socket_with_4400(
    app: AppProcess, message: Json
) -> None:
    async with open_websocket(app) as opened:
        await opened.send(message)
        assert await close_code(opened.connection) == 4400


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({}, "BAD_USER_INPUT"), ({"query": None}, "BAD_USER_INPUT"),
        ({"query": ""}, "BAD_USER_INPUT"), ({"documentId": 7}, "BAD_USER_INPUT"),
        ({"documentId": "x"}, "PERSISTED_QUERY_NOT_SUPPORTED"),
        ({"extensions": {"persistedQuery": {"version": 1}}}, "PERSISTED_QUERY_NOT_SUPPORTED"),
    ],
)  # fmt: skip
async def test_an_operation_without_a_document_fails_alone(
    app: AppProcess, payload: Json, code: str
) -> None:
    async with open_websocket(app) as opened:
        await opened.send({"type": "subscribe", "id": "1", "payload": payload})
        message = await opened.receive()
        assert (message["type"], message["id"]) == ("error", "1")
        assert message["payload"][0]["extensions"]["code"] == code
        await opened.subscribe("1", QUERY)
        assert (await opened.receive())["type"] == "next"


async def test_an_early_operation_closes_the_socket_with_4401(app: AppProcess) -> None:
    async with connect_to(app) as connection:
        await WebSocketTestClient(connection).subscribe("1", QUERY)
        assert await close_code(connection) == 4401


@pytest.mark.parametrize("authorization", ["Bearer", "Bearer x.y.z", "Basic eDp5", "x", 7, {}])
async def test_invalid_tokens_close_with_4403(app: AppProcess, authorization: object) -> None:
    async with connect_to(app) as connection:
        payload = {"Authorization": authorization}
        await connection.send(json.dumps({"type": "connection_init", "payload": payload}))
        assert await close_code(connection) == 4403


async def user_of_socket(url: str, payload: Json | None, **options: Any) -> Json | int:
    """Return `me` as a socket sees it, or the code with which the server closes the socket."""
    async with connect(url, subprotocols=[PROTOCOL], proxy=None, **options) as connection:
        opened = WebSocketTestClient(connection)
        await opened.send({"type": "connection_init", "payload": payload})
        try:
            assert (await opened.receive())["type"] == "connection_ack"
        except ConnectionClosed:
            return await close_code(connection)
        await opened.subscribe("1", "{ me { id } }")
        found: Json = (await opened.receive())["payload"]["data"]["me"]
        return found


async def test_a_token_is_used_wherever_clients_put_it(
    app: AppProcess, member: BookingClient
) -> None:
    bearer = member.headers["Authorization"]
    token, me = bearer.removeprefix("Bearer "), {"id": await member.fetch_user_id()}
    payloads: list[Json] = [
        {"Authorization": bearer}, {"headers": {"Authorization": bearer}},
        {"headers": {"authorization": bearer}, "authorization": None}, {"authToken": token},
        {"access_token": bearer}, {"headers": {"X-Version": "1"}, "auth": {"token": token}},
    ]  # fmt: skip
    for payload in payloads:
        assert await user_of_socket(app.websocket_url, payload) == me, payload
    in_handshake = {"additional_headers": {"Authorization": bearer}}
    for also in (None, {}, {"authorization": ""}, {"authorization": bearer}):
        assert await user_of_socket(app.websocket_url, also, **in_handshake) == me, also
    # One in the right place counts, and the path may end with a slash.
    url = f"{app.websocket_url}/?token=x"
    assert await user_of_socket(url, {"authorization": bearer, "other": token}) == me


async def test_a_token_that_is_not_used_closes_the_socket(
    app: AppProcess, member: BookingClient
) -> None:
    token = member.headers["Authorization"].removeprefix("Bearer ")
    unread: list[Json] = [{"x": token}, {"connection": {"jwt": f"Bearer {token}"}}]
    for payload in unread:
        assert await user_of_socket(app.websocket_url, payload) == 4400
    for query in (f"token={token}", "access_token=x", "Authorization=Bearer%20x", f"x={token}"):
        assert await user_of_socket(f"{app.websocket_url}?{query}", None) == 4400
    invalid: list[Json] = [{"authToken": "x"}, {"token": 7}, {"headers": {"authorization": "x"}}]
    for payload in invalid:
        assert await user_of_socket(app.websocket_url, payload) == 4403
    in_handshake = {"additional_headers": {"Authorization": "Basic eDp5"}}
    assert await user_of_socket(app.websocket_url, None, **in_handshake) == 4403


@pytest.mark.parametrize("offered", [None, [Subprotocol("graphql-ws")]])
async def test_another_subprotocol_closes_the_socket_with_4406(
    app: AppProcess, offered: list[Subprotocol] | None
) -> None:
    async with connect(app.websocket_url, subprotocols=offered, proxy=None) as connection:
        assert await close_code(connection) == 4406


async def test_a_second_initialization_closes_the_socket_with_4429(app: AppProcess) -> None:
    async with connect_to(app) as connection:
        await connection.send(INIT)
        await connection.send(INIT)
        assert await close_code(connection) == 4429


async def test_a_socket_that_is_not_initialized_in_time_closes_with_4408(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "INIT_TIMEOUT_S", 0.01)
    settings = Settings(
        mongo_url=servers.mongo_url, redis_url=servers.redis_url, secret_key=(SecretStr(SECRET),)
    )
    closed = asyncio.Event()
    sent: list[Message] = []
    events: list[Message] = [{"type": "websocket.connect"}]

    async def receive() -> Message:
        if not events:
            await closed.wait()
        return events.pop() if events else {"type": "websocket.disconnect", "code": 4408}

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "websocket.close":
            closed.set()

    async with open_app_state(settings, development=False) as state:
        scope = {"type": "websocket", "headers": [], "subprotocols": [PROTOCOL]}
        await state.graphql_websocket(scope, receive, send)
    assert sent[0] == {"type": "websocket.accept", "subprotocol": PROTOCOL, "headers": []}
    assert sent[1]["code"] == 4408


@pytest.mark.parametrize(
    "fields", [{}, {"payload": None}, {"payload": {}}, {"payload": {"x": [1]}}]
)
async def test_a_socket_needs_no_token(app: AppProcess, fields: Json) -> None:
    async with connect_to(app) as connection:
        opened = WebSocketTestClient(connection)
        await opened.send({"type": "connection_init", **fields})
        assert await opened.receive() == {"type": "connection_ack"}


async def test_a_ping_gets_a_pong_at_any_time_and_a_pong_is_ignored(app: AppProcess) -> None:
    async with connect_to(app) as connection:
        opened = WebSocketTestClient(connection)
        for message in (PONG, PING, {**PING, "payload": {"x": 1}}, {**PING, "payload": None}):
            await opened.send(message)
        assert [await opened.receive() for _ in range(3)] == [PONG] * 3


def handshake_status(app: AppProcess, host: str, origin: str) -> int:
    """Return the status of a handshake with exactly these headers."""
    sent = f"Host: {host}\r\nOrigin: {origin}".encode()
    with open_tcp_connection(app) as peer:
        peer.sendall(WEBSOCKET_HANDSHAKE.replace(b"Host: slotlock", sent))
        return int(read_until(peer, b"\r\n").split()[1])


@pytest.mark.parametrize(
    "origin", ["https://elsewhere.example", "null", "http://127.0.0.1:1", "http://[x"]
)
async def test_a_page_of_another_origin_gets_403(app: AppProcess, origin: str) -> None:
    with pytest.raises(InvalidStatus) as rejected:
        async with connect_to(app, origin=Origin(origin)):
            pass
    assert rejected.value.response.status_code == 403
    assert json.loads(rejected.value.response.body)["code"] == "FORBIDDEN"
    assert b"SLOTLOCK_ALLOWED_ORIGINS" in rejected.value.response.body


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("slots.example", "https://slots.example"),
        ("slots.example:8443", "https://SLOTS.example:8443"),
        # Proxies that send `$host:$server_port`, the last one behind another that ends TLS.
        ("slots.example:443", "https://slots.example"),
        ("slots.example:80", "http://slots.example"),
        ("slots.example:80", "https://slots.example"),
        ("[::1]:443", "https://[::1]"),
        # Apps for Android send the default port, and those for iOS the scheme of the socket.
        ("slots.example", "https://slots.example:443"),
        ("slots.example", "wss://slots.example"),
    ],
)
def test_a_page_of_the_same_origin_gets_a_socket(app: AppProcess, host: str, origin: str) -> None:
    assert handshake_status(app, host, origin) == 101


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("slots.example:8443", "https://slots.example"),
        ("slots.example", "https://slots.example:8443"),
        ("slots.example:443", "https://slots.example:80"),
        ("slots.example:443", "https://evil-slots.example"),
    ],
)
def test_a_page_at_another_port_or_host_gets_403(app: AppProcess, host: str, origin: str) -> None:
    assert handshake_status(app, host, origin) == 403
