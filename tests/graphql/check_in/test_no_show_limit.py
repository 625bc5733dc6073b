"""After too many no-shows in a campaign, a user books nothing in it for some days."""

from datetime import datetime, timedelta

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.attendance import UNDO_NO_SHOW, booked_soon, mark_no_show, missed
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import (
    BOOKING_METHODS,
    CREATE_CAMPAIGN,
    book_with_refusal,
    campaign_fields,
    create_campaign,
    join_waitlist,
    update_campaign,
)
from tests.support.clients.client import Json, hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
ELIGIBILITY = """query($id: ID!) { slot(id: $id) { myEligibility {
  mayBook refusal { code ... on TooManyNoShows { until } }
} } }"""


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


async def limited_campaign(organizer: BookingClient, count: int = 1) -> str:
    """Return a new campaign with a pause of 14 days after this many no-shows."""
    return await create_campaign(organizer, noShowLimit={"count": count, "days": 14})


async def later_slot(organizer: BookingClient, campaign_id: str, **fields: object) -> str:
    """Return a new slot of the campaign that has not started."""
    return await organizer.add_slot(campaignId=campaign_id, **fields)


async def test_the_no_show_that_reaches_the_limit_starts_the_pause_and_undoing_it_ends_it(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    campaign_id = await limited_campaign(organizer, count=2)
    await missed(organizer, ada, campaignId=campaign_id)
    slot_id = await later_slot(organizer, campaign_id, capacity=3)
    eligibility: Json = (await ada.execute(ELIGIBILITY, id=slot_id))["myEligibility"]
    assert eligibility["mayBook"] is True
    second = await missed(organizer, ada, campaignId=campaign_id)
    refused = await book_with_refusal(ada, slot_id)
    assert (refused["code"], refused["count"]) == ("TOO_MANY_NO_SHOWS", 2)
    marked_at = (await organizer.fetch_booking(second))["history"][-1]["at"]
    until = datetime.fromisoformat(marked_at) + timedelta(days=14)
    assert datetime.fromisoformat(refused["until"]) == until
    eligibility = (await ada.execute(ELIGIBILITY, id=slot_id))["myEligibility"]
    assert eligibility["refusal"] == {"code": "TOO_MANY_NO_SHOWS", "until": refused["until"]}
    assert (await book_with_refusal(ben, slot_id))["__typename"] == "Booked"
    await organizer.execute(UNDO_NO_SHOW, booking=second)
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"


@pytest.mark.parametrize("method", BOOKING_METHODS)
async def test_no_way_to_book_passes_the_limit(clients: Three, method: str) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    await missed(organizer, ada, campaignId=campaign_id)
    slot_id = await later_slot(organizer, campaign_id)
    refused = await BOOKING_METHODS[method](ada, organizer, slot_id)
    assert refused["code"] == "TOO_MANY_NO_SHOWS"


async def test_no_shows_of_other_campaigns_and_of_cancelled_bookings_do_not_count(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    await missed(organizer, ada, campaignId=await limited_campaign(organizer))
    cancelled_id = await missed(organizer, ada, campaignId=campaign_id)
    await organizer.cancel_booking(cancelled_id)
    slot_id = await later_slot(organizer, campaign_id)
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"


async def test_an_organizer_overrides_the_limit_and_the_booking_says_so(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    await missed(organizer, ada, campaignId=campaign_id)
    slot_id = await later_slot(organizer, campaign_id)
    booked = await book_with_refusal(organizer, slot_id, userId=await ada.fetch_user_id())
    assert booked["booking"]["overriddenLimits"] == ["NO_SHOWS"]


async def test_a_paused_user_cannot_wait_and_loses_a_place_in_the_waiting_list_to_the_next(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    campaign_id = await limited_campaign(organizer)
    slot_id = await later_slot(organizer, campaign_id)
    taken = await organizer.book_slot(slot_id)
    await ada.join(slot_id)
    await ben.join(slot_id)
    await missed(organizer, ada, campaignId=campaign_id)
    await organizer.cancel_booking(taken["booking"]["id"])
    assert (await ben.fetch_slot(slot_id))["myBooking"]["status"] == "CONFIRMED"
    assert (await ada.fetch_slot(slot_id))["myWaitlistEntry"] is None
    assert (await join_waitlist(ada, organizer, slot_id))["code"] == "TOO_MANY_NO_SHOWS"


async def test_setting_and_lifting_the_limit_applies_to_no_shows_that_are_marked(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    await missed(organizer, ada, campaignId=campaign_id)
    slot_id = await later_slot(organizer, campaign_id)
    limit = {"count": 1, "days": 3}
    assert (await update_campaign(organizer, campaign_id, noShowLimit=limit))[
        "noShowLimit"
    ] == limit
    assert (await book_with_refusal(ada, slot_id))["code"] == "TOO_MANY_NO_SHOWS"
    unchanged = await update_campaign(organizer, campaign_id, name="Renamed")
    assert unchanged["noShowLimit"] == limit
    lifted = await update_campaign(organizer, campaign_id, noShowLimit=None)
    assert lifted["noShowLimit"] is None
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        ({"count": 0, "days": 1}, ["count"]),
        ({"count": 1, "days": 367}, ["days"]),
        ({"count": 101, "days": 0}, ["count", "days"]),
    ],
)
async def test_a_limit_out_of_range_is_invalid_input(
    clients: Three, limit: Json, fields: list[str]
) -> None:
    _, _, organizer = clients
    refused = await organizer.execute(CREATE_CAMPAIGN, input=campaign_fields(noShowLimit=limit))
    assert [problem["field"] for problem in refused["fields"]] == fields


async def test_a_booking_that_was_made_before_the_pause_stays_and_can_be_missed_too(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    slot_id, booking_id = await booked_soon(organizer, ada, campaignId=campaign_id)
    await missed(organizer, ada, campaignId=campaign_id)
    assert (await ada.fetch_booking(booking_id))["status"] == "CONFIRMED"
    await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    assert (await mark_no_show(organizer, booking_id))["__typename"] == "NoShowMarked"
