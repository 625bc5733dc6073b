"""Ended bookings are listed for their owner, the latest first."""

from typing import Any

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, expire_holds
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Three
from tests.support.polling import poll_until

ENDED = """query($first: Int! = 20, $after: String) {
  myEndedBookings(first: $first, after: $after) {
    edges { cursor node { id } }
    nodes { id status endedAt movedTo user { id } slot { id title } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}"""


async def ended(user: BookingClient, **page: Any) -> list[Json]:
    """Return the bookings of a user that ended."""
    nodes: list[Json] = (await user.execute(ENDED, **page))["nodes"]
    return nodes


async def given_back(user: BookingClient, slot_id: str) -> str:
    """Return the id of a booking that its owner cancelled."""
    booking_id = (await user.book_slot(slot_id))["booking"]["id"]
    await user.cancel_booking(booking_id)
    return str(booking_id)


async def test_ended_bookings_are_listed_latest_first(two_apps: Pair, clients: Three) -> None:
    ada, _, organizer = clients
    slot_id, other_id, held_id = [await organizer.add_slot(capacity=2) for _ in range(3)]
    cancelled = await given_back(ada, slot_id)
    moved = (await ada.book_slot(slot_id))["booking"]["id"]
    now = (await ada.move(moved, other_id))["booking"]["id"]
    hold = (await ada.hold(held_id))["id"]
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], held_id)

    async def newest() -> Json:
        return {"nodes": await ended(ada)}

    seen = await poll_until(newest, lambda seen: len(seen["nodes"]) == 3, "the hold expires")
    listed = [(b["id"], b["status"], b["movedTo"], b["slot"]["id"]) for b in seen["nodes"]]
    assert listed == [
        (hold, "EXPIRED", None, held_id),
        (moved, "CANCELLED", now, slot_id),
        (cancelled, "CANCELLED", None, slot_id),
    ]
    times = [booking["endedAt"] for booking in seen["nodes"]]
    assert times == sorted(times, reverse=True)
    # Live bookings are in the other list.
    assert now not in [booking["id"] for booking in seen["nodes"]]


async def test_bookings_ended_by_others_are_listed_too(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id, adas = await organizer.add_slot(), await ada.fetch_user_id()
    await ben.create_team_with(ada)
    booking_id = (await ben.book_slot(slot_id, userId=adas))["booking"]["id"]
    await organizer.cancel_booking(booking_id)
    assert [(b["id"], b["user"]["id"]) for b in await ended(ada)] == [(booking_id, adas)]
    assert await ended(ben) == []
    assert await ended(organizer) == []


async def test_ended_bookings_of_others_are_not_listed(clients: Three, two_apps: Pair) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    adas, bens = await given_back(ada, slot_id), await given_back(ben, slot_id)
    assert [booking["id"] for booking in await ended(ada)] == [adas]
    assert [booking["id"] for booking in await ended(ben)] == [bens]
    assert await ended(organizer) == []
    nobody = GraphQLTestClient(ada.http, two_apps[0].url)
    assert await nobody.error_code(ENDED) == "UNAUTHENTICATED"
    # Not even with a cursor of theirs.
    cursor = (await ada.execute(ENDED))["pageInfo"]["endCursor"]
    others = await ended(ben, after=cursor)
    assert adas not in [booking["id"] for booking in others]
