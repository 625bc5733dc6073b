"""Server-sent events: what clients that cannot open sockets listen to."""

from collections.abc import AsyncIterator

import httpx
import orjson
import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import (
    CREATE_SLOT,
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    http_client,
    slot_input,
)
from tests.support.polling import eventually, wait_until
from tests.support.stores.users import auth_for_database, sign_in_new_user

EVENTS = {"Accept": "text/event-stream, application/json;q=0.5"}


@pytest.fixture
async def organizer(app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with (
        auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth,
        http_client() as http,
    ):
        yield GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))


def watching(slot_id: str) -> Json:
    return {"query": WATCH_AVAILABILITY, "variables": {"slots": [slot_id]}}


async def event(lines: AsyncIterator[str]) -> tuple[str, Json]:
    """The next event's name and data; comments keep the line open and say nothing."""
    name = data = ""
    async for line in lines:
        kind, _, value = line.partition(":")
        if not line and name:
            break
        name = value.strip() if kind == "event" else name
        data = value.strip() if kind == "data" else data
    return name, orjson.loads(data or "{}")


async def test_a_document_past_a_limit_is_refused_as_it_is_without_events(
    organizer: GraphQLTestClient,
) -> None:
    deep = {
        "query": "{ slots { nodes {" + " myBooking { slot {" * 5 + " id " + "} }" * 5 + " } } }"
    }
    url = organizer.url + "/graphql"
    refused = await organizer.http.post(url, json=deep, headers=EVENTS)
    plain = await organizer.http.post(url, json=deep)
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/json")
    assert refused.json()["errors"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert (refused.status_code, refused.content) == (plain.status_code, plain.content)


async def test_a_query_is_one_event_and_the_end(organizer: GraphQLTestClient) -> None:
    response = await organizer.http.post(
        organizer.url + "/graphql", json={"query": "{ __typename }"}, headers=EVENTS
    )
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.text == (
        'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata:\n\n'
    )


async def test_a_subscription_gives_the_present_state_and_then_every_newer_one(
    organizer: GraphQLTestClient,
) -> None:
    slot = await organizer.create_slot(capacity=2)
    url, parameters = organizer.url + "/graphql", {"query": WATCH_AVAILABILITY}
    parameters["variables"] = orjson.dumps({"slots": [slot["id"]]}).decode()
    async with organizer.http.stream("GET", url, params=parameters, headers=EVENTS) as response:
        lines = response.aiter_lines()
        name, first = await event(lines)
        assert name == "next"
        assert first["data"]["slotAvailability"]["version"] == slot["version"]
        assert first["data"]["slotAvailability"]["remaining"] == 2
        await organizer.book(slot["id"])
        name, second = await event(lines)
        assert name == "next"
        assert second["data"]["slotAvailability"]["remaining"] == 1


async def test_a_client_that_hangs_up_is_watched_for_no_longer(
    organizer: GraphQLTestClient,
) -> None:
    slot = await organizer.create_slot()
    url = organizer.url + "/graphql"

    def open_now() -> float:
        text = httpx.get(organizer.url + "/metrics", trust_env=False, timeout=30).text
        return float(text.partition("\nslotlock_subscriptions_active ")[2].split()[0])

    async with organizer.http.stream(
        "POST", url, json=watching(slot["id"]), headers=EVENTS
    ) as response:
        await event(response.aiter_lines())
        assert open_now() >= 1
    wait_until(lambda: open_now() == 0, "the subscription ended")


async def test_a_subscription_that_is_refused_says_why_and_ends(
    organizer: GraphQLTestClient,
) -> None:
    response = await organizer.http.post(
        organizer.url + "/graphql", json=watching("slot_" + "0" * 24), headers=EVENTS
    )
    lines = response.aiter_lines()
    name, refused = await event(lines)
    assert name == "next"
    assert refused["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    assert await event(lines) == ("complete", {})


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_subscription_without_a_stream_is_told_what_it_needs(
    organizer: GraphQLTestClient, method: str
) -> None:
    sent = {"query": 'subscription { slotAvailability(slotIds: ["x"]) { version } }'}
    how = {"params": sent} if method == "GET" else {"json": sent}
    how["headers"] = {"Accept": "application/json"}
    response = await organizer.http.request(method, organizer.url + "/graphql", **how)  # type: ignore[arg-type]
    assert response.status_code == 406
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert "WebSocket" in error["message"]
    assert "text/event-stream" in error["message"]


async def test_a_mutation_is_answered_by_events_too(organizer: GraphQLTestClient) -> None:
    sent = {"query": CREATE_SLOT, "variables": {"input": slot_input()}}
    response = await organizer.http.post(
        organizer.url + "/graphql", json=sent, headers=EVENTS | organizer.headers
    )
    lines = response.aiter_lines()
    name, created = await event(lines)
    assert (name, created["data"]["createSlot"]["__typename"]) == ("next", "Slot")
    assert await event(lines) == ("complete", {})


async def test_an_act_that_was_begun_is_answered_though_its_session_ends_meanwhile(
    organizer: GraphQLTestClient, servers: EmbeddedServers
) -> None:
    slot = await organizer.create_slot()
    lock = lock_key(slot["id"])
    book = "mutation($id: ID!) { bookSlot(input: {slotId: $id, waitMs: 20000}) { __typename } }"
    sent = {"query": book, "variables": {"id": slot["id"]}}
    url, headers = organizer.url + "/graphql", {**organizer.headers, **EVENTS}
    with Redis.from_url(servers.redis_url) as redis:
        redis.set(lock, "somebody-else:1", px=60_000)
        async with organizer.http.stream("POST", url, json=sent, headers=headers) as response:

            async def waits() -> bool:
                return bool(redis.exists(lock.replace(":lock", ":queue")))

            await eventually(waits, "it waits")
            assert await organizer.execute("mutation { logout }") is True
            redis.delete(lock)
            name, answer = await event(response.aiter_lines())
    assert name == "next"
    assert answer == {"data": {"bookSlot": {"__typename": "Booked"}}}
