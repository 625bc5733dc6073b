"""Waitlists in campaigns: a freed place goes to the first eligible user."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import (
    book_with_refusal,
    create_campaign,
    publish_campaign,
    set_groups,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import Json
from tests.support.clients.user_files import import_users
from tests.support.polling import poll_until

Class = tuple[list[BookingClient], BookingClient]
ONE_OF_A_CLASS = [{"group": "class:*", "limit": 1}]
NINE, TEN, ELEVEN = (f"2040-05-07T{hour}:00:00.000Z" for hour in ("09", "10", "11"))


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Class:
    """Return five users at alternating processes and an organizer.

    Users 0 and 1 are in group 5a, and user 2 is in 5b.
    """
    users, organizer = create_booking_clients(http, 5, *two_apps)
    classes = ("class:5a", "class:5a", "class:5b", "class:5c", "class:5d")
    for user, group in zip(users, classes, strict=True):
        await set_groups(organizer, user, group)
    return users, organizer


async def full(
    organizer: BookingClient, ada: BookingClient, campaign_id: str, **fields: Any
) -> tuple[str, str]:
    """Create a slot with one place by default, book it for Ada, and return both ids."""
    slot_id = await organizer.add_slot(campaignId=campaign_id, **fields)
    return slot_id, (await book_with_refusal(ada, slot_id))["booking"]["id"]


async def place(user: BookingClient, slot_id: str) -> Json | None:
    """Return the booking that a user has in a slot."""
    booking: Json | None = (await user.fetch_slot(slot_id))["myBooking"]
    return booking


async def wait_for_promotion(user: BookingClient, slot_id: str) -> Json:
    """Wait for a promotion from the waitlist, and return the user's booking."""
    seen = await poll_until(
        lambda: user.fetch_slot(slot_id), lambda slot: slot["myBooking"], "a promotion"
    )
    booking: Json = seen["myBooking"]
    return booking


@pytest.mark.parametrize("how", ["by hand", "by a file"])
async def test_a_waiting_user_who_changes_class_is_promoted_by_the_new_class(
    clients: Class, how: str
) -> None:
    (ada, ben, *_), organizer = clients
    campaign_id = await create_campaign(organizer, groupLimits=ONE_OF_A_CLASS)
    slot_id, _ = await full(organizer, ada, campaign_id, capacity=2)
    assert (await ben.join(slot_id))["position"] == 1
    if how == "by hand":
        await set_groups(organizer, ben, "class:5e")
    else:
        email = (await ben.execute("{ me { email } }"))["email"]
        response = await import_users(organizer, f"email,groups\n{email},class:5e\n".encode())
        assert response["updated"] == 1
    assert (await wait_for_promotion(ben, slot_id))["status"] == "CONFIRMED"


async def test_a_waiting_user_who_joins_a_full_class_is_skipped(clients: Class) -> None:
    (ada, ben, cleo, dan, _), organizer = clients
    campaign_id = await create_campaign(organizer, groupLimits=ONE_OF_A_CLASS)
    slot_id, _ = await full(organizer, ada, campaign_id, capacity=2)
    dans = (await book_with_refusal(dan, slot_id))["booking"]["id"]
    await set_groups(organizer, ben, "class:5f")
    for user in (ben, cleo):
        await user.join(slot_id)
    await set_groups(organizer, ben, "class:5a")
    await dan.cancel_booking(dans)
    assert (await place(cleo, slot_id) or {})["status"] == "CONFIRMED"
    assert await place(ben, slot_id) is None


@pytest.mark.parametrize("rule", ["most", "overlap", "not for them"])
async def test_a_waiting_user_who_lost_eligibility_is_removed_for_the_next(
    clients: Class, rule: str
) -> None:
    (ada, ben, cleo, _, _), organizer = clients
    rules: Json = {"most": {"maxBookings": 1}, "overlap": {"forbidOverlap": True}}
    campaign_id = await create_campaign(organizer, **rules.get(rule, {}))
    slot_id, adas = await full(organizer, ada, campaign_id)
    for user in (ben, cleo):
        await user.join(slot_id)
    if rule == "not for them":
        await update_campaign(organizer, campaign_id, eligibleGroups=[["class:5a", "class:5b"]])
        await set_groups(organizer, ben, "class:7a")
    else:
        other = await organizer.add_slot(campaignId=campaign_id)
        assert (await book_with_refusal(ben, other))["__typename"] == "Booked"
    await ada.cancel_booking(adas)
    assert (await place(cleo, slot_id) or {})["status"] == "CONFIRMED"
    bens = await ben.fetch_slot(slot_id)
    assert (bens["myBooking"], bens["myWaitlistEntry"]) == (None, None)


async def test_a_campaign_that_is_published_again_promotes_its_waiting_users(
    clients: Class,
) -> None:
    (ada, ben, cleo, _, _), organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id, adas = await full(organizer, ada, campaign_id)
    for user in (ben, cleo):
        await user.join(slot_id)
    await unpublish_campaign(organizer, campaign_id)
    assert (await ada.cancel_booking(adas))["slot"]["remaining"] == 1
    assert (await organizer.fetch_slot(slot_id))["waitlistLength"] == 2
    await publish_campaign(organizer, campaign_id)
    assert (await wait_for_promotion(ben, slot_id))["waitedSince"]
    assert (await cleo.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1


async def test_waitlist_entries_are_promoted_when_their_campaign_reopens(clients: Class) -> None:
    (ada, ben, cleo, dan, _), organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id, adas = await full(organizer, ada, campaign_id)
    for user in (ben, cleo, dan):
        await user.join(slot_id)
    soon = datetime.now(UTC) + timedelta(seconds=10)
    opens = (await update_campaign(organizer, campaign_id, opensAt=soon.isoformat()))["opensAt"]
    # Both are written between the change and the opening, and neither may forget it.
    assert (await ada.cancel_booking(adas))["slot"]["remaining"] == 1
    assert (await dan.leave(slot_id))["__typename"] == "WaitlistLeft"
    booking = await wait_for_promotion(ben, slot_id)
    assert booking["createdAt"] >= opens
    assert (await cleo.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1


async def test_limits_added_with_more_places_apply_to_waiting_users(clients: Class) -> None:
    (ada, ben, cleo, _, _), organizer = clients
    slot_id, _ = await full(organizer, ada, await create_campaign(organizer))
    for user in (ben, cleo):
        await user.join(slot_id)
    response = await organizer.update_slot(slot_id, capacity=3, groupLimits=ONE_OF_A_CLASS)
    assert response["__typename"] == "Slot"
    assert (await wait_for_promotion(cleo, slot_id))["status"] == "CONFIRMED"
    assert await place(ben, slot_id) is None
