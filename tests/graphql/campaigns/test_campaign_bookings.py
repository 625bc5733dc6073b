"""Bookings in a campaign: confirming holds, overriding limits, cancelling and retrying."""

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import (
    CONFIRM_WITH_REFUSAL,
    book_with_refusal,
    create_campaign,
    set_groups,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import Json, hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
OPENS, CLOSES = "2090-01-01T12:00:00.000Z", "2091-01-01T12:00:00.000Z"
FIVE_A = [{"group": "class:5a", "limit": 1}]


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada on one process, Ben on the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


async def confirm_hold(client: BookingClient, hold: Json) -> Json:
    """Return the result of confirming a hold."""
    outcome: Json = await client.execute(CONFIRM_WITH_REFUSAL, booking=hold["booking"]["id"])
    return outcome


@pytest.mark.parametrize("change", ["closed", "unpublished", "other groups", "group full"])
async def test_a_hold_can_be_confirmed_after_any_change_of_the_campaign(
    clients: Three, change: str
) -> None:
    ada, _, organizer = clients
    await set_groups(organizer, ada, "class:5a")
    campaign_id = await create_campaign(organizer, opensAt=hours_from_now(-3))
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    hold = await book_with_refusal(ada, slot_id, hold=True)
    match change:
        case "closed":
            await update_campaign(
                organizer, campaign_id, closesAt=hours_from_now(-1), allowPast=True
            )
        case "unpublished":
            await unpublish_campaign(organizer, campaign_id)
        case "other groups":
            await update_campaign(organizer, campaign_id, eligibleGroups=[["class:6a"]])
        case _:
            await update_campaign(organizer, campaign_id, groupLimits=FIVE_A)
    assert (await confirm_hold(ada, hold))["booking"] == {
        "status": "CONFIRMED",
        "overriddenLimits": [],
    }


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


async def test_an_organizer_overrides_every_limit_and_the_booking_names_them(
    clients: Three,
) -> None:
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


@pytest.mark.parametrize("method", ["book", "move"])
async def test_an_organizer_can_book_for_a_user_before_the_campaign_opens(
    clients: Three, method: str
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer, opensAt=OPENS, closesAt=CLOSES)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    if method == "book":
        outcome = await book_with_refusal(organizer, slot_id, userId=await ada.fetch_user_id())
    else:
        booking_id = (await ada.book_slot(await organizer.add_slot()))["booking"]["id"]
        outcome = await organizer.move(booking_id, slot_id)
    assert outcome["booking"]["overriddenLimits"] == ["NOT_YET_OPEN"]
    assert (await ada.fetch_slot(slot_id))["myBooking"]["id"] == outcome["booking"]["id"]


async def test_members_can_cancel_until_the_time_that_the_campaign_allows(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer, cancelUntil=hours_from_now(2))
    slot_id, free = await organizer.add_slot(campaignId=campaign_id), await organizer.add_slot()
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    until = (await update_campaign(organizer, campaign_id, cancelUntil=hours_from_now(-1)))[
        "cancelUntil"
    ]
    outcome = await ada.cancel_booking(booking_id)
    assert (outcome["__typename"], outcome["cutoff"]) == ("CutoffPassed", until)
    assert (await ada.move(booking_id, free))["__typename"] == "CutoffPassed"
    outcome = await organizer.cancel_booking(booking_id)
    assert outcome["booking"]["overriddenLimits"] == ["CANCEL_CUTOFF"]


async def test_a_hold_can_be_cancelled_after_the_time_that_the_campaign_allows(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer, cancelUntil=hours_from_now(-1))
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    hold_id = (await book_with_refusal(ada, slot_id, hold=True))["booking"]["id"]
    assert (await ada.cancel_booking(hold_id))["__typename"] == "BookingCancelled"


async def test_a_repeated_request_has_the_same_result_in_a_campaign_with_all_rules(
    clients: Three,
) -> None:
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
