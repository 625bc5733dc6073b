"""Each rule of a campaign, by every way in which somebody asks for a place."""

from collections.abc import Sequence
from dataclasses import replace

import httpx
import pytest

from slotlock.domain.booking import refusals
from slotlock.graphql.booking.limit_refusals import Closed
from slotlock.graphql.core.result_view import ResultView
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import (
    BOOK_SEVERAL_WITH_REFUSALS,
    BOOKING_AND_WAITLIST_METHODS,
    BOOKING_METHODS,
    book_with_refusal,
    create_campaign,
    move_from_elsewhere,
    set_groups,
    unpublish_campaign,
)
from tests.support.domain.campaign_builders import CLOSES_AT, build_campaign_slot, build_terms

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
OPENS, CLOSES = "2090-01-01T12:00:00.000Z", "2091-01-01T12:00:00.000Z"
NINE, TEN, ELEVEN = (f"2040-05-07T{hour}:00:00.000Z" for hour in ("09", "10", "11"))
FIVE_A = [{"group": "class:5a", "limit": 1}]
GIVEN = {"Booked", "AllBooked", "BookingMoved", "WaitlistJoined"}


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organiser = await create_booking_clients(http, 2, *two_apps)
    return ada, ben, organiser


@pytest.mark.parametrize("way", BOOKING_AND_WAITLIST_METHODS)
async def test_before_the_opening_everybody_is_told_when_it_is(clients: Three, way: str) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, opensAt=OPENS, closesAt=CLOSES)
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    told = await BOOKING_AND_WAITLIST_METHODS[way](ada, organiser, slot_id)
    named = {"opensAt": OPENS, "slot": {"id": slot_id}}
    assert told == {"__typename": "NotYetOpen", "code": "NOT_YET_OPEN", **named}


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("way", BOOKING_AND_WAITLIST_METHODS)
async def test_what_is_closed_gives_no_places(clients: Three, way: str, hidden: bool) -> None:
    ada, _, organiser = clients
    closes = CLOSES if hidden else "2026-01-01T00:00:00.000Z"
    campaign_id = await create_campaign(organiser, opensAt="2020-01-01T00:00:00Z", closesAt=closes)
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    if hidden:
        await unpublish_campaign(organiser, campaign_id)
    told = await BOOKING_AND_WAITLIST_METHODS[way](ada, organiser, slot_id)
    named = {"closesAt": closes, "slotId": slot_id}
    assert told == {"__typename": "Closed", "code": "CLOSED", **named}


@pytest.mark.parametrize("groups", [(), ("grade:5",), ("class:5a",), ("grade:6", "class:5a")])
@pytest.mark.parametrize("way", BOOKING_AND_WAITLIST_METHODS)
async def test_who_lacks_a_group_of_a_set_is_not_eligible(
    clients: Three, way: str, groups: Sequence[str]
) -> None:
    ada, _, organiser = clients
    await set_groups(organiser, ada, *groups)
    sets = [["grade:5"], ["class:5a", "class:5b"]]
    slot_id = await organiser.add_slot(
        campaignId=await create_campaign(organiser, eligibleGroups=sets)
    )
    told = await BOOKING_AND_WAITLIST_METHODS[way](ada, organiser, slot_id)
    expected = {"__typename": "NotEligible", "code": "NOT_ELIGIBLE", "slot": {"id": slot_id}}
    assert told == expected
    await set_groups(organiser, ada, "grade:5", "class:5b")
    told = await BOOKING_METHODS["booking"](ada, organiser, slot_id)
    assert told["__typename"] == "Booked"


async def test_a_group_is_the_same_however_its_letters_are_composed(clients: Three) -> None:
    ada, ben, organiser = clients
    composed, decomposed = "Caf\u00e9", "Cafe\u0301"
    sets, limits = [[decomposed]], [{"group": decomposed, "limit": 1}]
    campaign_id = await create_campaign(organiser, eligibleGroups=sets, groupLimits=limits)
    slot_id = await organiser.add_slot(campaignId=campaign_id, capacity=2)
    for person in (ada, ben):
        await set_groups(organiser, person, composed)
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"
    assert (await book_with_refusal(ben, slot_id))["__typename"] == "GroupFull"


@pytest.mark.parametrize("way", BOOKING_AND_WAITLIST_METHODS)
async def test_who_has_as_many_bookings_as_may_be_gets_no_more(clients: Three, way: str) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, maxBookings=2)
    slot_ids = [await organiser.add_slot(campaignId=campaign_id) for _ in range(3)]
    assert (await book_with_refusal(ada, slot_ids[0]))["__typename"] == "Booked"
    assert (await book_with_refusal(ada, slot_ids[1], hold=True))["__typename"] == "Booked"
    told = await BOOKING_AND_WAITLIST_METHODS[way](ada, organiser, slot_ids[2])
    named = {"limit": 2, "otherBookingId": None, "slot": {"id": slot_ids[2]}}
    assert told == {"__typename": "LimitReached", "code": "LIMIT_REACHED", **named}


@pytest.mark.parametrize("way", BOOKING_AND_WAITLIST_METHODS)
async def test_what_overlaps_another_booking_is_refused_with_which_one(
    clients: Three, way: str
) -> None:
    ada, _, organiser = clients
    here, there = [await create_campaign(organiser, forbidOverlap=True) for _ in range(2)]
    early = await organiser.add_slot(campaignId=here, startTime=NINE, endTime=ELEVEN)
    late = await organiser.add_slot(campaignId=there, startTime=TEN, endTime="2040-05-07T12:00:00Z")
    booking_id = (await book_with_refusal(ada, early))["booking"]["id"]
    told = await BOOKING_AND_WAITLIST_METHODS[way](ada, organiser, late)
    assert told == {
        "__typename": "TimeConflict",
        "code": "TIME_CONFLICT",
        "otherBookingId": booking_id,
        "meeting": {"startTime": TEN, "endTime": "2040-05-07T12:00:00.000Z"},
        "otherMeeting": {"startTime": NINE, "endTime": ELEVEN},
        "slot": {"id": late},
    }


