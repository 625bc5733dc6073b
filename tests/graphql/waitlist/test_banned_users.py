"""A banned user cannot be booked and is never promoted."""

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.fixtures import Three

BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
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
