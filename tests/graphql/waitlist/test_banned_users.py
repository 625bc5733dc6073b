"""A banned user gets no further place, and is never promoted."""

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import hours_from_now
from tests.support.clients.fixtures import Three

BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
CHECK_IN = "mutation($input: CheckInInput!) { checkIn(input: $input) { __typename } }"
UNBAN = "mutation($user: ID!) { unbanUser(userId: $user) { __typename } }"


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada and Ben, who are a team, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    await ada.create_team_with(ben)
    return ada, ben, organizer


async def test_nobody_can_book_for_a_banned_user_until_the_ban_is_lifted(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id, bens = await organizer.add_slot(), await ben.fetch_user_id()
    await organizer.execute(BAN, user=bens)
    for user in (ada, organizer):
        assert (await user.book_slot(slot_id, userId=bens))["code"] == "USER_BANNED"
        refused = await user.book_all({"slotId": slot_id, "userId": bens})
        assert refused["refusals"][0]["refusal"]["code"] == "USER_BANNED"
    await organizer.execute(UNBAN, user=bens)
    assert (await ada.book_slot(slot_id, userId=bens))["__typename"] == "Booked"


async def test_nobody_gets_a_further_place_from_the_places_of_a_banned_user(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    bens, soon = await ben.fetch_user_id(), {"startTime": hours_from_now(1)}
    slots = [await organizer.add_slot(**soon, endTime=hours_from_now(2)) for _ in range(3)]
    held = (await ada.hold(slots[0], userId=bens))["id"]
    booked = (await ada.book_slot(slots[1], userId=bens))["booking"]["id"]
    await organizer.execute(BAN, user=bens)
    for user in (ada, organizer):
        for refused in (
            user.extend(held),
            user.confirm(held),
            user.move(held, slots[2]),
            user.move(booked, slots[2]),
        ):
            assert (await refused)["code"] == "USER_BANNED"
    checked_in = await organizer.execute(CHECK_IN, input={"bookingId": booked})
    assert checked_in["__typename"] == "CheckedIn"
    assert (await ada.cancel_booking(held))["__typename"] == "BookingCancelled"
    assert (await organizer.fetch_slot(slots[2]))["remaining"] == 1


async def test_a_banned_user_leaves_every_waitlist_without_harm_to_others(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    taken = (await organizer.book_slot(slot_id))["booking"]
    await ben.join(slot_id)
    await ada.join(slot_id)
    await organizer.execute(BAN, user=await ben.fetch_user_id())
    assert (await ada.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1
    await organizer.cancel_booking(taken["id"])
    assert (await ada.fetch_slot(slot_id))["myBooking"]["status"] == "CONFIRMED"


async def test_bookings_of_a_banned_user_stay(clients: Three) -> None:
    _, ben, organizer = clients
    slot_id = await organizer.add_slot()
    booking = (await ben.book_slot(slot_id))["booking"]
    await organizer.execute(BAN, user=await ben.fetch_user_id())
    assert (await organizer.fetch_booking(booking["id"]))["status"] == "CONFIRMED"
