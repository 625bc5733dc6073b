"""Ended bookings are listed for their owner, the latest first."""

from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.polling import poll_until

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
ENDED = """query($first: Int! = 20, $after: String) {
  myEndedBookings(first: $first, after: $after) {
    edges { cursor node { id } }
    nodes { id status endedAt movedTo user { id } slot { id title } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}"""


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


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


async def test_the_ended_bookings_of_other_users_are_not_listed(
    clients: Three, two_apps: Pair
) -> None:
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


async def walk(user: BookingClient, first: int) -> list[str]:
    """Return the ids on all pages of a user's list."""
    walked: list[str] = []
    after, more = None, True
    while more:
        page = await user.execute(ENDED, first=first, after=after)
        edges, info = page["edges"], page["pageInfo"]
        assert len(edges) <= first
        assert [edge["node"]["id"] for edge in edges] == [node["id"] for node in page["nodes"]]
        assert info["startCursor"] == edges[0]["cursor"]
        assert info["hasPreviousPage"] is (after is not None)
        walked += [edge["node"]["id"] for edge in edges]
        after, more = info["endCursor"], info["hasNextPage"]
    return walked


async def test_pages_follow_each_other_without_gap_or_repeat(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_ids = [await organizer.add_slot(capacity=2) for _ in range(2)]
    made = []
    for number in range(5):
        made.append(await given_back(ada, slot_ids[number % 2]))
        await given_back(ben, slot_ids[number % 2])
    for first in (1, 2, 3, 5, 100):
        assert await walk(ada, first) == made[::-1]


async def test_a_booking_that_ends_meanwhile_shifts_no_page(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    made = [await given_back(ada, slot_id) for _ in range(4)]
    page = await ada.execute(ENDED, first=2)
    await given_back(ada, slot_id)
    rest = await ended(ada, after=page["pageInfo"]["endCursor"])
    assert [booking["id"] for booking in rest] == made[1::-1]


@pytest.mark.parametrize("first", [0, -1, 101])
async def test_a_page_has_1_to_100_items(clients: Three, first: int) -> None:
    assert await clients[0].error_code(ENDED, first=first) == "BAD_USER_INPUT"
