"""Moving a booking to another slot: never two places, never none."""

import asyncio
from collections import Counter

import httpx

from tests.support.apps.deployment import assert_slot_consistent, slot_document
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.fixtures import Three


async def booked(user: BookingClient, slot_id: str) -> str:
    """Return the id of a user's new booking."""
    return str((await user.book_slot(slot_id))["booking"]["id"])


async def test_a_move_frees_one_place_and_takes_another(clients: Three) -> None:
    ada, ben, organizer = clients
    old_id, new_id = await organizer.add_slot(capacity=3), await organizer.add_slot(capacity=5)
    booking_id = await booked(ada, old_id)
    moved = await ada.move(booking_id, new_id)
    assert moved["__typename"] == "BookingMoved"
    new, old = moved["booking"], moved["oldBooking"]
    assert (new["slot"]["id"], new["status"], new["movedFrom"]) == (new_id, "CONFIRMED", booking_id)
    assert (old["id"], old["status"], old["movedTo"]) == (booking_id, "CANCELLED", new["id"])
    assert new["id"] != booking_id
    assert [entry["action"] for entry in new["history"]] == ["MOVED"]
    assert [entry["action"] for entry in old["history"]] == ["BOOKED", "MOVED"]
    assert (moved["slot"]["id"], moved["slot"]["remaining"]) == (new_id, 4)
    assert (
        (await ben.fetch_slot(old_id))["remaining"],
        (await ben.fetch_slot(new_id))["remaining"],
    ) == (3, 4)
    assert (await ada.fetch_slot(old_id))["myBooking"] is None
    assert await ada.fetch_booking(new["id"]) == (await ada.fetch_slot(new_id))["myBooking"] == new
    assert await ada.fetch_booking(booking_id) == old
    assert await organizer.fetch_slot_history(old_id) == [old]
    # A page of before the move gives nothing back, and does not say so.
    assert (await ada.cancel_booking(booking_id))["code"] == "BOOKING_NOT_FOUND"
    assert await ada.fetch_booking(new["id"]) == new


async def test_of_ten_moves_of_one_booking_at_once_one_happens(clients: Three) -> None:
    ada, _, organizer = clients
    there = BookingClient(ada.http, organizer.url, ada.token)
    slot_id = await organizer.add_slot()
    targets = [await organizer.add_slot() for _ in range(10)]
    booking_id = await booked(ada, slot_id)
    outcomes = await asyncio.gather(
        *((ada, there)[i % 2].move(booking_id, to, waitMs=20_000) for i, to in enumerate(targets))
    )
    counts = Counter(outcome["__typename"] for outcome in outcomes)
    assert counts == {"BookingMoved": 1, "BookingNotFound": 9}
    left = [(await ada.fetch_slot(to))["remaining"] for to in (slot_id, *targets)]
    assert sum(left) == len(left) - 1


async def test_forty_users_who_swap_two_slots_at_once_all_have_one_place(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    members, organizer = create_booking_clients(http, 40, *two_apps)
    here, there = await organizer.add_slot(capacity=25), await organizer.add_slot(capacity=25)
    slot_ids = [here if i < 20 else there for i in range(40)]
    claims = [
        {"slotId": s, "userId": await p.fetch_user_id()}
        for p, s in zip(members, slot_ids, strict=True)
    ]
    assert (await organizer.book_all(*claims))["__typename"] == "AllBooked"

    async def cross(user: BookingClient, slot_id: str) -> str:
        booking = (await user.fetch_slot(slot_id))["myBooking"]
        to = there if slot_id == here else here
        return str((await user.move(booking["id"], to, waitMs=20_000))["__typename"])

    crossing = (cross(user, slot_id) for user, slot_id in zip(members, slot_ids, strict=True))
    outcomes = Counter(await asyncio.gather(*crossing))
    assert outcomes.keys() <= {"BookingMoved", "SlotFull"}
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    documents = [slot_document(url, slot_id) for slot_id in (here, there)]
    users = [booking["user"] for document in documents for booking in document["bookings"]]
    assert len(users) == len(set(users)) == 40
    for document in documents:
        assert_slot_consistent(document, len(document["bookings"]))
    ended = [await organizer.fetch_slot_history(slot_id) for slot_id in (here, there)]
    assert sum(map(len, ended)) == outcomes["BookingMoved"]
