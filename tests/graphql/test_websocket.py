"""The socket keeps to the graphql-transport-ws protocol, whatever it is sent."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from slotlock.domain.people import Role
from tests.support.client import BOOK, WATCH, Client, Json, Socket, http_client, socket
from tests.support.people import auth_on, sign_in
from tests.support.processes import AppProcess, wait_until

PROTOCOL = Subprotocol("graphql-transport-ws")
INIT = '{"type": "connection_init"}'
PING = {"type": "ping"}
PONG = {"type": "pong"}
NAME = "{ __typename }"


@pytest.fixture
async def organiser(app: AppProcess) -> AsyncIterator[Client]:
    async with auth_on(app.environment["SLOTLOCK_MONGO_URL"]) as auth, http_client() as http:
        yield Client(http, app.url, await sign_in(auth, Role.ORGANIZER))


def opening(app: AppProcess, **how: Any) -> connect:
    """A socket on which nothing was said yet."""
    return connect(app.socket_url, subprotocols=[PROTOCOL], proxy=None, **how)


async def close_code(connection: ClientConnection) -> int:
    """What the server closes the socket with; it may answer before it does."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            await connection.recv()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def subscriptions_open(app: AppProcess) -> float:
    text = httpx.get(app.url + "/metrics", trust_env=False).text
    return float(text.partition("\nslotlock_subscriptions_active ")[2].split()[0])


@pytest.mark.parametrize(
    "message",
    [
        "[]", '"connection_init"', "7", "null", "{", "", '{"type": "next"}', "{}",
        '{"type": "start", "id": "1", "payload": {}}', '{"type": ["ping"]}', '{"type": null}',
        b'{"type": "connection_init"}', b"\x00", "[" * 50_000,
        '{"type": "connection_init", "payload": []}', '{"type": "connection_init", "payload": "x"}',
    ],
)  # fmt: skip
async def test_what_is_no_message_closes_the_socket_with_4400(
    app: AppProcess, message: str | bytes
) -> None:
    async with opening(app) as connection:
        await connection.send(message)
        assert await close_code(connection) == 4400


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "subscribe"}, {"type": "subscribe", "id": "1"},
        {"type": "subscribe", "payload": {"query": NAME}},
        {"type": "subscribe", "id": 1, "payload": {"query": NAME}},
        {"type": "subscribe", "id": "", "payload": {"query": NAME}},
        {"type": "subscribe", "id": "1", "payload": [NAME]},
        {"type": "subscribe", "id": "1", "payload": {"query": None}},
        {"type": "complete"}, {"type": "complete", "id": None}, {"type": "complete", "id": 1},
        {"type": "next", "id": "1", "payload": {}}, {"type": "connection_ack"},
    ],
)  # fmt: skip
async def test_a_message_without_what_it_needs_closes_the_socket_with_4400(
    app: AppProcess, wrong: Json
) -> None:
    async with socket(app) as opened:
        await opened.send(wrong)
        assert await close_code(opened.connection) == 4400


async def test_an_operation_before_the_acknowledgement_closes_with_4401(app: AppProcess) -> None:
    async with opening(app) as connection:
        await Socket(connection).subscribe("1", NAME)
        assert await close_code(connection) == 4401


@pytest.mark.parametrize("authorization", ["Bearer", "Bearer x.y.z", "Basic eDp5", "x", 7, {}])
async def test_a_token_that_is_no_good_closes_with_4403(
    app: AppProcess, authorization: object
) -> None:
    async with opening(app) as connection:
        payload = {"Authorization": authorization}
        await connection.send(json.dumps({"type": "connection_init", "payload": payload}))
        assert await close_code(connection) == 4403


@pytest.mark.parametrize("offered", [None, [Subprotocol("graphql-ws")]])
async def test_another_subprotocol_closes_with_4406(
    app: AppProcess, offered: list[Subprotocol] | None
) -> None:
    async with connect(app.socket_url, subprotocols=offered, proxy=None) as connection:
        assert await close_code(connection) == 4406


async def test_an_id_in_use_closes_with_4409(app: AppProcess, organiser: Client) -> None:
    slot = await organiser.create_slot()
    async with socket(app) as opened:
        await opened.subscribe("1", WATCH, slots=[slot["id"]])
        await opened.next()
        await opened.subscribe("1", NAME)
        assert await close_code(opened.connection) == 4409


async def test_a_second_initialisation_closes_with_4429(app: AppProcess) -> None:
    async with opening(app) as connection:
        await connection.send(INIT)
        await connection.send(INIT)
        assert await close_code(connection) == 4429


@pytest.mark.parametrize("more", [{}, {"payload": None}, {"payload": {}}, {"payload": {"x": [1]}}])
async def test_a_socket_needs_no_identity(app: AppProcess, more: Json) -> None:
    async with opening(app) as connection:
        opened = Socket(connection)
        await opened.send({"type": "connection_init", **more})
        assert await opened.receive() == {"type": "connection_ack"}


