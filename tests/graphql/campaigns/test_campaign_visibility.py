"""Who sees what of a campaign: before it is published, and after it was unpublished again."""

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

SLOT = "query($id: ID!) { slot(id: $id) { id campaign { id } } }"
SLOTS = """query($filter: SlotsFilter, $after: String) {
  slots(filter: $filter, first: 100, after: $after) {
    nodes { id } pageInfo { hasNextPage endCursor }
  }
}"""
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
NODE = "query($id: ID!) { node(id: $id) { id } }"
MINE = """{ myBookings(first: 100) { nodes { id slot { id campaign { id } } } } }"""
ENDED = """{ myEndedBookings(first: 100) { nodes { id } } }"""


@pytest.fixture
async def clients(
    two_apps: Pair, http: httpx.AsyncClient
) -> tuple[BookingClient, GraphQLTestClient, BookingClient]:
    """A member at one process, a visitor at the other, and an organiser."""
    (ada,), organiser = await create_booking_clients(http, 1, *two_apps)
    return ada, GraphQLTestClient(http, two_apps[1].url), organiser


async def listed(reader: GraphQLTestClient, query: str, **variables: Any) -> set[str]:
    """The ids on all pages of a list."""
    found: set[str] = set()
    after = None
    while True:
        page = await reader.execute(query, after=after, **variables)
        found |= {node["id"] for node in page["nodes"]}
        if not page["pageInfo"]["hasNextPage"]:
            return found
        after = page["pageInfo"]["endCursor"]


async def seen(
    reader: GraphQLTestClient, campaign_id: str, slot_id: str, starts: str
) -> dict[str, bool]:
    """By which ways a reader finds a campaign and its slot, which starts at a time of its own."""
    nodes = await reader.execute(NODES, ids=[campaign_id, slot_id])
    slot = await reader.execute(SLOT, id=slot_id)
    within = {"startsFrom": starts, "startsBefore": starts.replace("00:00.000", "59:59.999")}
    one = {"campaignId": campaign_id}
    return {
        "campaign": await reader.execute(CAMPAIGN_BY_ID, id=campaign_id) is not None,
        "campaigns": campaign_id in await listed(reader, CAMPAIGN_LIST),
        "slot": slot is not None,
        "slot's campaign": slot is not None and slot["campaign"] == {"id": campaign_id},
        "slots": slot_id in await listed(reader, SLOTS, filter=within),
        "slots of it": slot_id in await listed(reader, SLOTS, filter=one),
        "nodes: campaign": nodes[0] is not None,
        "nodes: slot": nodes[1] is not None,
        "node: campaign": await reader.execute(NODE, id=campaign_id) is not None,
        "node: slot": await reader.execute(NODE, id=slot_id) is not None,
    }


async def watched(app: AppProcess, token: str | None, slot_id: str) -> Json:
    """The first message of a subscription to a slot."""
    async with open_websocket(app, token) as opened:
        await opened.subscribe("1", WATCH_AVAILABILITY, slots=[slot_id])
        return await opened.receive()


def is_told(message: Json) -> bool:
    """Whether a first message tells of the slot; else it says that there is none."""
    payload = message["payload"]
    errors = payload if message["type"] == "error" else payload.get("errors")
    if errors:
        assert errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
    return not errors


async def test_what_is_not_published_is_seen_by_organisers_only(
    clients: tuple[BookingClient, GraphQLTestClient, BookingClient], two_apps: Pair
) -> None:
    ada, visitor, organiser = clients
    campaign_id = await create_campaign(organiser, published=False)
    starts = f"{random.randrange(2100, 9000)}-05-07T09:00:00.000Z"
    ends = starts.replace("T09", "T10")
    slot_id = await organiser.add_slot(campaignId=campaign_id, startTime=starts, endTime=ends)
    published = [(False, None), (True, publish_campaign), (False, unpublish_campaign)]
    for is_published, act in published:
        if act is not None:
            await act(organiser, campaign_id)
        assert set((await seen(organiser, campaign_id, slot_id, starts)).values()) == {True}
        assert set((await seen(ada, campaign_id, slot_id, starts)).values()) == {is_published}
        assert set((await seen(visitor, campaign_id, slot_id, starts)).values()) == {is_published}
        for app, token in ((two_apps[0], ada.token), (two_apps[1], None)):
            assert is_told(await watched(app, token, slot_id)) == is_published
        assert is_told(await watched(two_apps[1], organiser.token, slot_id))


async def test_a_draft_in_a_published_campaign_stays_a_draft(
    clients: tuple[BookingClient, GraphQLTestClient, BookingClient],
) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser)
    slot_id = await organiser.add_slot(campaignId=campaign_id, draft=True)
    assert await ada.execute(SLOT, id=slot_id) is None
    assert await listed(ada, SLOTS, filter={"campaignId": campaign_id}) == set()
    assert (await book_with_refusal(ada, slot_id))["code"] == "SLOT_NOT_FOUND"


async def test_nothing_but_its_end_is_told_of_a_slot_that_is_hidden(
    clients: tuple[BookingClient, GraphQLTestClient, BookingClient],
) -> None:
    ada, _, organiser = clients
    closes = "2099-01-01T00:00:00.000Z"
    campaign_id = await create_campaign(organiser, published=False, closesAt=closes)
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    told = await book_with_refusal(ada, slot_id)
    expected = {"__typename": "Closed", "code": "CLOSED", "closesAt": closes, "slotId": slot_id}
    assert told == expected


async def test_a_booking_stays_its_owners_to_see_and_to_give_back_when_its_campaign_is_hidden(
    clients: tuple[BookingClient, GraphQLTestClient, BookingClient],
) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser)
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    await unpublish_campaign(organiser, campaign_id)
    (mine,) = (await ada.execute(MINE))["nodes"]
    assert mine == {"id": booking_id, "slot": {"id": slot_id, "campaign": None}}
    assert (await ada.fetch_booking(booking_id))["status"] == "CONFIRMED"
    assert (await ada.cancel_booking(booking_id))["__typename"] == "BookingCancelled"
    assert (await ada.fetch_booking(booking_id))["status"] == "CANCELLED"


async def test_what_somebody_had_in_a_campaign_that_is_hidden_now_stays_in_their_list(
    clients: tuple[BookingClient, GraphQLTestClient, BookingClient],
) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser)
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    await ada.cancel_booking(booking_id)
    assert (await ada.execute(ENDED))["nodes"] == [{"id": booking_id}]
    await unpublish_campaign(organiser, campaign_id)
    assert (await ada.execute(ENDED))["nodes"] == [{"id": booking_id}]
