"""Operations on a socket: results under their ids, completion, and at most ten at once."""

from pathlib import Path

import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import PausePoint, app_variant
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import UPDATE_SLOT, BookingClient
from tests.support.clients.client import (
    BOOK_SLOT,
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    http_client,
    open_websocket,
)
from tests.support.stores.users import UserTokens

QUERY = "{ __typename }"
SLOT_TITLE = "query($id: ID!) { node(id: $id) { ... on Slot { title } } }"
PING = {"type": "ping"}
PONG = {"type": "pong"}


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"query": "{"}, "GRAPHQL_PARSE_FAILED"),
        ({"query": ""}, "BAD_USER_INPUT"),
        ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED"),
        (
            {"query": QUERY, "variables": None, "extensions": None, "operationName": "Other"},
            "BAD_USER_INPUT",
        ),
        ({"query": QUERY, "operationName": "Other"}, "BAD_USER_INPUT"),
        ({"query": "{ a: __typename " * 500}, "LIMIT_EXCEEDED"),
        ({"query": "query ($x: ID!) { slot(id: $x) { id } }"}, "BAD_USER_INPUT"),
        ({"query": WATCH_AVAILABILITY, "variables": {"slots": []}}, "BAD_USER_INPUT"),
        (
            {"query": WATCH_AVAILABILITY, "variables": {"slots": ["slot_" + "0" * 24]}},
            "BAD_USER_INPUT",
        ),
    ],
)
async def test_a_rejected_operation_gets_its_error_and_the_socket_stays_open(
    app: AppProcess, payload: Json, code: str
) -> None:
    async with open_websocket(app) as opened:
        await opened.send({"id": "1", "type": "subscribe", "payload": payload})
        message = await opened.receive()
        assert (message["id"], message["type"]) == ("1", "error")
        assert message["payload"][0]["extensions"]["code"] == code
        await opened.subscribe("1", QUERY)
        assert await opened.next_result() == "Query"


async def test_a_field_that_fails_is_a_result(app: AppProcess) -> None:
    async with open_websocket(app) as opened:
        await opened.subscribe("1", "{ myBookings { nodes { id } } }")
        message = await opened.receive()
        assert message["type"] == "next"
        assert message["payload"]["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_queries_and_mutations_may_be_sent_over_a_socket(
    app: AppProcess, organizer: BookingClient
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


async def test_each_operation_on_a_socket_reads_current_data(
    app: AppProcess, organizer: BookingClient
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    async with open_websocket(app, organizer.token) as opened:
        for title in ("Before", "After"):
            changes = {"slotId": slot_id, "title": title}
            assert (await organizer.execute(UPDATE_SLOT, input=changes))["__typename"] == "Slot"
            await opened.subscribe("1", SLOT_TITLE, id=slot_id)
            assert await opened.next_result() == {"title": title}
            assert await opened.receive() == {"id": "1", "type": "complete"}


async def test_an_id_may_be_used_again_after_its_subscription_is_completed(
    app: AppProcess, organizer: BookingClient
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


async def test_a_socket_carries_ten_operations(app: AppProcess, organizer: BookingClient) -> None:
    slot = await organizer.create_slot()
    async with open_websocket(app) as opened:
        for number in range(10):
            await opened.subscribe(str(number), WATCH_AVAILABILITY, slots=[slot["id"]])
            await opened.next_result()
        await opened.subscribe("10", QUERY)
        message = await opened.receive()
        assert (message["id"], message["type"]) == ("10", "error")
        assert message["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
        await opened.send({"id": "0", "type": "complete"})
        await opened.subscribe("10", QUERY)
        assert await opened.next_result() == "Query"


async def test_a_mutation_that_was_completed_early_counts_until_it_has_finished(
    servers: EmbeddedServers, two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    environment = two_apps[0].environment
    async with http_client() as http:
        organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        slot_id = (await organizer.create_slot(capacity=20))["id"]
    with Redis.from_url(servers.redis_url) as redis:
        pause_point = PausePoint(redis)
        with app_variant(environment, log_dir, pause_at="commit", pause_point=pause_point) as app:
            async with open_websocket(app, user_tokens.members[0]) as opened:
                await opened.subscribe("paused", BOOK_SLOT, slot=slot_id)
                pause_point.wait_until_reached()
                await opened.send({"id": "paused", "type": "complete"})
                for number in range(9):
                    await opened.subscribe(str(number), WATCH_AVAILABILITY, slots=[slot_id])
                    assert (await opened.receive())["type"] == "next"
                await opened.subscribe("eleventh", "{ me { id } }")
                message = await opened.receive()
                assert message["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
                pause_point.resume()


@pytest.mark.parametrize("operation_id", ["1", "\N{SLOT MACHINE}" * 100])
async def test_an_id_in_use_closes_the_socket_with_4409(
    app: AppProcess, organizer: BookingClient, operation_id: str
) -> None:
    slot = await organizer.create_slot()
    async with open_websocket(app) as opened:
        await opened.subscribe(operation_id, WATCH_AVAILABILITY, slots=[slot["id"]])
        await opened.next_result()
        await opened.subscribe(operation_id, QUERY)
        with pytest.raises(ConnectionClosed) as closed:
            await opened.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4409