async def test_a_ping_is_answered_at_any_time_and_a_pong_is_welcome(app: AppProcess) -> None:
    async with opening(app) as connection:
        opened = Socket(connection)
        for message in (PONG, PING, {**PING, "payload": {"x": 1}}):
            await opened.send(message)
        assert [await opened.receive(), await opened.receive()] == [PONG, PONG]


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"query": "{"}, "GRAPHQL_PARSE_FAILED"),
        ({"query": ""}, "BAD_USER_INPUT"),
        ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED"),
        ({"query": NAME, "variables": 7}, "BAD_USER_INPUT"),
        ({"query": NAME, "operationName": "Other"}, "BAD_USER_INPUT"),
        ({"query": "{ a: __typename " * 500}, "LIMIT_EXCEEDED"),
        ({"query": "query ($x: ID!) { slot(id: $x) { id } }"}, "BAD_USER_INPUT"),
        ({"query": WATCH, "variables": {"slots": []}}, "BAD_USER_INPUT"),
        ({"query": WATCH, "variables": {"slots": ["slot_" + "0" * 24]}}, "BAD_USER_INPUT"),
    ],
)
async def test_an_operation_that_is_refused_is_told_why_and_closes_nothing(
    app: AppProcess, payload: Json, code: str
) -> None:
    async with socket(app) as opened:
        await opened.send({"id": "1", "type": "subscribe", "payload": payload})
        refused = await opened.receive()
        assert (refused["id"], refused["type"]) == ("1", "error")
        assert refused["payload"][0]["extensions"]["code"] == code
        await opened.subscribe("1", NAME)
        assert await opened.next() == "Query"


async def test_a_failing_field_is_an_answer(app: AppProcess) -> None:
    async with socket(app) as opened:
        await opened.subscribe("1", "{ myBookings { nodes { id } } }")
        answer = await opened.receive()
        assert answer["type"] == "next"
        assert answer["payload"]["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_queries_and_mutations_go_over_the_socket_and_end(
    app: AppProcess, organiser: Client
) -> None:
    slot = await organiser.create_slot()
    async with socket(app, organiser.token) as opened:
        for operation_id in ("1", "1", "2"):
            await opened.subscribe(operation_id, "{ me { role } }")
            assert await opened.next() == {"role": "ORGANIZER"}
            assert await opened.receive() == {"id": operation_id, "type": "complete"}
        await opened.subscribe("1", BOOK, slot=slot["id"])
        assert (await opened.next())["__typename"] == "Booked"
        assert await opened.receive() == {"id": "1", "type": "complete"}


async def test_an_id_is_free_again_once_its_subscription_is_completed(
    app: AppProcess, organiser: Client
) -> None:
    slot = await organiser.create_slot(capacity=5)
    async with socket(app) as opened:
        for _ in range(3):
            await opened.subscribe("1", WATCH, slots=[slot["id"]])
            assert (await opened.next())["remaining"] == 5
            await opened.send({"id": "1", "type": "complete"})
        await opened.send({"id": "unknown", "type": "complete"})
        await opened.send(PING)
        assert await opened.receive() == PONG


async def test_a_socket_carries_at_most_ten_operations(app: AppProcess, organiser: Client) -> None:
    slot = await organiser.create_slot()
    async with socket(app) as opened:
        for number in range(10):
            await opened.subscribe(str(number), WATCH, slots=[slot["id"]])
            await opened.next()
        await opened.subscribe("10", NAME)
        refused = await opened.receive()
        assert (refused["id"], refused["type"]) == ("10", "error")
        assert refused["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
        await opened.send({"id": "0", "type": "complete"})
        await opened.subscribe("10", NAME)
        assert await opened.next() == "Query"


@pytest.mark.parametrize(
    "origin", ["https://elsewhere.example", "null", "http://127.0.0.1:1", "http://[x"]
)
async def test_a_page_of_another_origin_gets_no_socket(app: AppProcess, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with opening(app, origin=Origin(origin)):
            pass
    assert refused.value.response.status_code == 403


async def test_a_page_of_the_same_origin_gets_a_socket(app: AppProcess) -> None:
    async with opening(app, origin=Origin(app.url)) as connection:
        await connection.send(INIT)
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}


async def test_a_client_that_vanishes_is_watched_for_no_longer(
    app: AppProcess, organiser: Client
) -> None:
    slot = await organiser.create_slot()
    async with socket(app) as opened:
        await opened.subscribe("1", WATCH, slots=[slot["id"]])
        await opened.next()
        assert subscriptions_open(app) >= 1
        opened.connection.transport.abort()
        wait_until(lambda: subscriptions_open(app) == 0, "the subscription ended")
