"""Who sees a campaign, and what its rules mean for holds, organizers and cancelling."""

import random
from typing import Any

from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    CAMPAIGN_BY_ID,
    CAMPAIGN_LIST,
    CONFIRM_WITH_REFUSAL,
    book_with_refusal,
    create_campaign,
    publish_campaign,
    set_groups,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    hours_from_now,
    open_websocket,
)
from tests.support.clients.fixtures import Three

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
FIVE_A = [{"group": "class:5a", "limit": 1}]


async def all_ids(reader: GraphQLTestClient, query: str, **variables: Any) -> set[str]:
    """Return the ids on all pages of a list."""
    return {node["id"] for node in await reader.all_nodes(query, **variables)}


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
    clients: Three, anonymous: GraphQLTestClient, two_apps: Pair
) -> None:
    ada, _, organizer = clients
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


async def test_a_draft_in_a_published_campaign_stays_a_draft(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id, draft=True)
    assert await ada.execute(SLOT, id=slot_id) is None
    assert await all_ids(ada, SLOTS, filter={"campaignId": campaign_id}) == set()
    assert (await book_with_refusal(ada, slot_id))["code"] == "SLOT_NOT_FOUND"


async def test_users_see_and_cancel_bookings_of_an_unpublished_campaign(clients: Three) -> None:
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


async def test_ended_bookings_of_an_unpublished_campaign_stay_visible(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    await ada.cancel_booking(booking_id)
    assert (await ada.execute(MY_ENDED_BOOKINGS))["nodes"] == [{"id": booking_id}]
    await unpublish_campaign(organizer, campaign_id)
    assert (await ada.execute(MY_ENDED_BOOKINGS))["nodes"] == [{"id": booking_id}]


async def confirm_hold(client: BookingClient, hold: Json) -> Json:
    """Return the result of confirming a hold."""
    outcome: Json = await client.execute(CONFIRM_WITH_REFUSAL, booking=hold["booking"]["id"])
    return outcome


async def test_a_hold_is_not_confirmed_against_other_bookings_of_the_user(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    one, other = [await organizer.add_slot(campaignId=campaign_id) for _ in range(2)]
    booking_id = (await book_with_refusal(ada, one))["booking"]["id"]
    hold = await book_with_refusal(ada, other, hold=True)
    await update_campaign(organizer, campaign_id, forbidOverlap=True)
    outcome = await confirm_hold(ada, hold)
    assert (outcome["code"], outcome["otherBookingId"]) == ("TIME_CONFLICT", booking_id)
    await update_campaign(organizer, campaign_id, forbidOverlap=False, maxBookings=1)
    assert (await confirm_hold(ada, hold))["code"] == "LIMIT_REACHED"
    await ada.cancel_booking(booking_id)
    assert (await confirm_hold(ada, hold))["__typename"] == "BookingConfirmed"


async def test_an_organizer_overrides_every_limit_by_name(clients: Three) -> None:
    ada, ben, organizer = clients
    for client in (ada, ben):
        await set_groups(organizer, client, "class:5a")
    campaign_id = await create_campaign(organizer, opensAt=hours_from_now(-3))
    taken, slot_id = [
        await organizer.add_slot(campaignId=campaign_id, capacity=3) for _ in range(2)
    ]
    assert (await book_with_refusal(ben, slot_id))["__typename"] == "Booked"
    assert (await book_with_refusal(ada, taken))["__typename"] == "Booked"
    rules = {"eligibleGroups": [["class:6a"]], "maxBookings": 1, "forbidOverlap": True}
    times = {"closesAt": hours_from_now(-1), "allowPast": True}
    await update_campaign(organizer, campaign_id, groupLimits=FIVE_A, **rules, **times)
    outcome = await book_with_refusal(organizer, slot_id, userId=await ada.fetch_user_id())
    expected = ["CLOSED", "NOT_ELIGIBLE", "MAX_BOOKINGS", "TIME_CONFLICT", "GROUP_FULL"]
    assert outcome["booking"]["overriddenLimits"] == expected
    booking = await ada.fetch_booking(outcome["booking"]["id"])
    assert booking["history"][0]["overriddenLimits"] == booking["overriddenLimits"] == expected
    # Organizers who book for themselves have no privilege.
    assert (await book_with_refusal(organizer, slot_id))["code"] == "CLOSED"


async def test_a_repeated_request_has_the_same_result_under_all_rules(clients: Three) -> None:
    ada, _, organizer = clients
    await set_groups(organizer, ada, "class:5a")
    rules = {"maxBookings": 1, "forbidOverlap": True, "groupLimits": FIVE_A}
    campaign_id = await create_campaign(organizer, **rules, cancelUntil=hours_from_now(9))
    slot_id = await organizer.add_slot(campaignId=campaign_id, resource="a private room")
    first = await ada.book_slot(slot_id, idempotencyKey="one")
    await unpublish_campaign(organizer, campaign_id)
    assert first["__typename"] == "Booked"
    assert await ada.book_slot(slot_id, idempotencyKey="one") == first
    other = await organizer.add_slot(campaignId=campaign_id)
    assert (await ada.book_slot(other, idempotencyKey="one"))["__typename"] == "KeyReused"
