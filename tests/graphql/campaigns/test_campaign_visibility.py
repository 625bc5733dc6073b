"""The visibility of a campaign and its slots before, during and after its publication."""

import random
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import (
    CAMPAIGN_BY_ID,
    CAMPAIGN_LIST,
    book_with_refusal,
    create_campaign,
    publish_campaign,
    unpublish_campaign,
)
from tests.support.clients.client import WATCH_AVAILABILITY, GraphQLTestClient, Json, open_websocket

Pair = tuple[AppProcess, AppProcess]
Clients = tuple[BookingClient, GraphQLTestClient, BookingClient]

SLOT = "query($id: ID!) { slot(id: $id) { id campaign { id } } }"
SLOTS = """query($filter: SlotsFilter, $after: String) {
  slots(filter: $filter, first: 100, after: $after) {
    nodes { id } pageInfo { hasNextPage endCursor }
  }
}"""
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
NODE = "query($id: ID!) { node(id: $id) { id } }"
MY_BOOKINGS = """{ myBookings(first: 100) { nodes { id slot { id campaign { id } } } } }"""
MY_ENDED_BOOKINGS = """{ myEndedBookings(first: 100) { nodes { id } } }"""


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Clients:
    """Return a member on one process, an anonymous client on the other, and an organizer."""
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    return ada, GraphQLTestClient(http, two_apps[1].url), organizer


async def all_ids(reader: GraphQLTestClient, query: str, **variables: Any) -> set[str]:
    """Return the ids on all pages of a list."""
    found: set[str] = set()
    after = None
    while True:
        page = await reader.execute(query, after=after, **variables)
        found |= {node["id"] for node in page["nodes"]}
        if not page["pageInfo"]["hasNextPage"]:
            return found
        after = page["pageInfo"]["endCursor"]


async def visibility(
    reader: GraphQLTestClient, campaign_id: str, slot_id: str, start_time: str
) -> dict[str, bool]:
    """Return whether a reader finds a campaign and its slot through each field of the schema."""
    nodes = await reader.execute(NODES, ids=[campaign_id, slot_id])
    slot = await reader.execute(SLOT, id=slot_id)
    time_filter = {
        "startsFrom": start_time,
        "startsBefore": start_time.replace("00:00.000", "59:59.999"),
    }
    campaign_filter = {"campaignId": campaign_id}
    return {
        "campaign": await reader.execute(CAMPAIGN_BY_ID, id=campaign_id) is not None,
        "campaigns": campaign_id in await all_ids(reader, CAMPAIGN_LIST),
        "slot": slot is not None,
        "slot's campaign": slot is not None and slot["campaign"] == {"id": campaign_id},
        "slots": slot_id in await all_ids(reader, SLOTS, filter=time_filter),
        "slots of the campaign": slot_id in await all_ids(reader, SLOTS, filter=campaign_filter),
        "nodes: campaign": nodes[0] is not None,
        "nodes: slot": nodes[1] is not None,
        "node: campaign": await reader.execute(NODE, id=campaign_id) is not None,
        "node: slot": await reader.execute(NODE, id=slot_id) is not None,
    }


async def first_message(app: AppProcess, token: str | None, slot_id: str) -> Json:
    """Return the first message of a subscription to a slot."""
    async with open_websocket(app, token) as websocket:
        await websocket.subscribe("1", WATCH_AVAILABILITY, slots=[slot_id])
        return await websocket.receive()


def shows_slot(message: Json) -> bool:
    """Return whether a first message contains the slot. Otherwise it reports an unknown slot."""
    payload = message["payload"]
    errors = payload if message["type"] == "error" else payload.get("errors")
    if errors:
        assert errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
    return not errors


async def test_only_organizers_see_an_unpublished_campaign_and_its_slots(
    clients: Clients, two_apps: Pair
) -> None:
    ada, anonymous, organizer = clients
    campaign_id = await create_campaign(organizer, published=False)
    start_time = f"{random.randrange(2100, 9000)}-05-07T09:00:00.000Z"
    end_time = start_time.replace("T09", "T10")
    slot_id = await organizer.add_slot(
        campaignId=campaign_id, startTime=start_time, endTime=end_time
    )
    published = [(False, None), (True, publish_campaign), (False, unpublish_campaign)]
    for is_published, change in published:
        if change is not None:
            await change(organizer, campaign_id)
        assert set((await visibility(organizer, campaign_id, slot_id, start_time)).values()) == {
            True
        }
        assert set((await visibility(ada, campaign_id, slot_id, start_time)).values()) == {
            is_published
        }
        assert set((await visibility(anonymous, campaign_id, slot_id, start_time)).values()) == {
            is_published
        }
        for app, token in ((two_apps[0], ada.token), (two_apps[1], None)):
            assert shows_slot(await first_message(app, token, slot_id)) == is_published
        assert shows_slot(await first_message(two_apps[1], organizer.token, slot_id))


async def test_a_draft_in_a_published_campaign_stays_a_draft(clients: Clients) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id, draft=True)
    assert await ada.execute(SLOT, id=slot_id) is None
    assert await all_ids(ada, SLOTS, filter={"campaignId": campaign_id}) == set()
    assert (await book_with_refusal(ada, slot_id))["code"] == "SLOT_NOT_FOUND"


async def test_a_hidden_slot_is_refused_for_organizers_unless_they_book_for_a_user(
    clients: Clients,
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer, published=False)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    assert (await book_with_refusal(organizer, slot_id))["code"] == "SLOT_NOT_FOUND"
    outcome = await book_with_refusal(organizer, slot_id, userId=await ada.fetch_user_id())
    assert outcome["booking"]["overriddenLimits"] == ["CLOSED"]


async def test_a_user_can_see_and_cancel_a_booking_of_an_unpublished_campaign(
    clients: Clients,
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    await unpublish_campaign(organizer, campaign_id)
    (booking,) = (await ada.execute(MY_BOOKINGS))["nodes"]
    assert booking == {"id": booking_id, "slot": {"id": slot_id, "campaign": None}}
    assert (await ada.fetch_booking(booking_id))["status"] == "CONFIRMED"
    assert (await ada.cancel_booking(booking_id))["__typename"] == "BookingCancelled"
    assert (await ada.fetch_booking(booking_id))["status"] == "CANCELLED"


async def test_ended_bookings_of_an_unpublished_campaign_stay_visible_to_the_user(
    clients: Clients,
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    await ada.cancel_booking(booking_id)
    assert (await ada.execute(MY_ENDED_BOOKINGS))["nodes"] == [{"id": booking_id}]
    await unpublish_campaign(organizer, campaign_id)
    assert (await ada.execute(MY_ENDED_BOOKINGS))["nodes"] == [{"id": booking_id}]
