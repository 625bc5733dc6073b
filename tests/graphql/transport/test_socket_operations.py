"""Operations on a socket: each is answered under its id, and ends when its reader does."""

from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import ConnectionClosed

from slotlock.domain.users.user import Role
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import UPDATE_SLOT
from tests.support.clients.client import (
    BOOK_SLOT,
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    http_client,
    open_websocket,
)
from tests.support.stores.users import auth_for_database, sign_in_new_user

NAME = "{ __typename }"
LOADED = "query($id: ID!) { node(id: $id) { ... on Slot { title } } }"
PING = {"type": "ping"}
PONG = {"type": "pong"}


@pytest.fixture
async def organizer(app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with (
        auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth,
        http_client() as http,
    ):
        yield GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"query": "{"}, "GRAPHQL_PARSE_FAILED"),
        ({"query": ""}, "BAD_USER_INPUT"),
        ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED"),
        (
            {"query": NAME, "variables": None, "extensions": None, "operationName": "Other"},
            "BAD_USER_INPUT",
        ),
        ({"query": NAME, "operationName": "Other"}, "BAD_USER_INPUT"),
        ({"query": "{ a: __typename " * 500}, "LIMIT_EXCEEDED"),
        ({"query": "query ($x: ID!) { slot(id: $x) { id } }"}, "BAD_USER_INPUT"),
        ({"query": WATCH_AVAILABILITY, "variables": {"slots": []}}, "BAD_USER_INPUT"),
        (
            {"query": WATCH_AVAILABILITY, "variables": {"slots": ["slot_" + "0" * 24]}},
            "BAD_USER_INPUT",
        ),
    ],
)
async def test_an_operation_that_is_refused_is_told_why_and_closes_nothing(
    app: AppProcess, payload: Json, code: str
) -> None:
    async with open_websocket(app) as opened:
        await opened.send({"id": "1", "type": "subscribe", "payload": payload})
        refused = await opened.receive()
        assert (refused["id"], refused["type"]) == ("1", "error")
        assert refused["payload"][0]["extensions"]["code"] == code
        await opened.subscribe("1", NAME)
        assert await opened.next_result() == "Query"


async def test_a_failing_field_is_an_answer(app: AppProcess) -> None:
    async with open_websocket(app) as opened:
        await opened.subscribe("1", "{ myBookings { nodes { id } } }")
        answer = await opened.receive()
        assert answer["type"] == "next"
        assert answer["payload"]["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_queries_and_mutations_go_over_the_socket_and_end(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot = await organizer.create_slot()
    async with open_websocket(app, organizer.token) as opened:
        for operation_id in ("1", "1", "2"):
            await opened.subscribe(operation_id, "{ me { role } }")
            assert await opened.next_result() == {"role": "ORGANIZER"}
            assert await opened.receive() == {"id": operation_id, "type": "complete"}
        await opened.subscribe("1", BOOK_SLOT, slot=slot["id"])
        assert (await opened.next_result())["__typename"] == "Booked"
        assert await opened.receive() == {"id": "1", "type": "complete"}


async def test_each_operation_on_a_socket_sees_what_changed_since_the_one_before(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    async with open_websocket(app, organizer.token) as opened:
        for title in ("Before", "After"):
            renamed = {"slotId": slot_id, "title": title}
            assert (await organizer.execute(UPDATE_SLOT, input=renamed))["__typename"] == "Slot"
            await opened.subscribe("1", LOADED, id=slot_id)
            assert await opened.next_result() == {"title": title}
            assert await opened.receive() == {"id": "1", "type": "complete"}


async def test_an_id_is_free_again_once_its_subscription_is_completed(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot = await organizer.create_slot(capacity=5)
    async with open_websocket(app) as opened:
        for _ in range(3):
            await opened.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
            assert (await opened.next_result())["remaining"] == 5
            await opened.send({"id": "1", "type": "complete"})
        await opened.send({"id": "unknown", "type": "complete"})
        await opened.send(PING)
        assert await opened.receive() == PONG


async def test_a_socket_carries_at_most_ten_operations(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot = await organizer.create_slot()
    async with open_websocket(app) as opened:
        for number in range(10):
            await opened.subscribe(str(number), WATCH_AVAILABILITY, slots=[slot["id"]])
            await opened.next_result()
        await opened.subscribe("10", NAME)
        refused = await opened.receive()
        assert (refused["id"], refused["type"]) == ("10", "error")
        assert refused["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
        await opened.send({"id": "0", "type": "complete"})
        await opened.subscribe("10", NAME)
        assert await opened.next_result() == "Query"


@pytest.mark.parametrize("operation_id", ["1", "\N{SLOT MACHINE}" * 100])
async def test_an_id_in_use_closes_with_4409(
    app: AppProcess, organizer: GraphQLTestClient, operation_id: str
) -> None:
    slot = await organizer.create_slot()
    async with open_websocket(app) as opened:
        await opened.subscribe(operation_id, WATCH_AVAILABILITY, slots=[slot["id"]])
        await opened.next_result()
        await opened.subscribe(operation_id, NAME)
        with pytest.raises(ConnectionClosed) as closed:
            await opened.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4409
