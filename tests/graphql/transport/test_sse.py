"""Server-sent events: results as a stream for clients without WebSockets."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign, unpublish_campaign
from tests.support.clients.client import CREATE_SLOT, WATCH_AVAILABILITY, Json, slot_input
from tests.support.polling import eventually, wait_until

ACCEPT_EVENTS = {"Accept": "text/event-stream, application/json;q=0.5"}
BOOK_AND_WAIT = """mutation($id: ID!) {
  bookSlot(input: {slotId: $id, waitMs: 20000}) { __typename }
}"""


def subscription_to(slot_id: str) -> Json:
    """Build the body of a subscription to the availability of a slot."""
    return {"query": WATCH_AVAILABILITY, "variables": {"slots": [slot_id]}}


async def next_event(lines: AsyncIterator[str]) -> tuple[str, Json]:
    """Return the name and the data of the next event, without comments."""
    name = data = ""
    async for line in lines:
        kind, _, value = line.partition(":")
        if not line and name:
            break
        name = value.strip() if kind == "event" else name
        data = value.strip() if kind == "data" else data
    return name, orjson.loads(data or "{}")


async def test_a_document_beyond_a_limit_gets_the_same_400_as_without_events(
    organizer: BookingClient,
) -> None:
    query = "{ slots { nodes {" + " myBooking { slot {" * 5 + " id " + "} }" * 5 + " } } }"
    url = organizer.url + "/graphql"
    response = await organizer.http.post(url, json={"query": query}, headers=ACCEPT_EVENTS)
    without_events = await organizer.http.post(url, json={"query": query})
    assert response.status_code == without_events.status_code == 400
    assert response.headers["content-type"] == "application/json"
    assert response.json()["errors"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert response.content == without_events.content


async def test_a_query_has_one_event_and_a_completion(organizer: BookingClient) -> None:
    response = await organizer.http.post(
        organizer.url + "/graphql", json={"query": "{ __typename }"}, headers=ACCEPT_EVENTS
    )
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.text == (
        'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata:\n\n'
    )


async def test_a_subscription_sends_the_current_state_and_then_every_newer_one(
    organizer: BookingClient,
) -> None:
    slot = await organizer.create_slot(capacity=2)
    url, params = organizer.url + "/graphql", {"query": WATCH_AVAILABILITY}
    params["variables"] = orjson.dumps({"slots": [slot["id"]]}).decode()
    async with organizer.http.stream("GET", url, params=params, headers=ACCEPT_EVENTS) as response:
        lines = response.aiter_lines()
        name, first = await next_event(lines)
        assert name == "next"
        assert first["data"]["slotAvailability"]["version"] == slot["version"]
        assert first["data"]["slotAvailability"]["remaining"] == 2
        await organizer.book(slot["id"])
        name, second = await next_event(lines)
        assert name == "next"
        assert second["data"]["slotAvailability"]["remaining"] == 1


async def test_a_subscription_completes_after_its_slot_became_hidden(
    organizer: BookingClient,
) -> None:
    campaign_id = await create_campaign(organizer)
    body = subscription_to(await organizer.add_slot(campaignId=campaign_id))
    body["query"] = body["query"].replace("version", "isHidden version")
    url = organizer.url + "/graphql"
    async with organizer.http.stream("POST", url, json=body, headers=ACCEPT_EVENTS) as response:
        lines = response.aiter_lines()
        assert (await next_event(lines))[1]["data"]["slotAvailability"]["isHidden"] is False
        await unpublish_campaign(organizer, campaign_id)
        assert (await next_event(lines))[1]["data"]["slotAvailability"]["isHidden"] is True
        assert await next_event(lines) == ("complete", {})


async def test_a_client_that_disconnects_ends_its_subscription(
    app: AppProcess, organizer: BookingClient
) -> None:
    body = subscription_to((await organizer.create_slot())["id"])
    url = organizer.url + "/graphql"
    async with organizer.http.stream("POST", url, json=body, headers=ACCEPT_EVENTS) as response:
        await next_event(response.aiter_lines())
        assert app.metric("slotlock_subscriptions_active") >= 1
    await asyncio.to_thread(
        wait_until, lambda: app.metric("slotlock_subscriptions_active") == 0, "it has ended"
    )


async def test_a_rejected_subscription_has_one_event_with_the_error_and_a_completion(
    organizer: BookingClient,
) -> None:
    body = subscription_to("slot_" + "0" * 24)
    url = organizer.url + "/graphql"
    response = await organizer.http.post(url, json=body, headers=ACCEPT_EVENTS)
    lines = response.aiter_lines()
    name, result = await next_event(lines)
    assert name == "next"
    assert result["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    assert await next_event(lines) == ("complete", {})


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_subscription_without_a_stream_gets_406_with_the_possible_transports(
    organizer: BookingClient, method: str
) -> None:
    body = {"query": 'subscription { slotAvailability(slotIds: ["x"]) { version } }'}
    response = await organizer.http.request(
        method,
        organizer.url + "/graphql",
        params=body if method == "GET" else None,
        json=body if method == "POST" else None,
        headers={"Accept": "application/json"},
    )
    assert response.status_code == 406
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert "WebSocket" in error["message"]
    assert "text/event-stream" in error["message"]


async def test_a_mutation_may_be_sent_for_events(organizer: BookingClient) -> None:
    body = {"query": CREATE_SLOT, "variables": {"input": slot_input()}}
    response = await organizer.http.post(
        organizer.url + "/graphql", json=body, headers=ACCEPT_EVENTS | organizer.headers
    )
    lines = response.aiter_lines()
    name, result = await next_event(lines)
    assert (name, result["data"]["createSlot"]["__typename"]) == ("next", "Slot")
    assert await next_event(lines) == ("complete", {})


async def test_a_mutation_in_progress_gets_its_result_although_its_session_ends(
    organizer: BookingClient, servers: EmbeddedServers
) -> None:
    slot = await organizer.create_slot()
    lock = lock_key(slot["id"])
    body = {"query": BOOK_AND_WAIT, "variables": {"id": slot["id"]}}
    url, headers = organizer.url + "/graphql", {**organizer.headers, **ACCEPT_EVENTS}
    with Redis.from_url(servers.redis_url) as redis:
        redis.set(lock, "another-process:1", px=60_000)
        async with organizer.http.stream("POST", url, json=body, headers=headers) as response:

            async def is_waiting() -> bool:
                return bool(redis.exists(lock.replace(":lock", ":queue")))

            await eventually(is_waiting, "the booking waits for the lock")
            assert await organizer.execute("mutation { logout }") is True
            redis.delete(lock)
            name, result = await next_event(response.aiter_lines())
    assert name == "next"
    assert result == {"data": {"bookSlot": {"__typename": "Booked"}}}
