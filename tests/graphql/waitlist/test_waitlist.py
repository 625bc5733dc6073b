"""The waiting list over HTTP: first come, first served, without exceptions."""

import httpx

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import (
    JOIN_WAITLIST,
    BookingClient,
    create_booking_clients,
)
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Five
from tests.support.transport.simultaneous_requests import send_simultaneously

MEMBER_COUNT = 4


async def booked(user: BookingClient, slot_id: str) -> str:
    """Return the id of a user's new booking."""
    return str((await user.book_slot(slot_id))["booking"]["id"])


async def waitlist_position(user: BookingClient, slot_id: str) -> int | None:
    """Return the position on the waitlist that the user sees, or None."""
    entry: Json | None = (await user.fetch_slot(slot_id))["myWaitlistEntry"]
    return entry["position"] if entry else None


async def booking_of(user: BookingClient, slot_id: str) -> Json:
    """Return the booking a user has in a slot."""
    booking: Json | None = (await user.fetch_slot(slot_id))["myBooking"]
    assert booking is not None
    return booking


async def test_ten_waiting_callers_are_served_in_order_of_arrival(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (first, *line), organizer = create_booking_clients(http, 11, *two_apps)
    slot_id = await organizer.add_slot()
    booking_id = await booked(first, slot_id)
    joined = [await user.join(slot_id) for user in line]
    assert [outcome["position"] for outcome in joined] == list(range(1, 11))
    leaver, version = first, joined[-1]["slot"]["version"]
    for served, user in enumerate(line, start=1):
        slot = (await leaver.cancel_booking(booking_id))["slot"]
        assert (slot["remaining"], slot["version"]) == (0, version + served)  # the same write
        booking = await booking_of(user, slot_id)
        assert (booking["status"], booking["madeBy"]) == ("CONFIRMED", None)
        assert booking["waitedSince"] == joined[served - 1]["entry"]["since"]
        assert [(entry["action"], entry["by"]) for entry in booking["history"]] == [
            ("PROMOTED", None)
        ]
        places = [await waitlist_position(each, slot_id) for each in line]
        assert places == [None] * served + list(range(1, 11 - served))
        leaver, booking_id = user, booking["id"]


async def test_a_waitlist_entry_is_visible_only_to_its_user(clients: Five) -> None:
    ada, ben, cleo, _, organizer = clients
    slot_id = await organizer.add_slot()
    await ada.book_slot(slot_id)
    await ben.join(slot_id)
    for other in (ada, cleo, organizer):
        seen = await other.fetch_slot(slot_id)
        assert (seen["myWaitlistEntry"], seen["waitlistLength"]) == (None, 1)


async def test_of_50_who_join_at_once_30_wait_and_each_place_is_given_once(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    users, organizer = create_booking_clients(http, 50, *two_apps)
    slot_id = await organizer.add_slot(waitlistCapacity=30)
    await organizer.book_slot(slot_id)
    shots = [(user.url, user.token or "", JOIN_WAITLIST, {"slot": slot_id}) for user in users]
    outcomes = await send_simultaneously(shots)
    while again := [i for i, outcome in enumerate(outcomes) if outcome["__typename"] == "Locked"]:
        for i, outcome in zip(
            again, await send_simultaneously([shots[i] for i in again]), strict=True
        ):
            outcomes[i] = outcome
    joined = {a["position"]: i for i, a in enumerate(outcomes) if "position" in a}
    assert sorted(joined) == list(range(1, 31))
    assert sum(outcome["__typename"] == "WaitlistFull" for outcome in outcomes) == 20
    raised = await organizer.update_slot(slot_id, capacity=12)
    assert (raised["remaining"], raised["waitlistLength"]) == (0, 19)  # in one write
    served = [bool((await user.fetch_slot(slot_id))["myBooking"]) for user in users]
    assert {i for i, place in enumerate(served) if place} == {joined[n] for n in range(1, 12)}


async def test_added_places_go_to_the_waitlist_in_order_and_in_one_write(clients: Five) -> None:
    ada, ben, cleo, dan, organizer = clients
    slot_id = await organizer.add_slot()
    await ada.book_slot(slot_id)
    for user in (cleo, ben, dan):
        await user.join(slot_id)
    version = (await ada.fetch_slot(slot_id))["version"]
    raised = await organizer.update_slot(slot_id, capacity=3)
    assert (raised["version"], raised["remaining"], raised["waitlistLength"]) == (version + 1, 0, 1)
    assert (await booking_of(cleo, slot_id))["status"] == "CONFIRMED"
    assert (await booking_of(ben, slot_id))["status"] == "CONFIRMED"
    assert await waitlist_position(dan, slot_id) == 1
    assert (await organizer.update_slot(slot_id, capacity=9))["remaining"] == 5
    assert (await booking_of(dan, slot_id))["status"] == "CONFIRMED"
