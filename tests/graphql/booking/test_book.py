"""Booking and cancelling over HTTP, and which users see the result."""

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import CANCEL_BOOKING, SLOT_ROSTER, GraphQLTestClient, times_in
from tests.support.clients.fixtures import Three
from tests.support.stores.users import create_user_tokens

NOWHERE = "slot_" + "0" * 24
SEEN = "query($id: ID!) { slot(id: $id) { isBooked bookedBy { id email } myBooking { id } } }"
NODE = "query($id: ID!) { node(id: $id) { __typename id } }"
MINE = """query($first: Int! = 20, $after: String) {
  myBookings(first: $first, after: $after) {
    nodes { id slot { id } }
    pageInfo { hasNextPage endCursor }
  }
}"""


async def test_a_booking_takes_a_place_and_cancelling_gives_it_back(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = (await organizer.create_slot())["id"]
    booked = await ada.book(slot_id)
    assert booked["slot"] == {"id": slot_id, "remaining": 0, "version": 2}
    assert (await ada.book(slot_id))["booking"]["id"] == booked["booking"]["id"]
    assert (await ben.book(slot_id))["__typename"] == "SlotFull"
    cancelled = await ada.cancel(booked["booking"]["id"])
    assert (cancelled["booking"]["status"], cancelled["slot"]["remaining"]) == ("CANCELLED", 1)
    assert (await ben.book(slot_id))["__typename"] == "Booked"


async def test_only_organizers_see_and_cancel_others(app: AppProcess, clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = (await organizer.create_slot())["id"]
    booking_id = (await ada.book(slot_id))["booking"]["id"]
    assert (await ben.cancel(booking_id))["__typename"] == "BookingNotFound"
    assert await ben.execute(NODE, id=booking_id) is None
    assert (await organizer.execute(NODE, id=booking_id))["id"] == booking_id
    nobody = GraphQLTestClient(ada.http, app.url)
    assert await nobody.error_code(CANCEL_BOOKING, booking=booking_id) == "UNAUTHENTICATED"
    assert (await organizer.cancel(booking_id))["__typename"] == "BookingCancelled"
    assert (await ben.cancel(booking_id))["__typename"] == "BookingNotFound"


async def test_the_booker_of_a_one_place_slot_is_visible_to_the_booker_and_organizers(
    app: AppProcess, clients: Three
) -> None:
    ada, ben, organizer = clients
    slot_id = (await organizer.create_slot())["id"]
    booked = await ada.book(slot_id)
    adas = booked["booking"]["user"]["id"]
    own = await ada.execute(SEEN, id=slot_id)
    assert (own["bookedBy"]["id"], own["myBooking"]["id"]) == (adas, booked["booking"]["id"])
    assert (await organizer.execute(SEEN, id=slot_id))["bookedBy"]["id"] == adas
    for other in (ben, GraphQLTestClient(ada.http, app.url)):
        seen = await other.execute(SEEN, id=slot_id)
        assert seen == {"isBooked": True, "bookedBy": None, "myBooking": None}


async def test_the_roster_lists_bookings_in_the_order_they_were_made(
    app: AppProcess, clients: Three
) -> None:
    *_, organizer = clients
    slot_id = (await organizer.create_slot(capacity=5))["id"]
    crowd = create_user_tokens(app.environment, 5)
    made = [
        (await GraphQLTestClient(organizer.http, app.url, token).book(slot_id))["booking"]["id"]
        for token in crowd.members
    ]
    roster = await organizer.execute(SLOT_ROSTER, slot=slot_id)
    assert [booking["id"] for booking in roster["nodes"]] == made
    page = """query($slot: ID!, $after: String) {
      slotRoster(slotId: $slot, first: 2, after: $after) {
        nodes { id }
        pageInfo { hasNextPage endCursor }
      }
    }"""
    walked = await organizer.all_nodes(page, slot=slot_id)
    assert [booking["id"] for booking in walked] == made
    assert await organizer.execute(SLOT_ROSTER, slot=NOWHERE) is None


async def test_my_bookings_lists_the_callers_live_bookings_by_slot_start(clients: Three) -> None:
    ada, ben, organizer = clients
    slots = [(await organizer.create_slot(**times_in(h), capacity=2))["id"] for h in (30, 10, 20)]
    bookings = [(await ada.book(slot_id))["booking"]["id"] for slot_id in slots]
    await ben.book(slots[0])
    first = await ada.execute(MINE, first=2)
    rest = await ada.execute(MINE, first=2, after=first["pageInfo"]["endCursor"])
    listed = [booking["slot"]["id"] for booking in first["nodes"] + rest["nodes"]]
    assert listed == [slots[1], slots[2], slots[0]]
    assert (first["pageInfo"]["hasNextPage"], rest["pageInfo"]["hasNextPage"]) == (True, False)
    await ada.cancel(bookings[1])
    assert len((await ada.execute(MINE))["nodes"]) == 2


@pytest.mark.parametrize(
    "slot_id", [NOWHERE, "", "x", "slot_" + "g" * 24, "user_" + "0" * 24, "slot_١٢٣", "$where"]
)
async def test_an_unknown_slot_id_is_slot_not_found(clients: Three, slot_id: str) -> None:
    ada, _, organizer = clients
    assert (await ada.book(slot_id))["__typename"] == "SlotNotFound"
    booking_id = (await ada.book(await organizer.add_slot()))["booking"]["id"]
    for call in (ada.join(slot_id), ada.leave(slot_id), ada.move(booking_id, slot_id)):
        outcome = await call
        assert outcome["code"] == "SLOT_NOT_FOUND"
    assert await ada.execute(NODE, id=slot_id) is None


async def test_things_are_fetched_by_their_ids_in_their_order(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = (await organizer.create_slot())["id"]
    booked = await ada.book(slot_id)
    adas, own = booked["booking"]["user"]["id"], booked["booking"]["id"]
    nodes = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    ids = [own, slot_id, NOWHERE, adas, "nonsense", slot_id, ""]
    found = await ada.execute(nodes, ids=ids)
    there = [own, slot_id, None, adas, None, slot_id, None]
    assert [node and node["id"] for node in found] == there
    assert await ada.execute(nodes, ids=[]) == []
    assert len(await ada.execute(nodes, ids=[slot_id] * 100)) == 100
    assert (await ben.execute(nodes, ids=[adas])) == [None]
    assert await ada.error_code(nodes, ids=["x"] * 101) == "BAD_USER_INPUT"