@pytest.mark.parametrize("way", BOOKING_METHODS)
async def test_what_begins_when_another_booking_ends_is_given(clients: Three, way: str) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, forbidOverlap=True)
    times = [(NINE, TEN), (TEN, ELEVEN)]
    early, late = [
        await organiser.add_slot(campaignId=campaign_id, startTime=start, endTime=end)
        for start, end in times
    ]
    assert (await book_with_refusal(ada, early))["__typename"] == "Booked"
    assert (await BOOKING_METHODS[way](ada, organiser, late))["__typename"] in GIVEN


@pytest.mark.parametrize("way", BOOKING_METHODS)
async def test_when_a_group_is_full_its_people_get_no_place_though_some_are_left(
    clients: Three, way: str
) -> None:
    ada, ben, organiser = clients
    for person in (ada, ben):
        await set_groups(organiser, person, "class:5a", "grade:5")
    campaign_id = await create_campaign(organiser, groupLimits=FIVE_A)
    slot_id = await organiser.add_slot(campaignId=campaign_id, capacity=5)
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"
    told = await BOOKING_METHODS[way](ben, organiser, slot_id)
    named = {"group": "class:5a", "limit": 1, "slot": {"id": slot_id}}
    assert told == {"__typename": "GroupFull", "code": "GROUP_FULL", **named}
    assert (await BOOKING_AND_WAITLIST_METHODS["joining the waitlist"](ben, organiser, slot_id))[
        "position"
    ] == 1


async def test_a_slots_own_limit_holds_without_any_campaign(clients: Three) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot(capacity=5, groupLimits=[{"group": "class:*", "limit": 1}])
    await set_groups(organiser, ada, "class:5a")
    await set_groups(organiser, ben, "class:5a")
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"
    assert (await book_with_refusal(ben, slot_id))["group"] == "class:5a"
    await set_groups(organiser, ben, "class:5b")
    assert (await book_with_refusal(ben, slot_id))["__typename"] == "Booked"


async def test_two_claims_that_overlap_refuse_each_other_and_name_no_booking(
    clients: Three,
) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, forbidOverlap=True)
    slot_ids = [await organiser.add_slot(campaignId=campaign_id) for _ in range(2)]
    claims = [{"slotId": slot_id} for slot_id in slot_ids]
    (told,) = (await ada.execute(BOOK_SEVERAL_WITH_REFUSALS, input={"claims": claims}))["refusals"]
    assert (told["claim"], told["refusal"]["code"]) == (1, "TIME_CONFLICT")
    assert told["refusal"]["otherBookingId"] is None
    for slot_id in slot_ids:
        assert (await ada.fetch_slot(slot_id))["myBooking"] is None


async def test_who_moves_from_one_slot_to_another_that_overlaps_it_does_not_meet_themselves(
    clients: Three,
) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, forbidOverlap=True, maxBookings=1)
    one, other = [await organiser.add_slot(campaignId=campaign_id) for _ in range(2)]
    booking_id = (await book_with_refusal(ada, one))["booking"]["id"]
    assert (await ada.move(booking_id, other))["__typename"] == "BookingMoved"
    assert (await ada.fetch_slot(one))["myBooking"] is None


async def test_a_team_mate_is_refused_without_being_told_of_the_others_bookings(
    clients: Three,
) -> None:
    ada, ben, organiser = clients
    await ada.create_team_with(ben)
    campaign_id = await create_campaign(organiser, forbidOverlap=True)
    bens, wanted = [await organiser.add_slot(campaignId=campaign_id) for _ in range(2)]
    assert (await book_with_refusal(ben, bens))["__typename"] == "Booked"
    told = await book_with_refusal(ada, wanted, userId=await ben.fetch_user_id())
    assert (told["code"], told["otherBookingId"]) == ("TIME_CONFLICT", None)
    theirs = await book_with_refusal(organiser, wanted, userId=await ben.fetch_user_id())
    assert theirs["booking"]["overriddenLimits"] == ["TIME_CONFLICT"]


async def test_moves_are_asked_about_the_slot_they_go_to(clients: Three) -> None:
    ada, _, organiser = clients
    full = await create_campaign(organiser, maxBookings=1)
    one, other = [await organiser.add_slot(campaignId=full) for _ in range(2)]
    assert (await book_with_refusal(ada, one))["__typename"] == "Booked"
    assert (await move_from_elsewhere(ada, organiser, other))["code"] == "LIMIT_REACHED"
    free = await create_campaign(organiser)
    assert (await move_from_elsewhere(ada, organiser, await organiser.add_slot(campaignId=free)))[
        "__typename"
    ] == "BookingMoved"


def test_a_kept_refusal_says_the_same_once_its_campaign_is_published_again() -> None:
    shut = build_campaign_slot(published=False)
    decided = refusals.Closed(CLOSES_AT, shut, published=False)
    later = replace(decided, slot=replace(shut, terms=build_terms()))
    view = ResultView(None)
    assert Closed.from_domain(later, view) == Closed.from_domain(decided, view)
