"""What becomes of places in campaigns: confirmed, given by organisers, given back, asked again."""

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
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organiser = await create_booking_clients(http, 2, *two_apps)
    return ada, ben, organiser


async def confirmed(person: BookingClient, hold: Json) -> Json:
    """What came of confirming a hold, with why it did not."""
    outcome: Json = await person.execute(CONFIRM_WITH_REFUSAL, booking=hold["booking"]["id"])
    return outcome


@pytest.mark.parametrize("end", ["closed", "hidden", "not for them", "full"])
async def test_a_hold_that_was_given_is_confirmed_whatever_becomes_of_the_campaign(
    clients: Three, end: str
) -> None:
    ada, _, organiser = clients
    await set_groups(organiser, ada, "class:5a")
    campaign_id = await create_campaign(organiser, opensAt=hours_from_now(-3))
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    hold = await book_with_refusal(ada, slot_id, hold=True)
    match end:
        case "closed":
            await update_campaign(organiser, campaign_id, closesAt=hours_from_now(-1))
        case "hidden":
            await unpublish_campaign(organiser, campaign_id)
        case "not for them":
            await update_campaign(organiser, campaign_id, eligibleGroups=[["class:6a"]])
        case _:
            await update_campaign(organiser, campaign_id, groupLimits=FIVE_A)
    assert (await confirmed(ada, hold))["booking"] == {
        "status": "CONFIRMED",
        "overriddenLimits": [],
    }


async def test_a_hold_is_not_confirmed_beside_what_its_person_has_besides(clients: Three) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser)
    one, other = [await organiser.add_slot(campaignId=campaign_id) for _ in range(2)]
    booking_id = (await book_with_refusal(ada, one))["booking"]["id"]
    hold = await book_with_refusal(ada, other, hold=True)
    await update_campaign(organiser, campaign_id, forbidOverlap=True)
    told = await confirmed(ada, hold)
    assert (told["code"], told["otherBookingId"]) == ("TIME_CONFLICT", booking_id)
    await update_campaign(organiser, campaign_id, forbidOverlap=False, maxBookings=1)
    assert (await confirmed(ada, hold))["code"] == "LIMIT_REACHED"
    await ada.cancel_booking(booking_id)
    assert (await confirmed(ada, hold))["__typename"] == "BookingConfirmed"


async def test_an_organiser_passes_over_every_limit_and_each_is_named(clients: Three) -> None:
    ada, ben, organiser = clients
    for person in (ada, ben):
        await set_groups(organiser, person, "class:5a")
    campaign_id = await create_campaign(organiser, opensAt=hours_from_now(-3))
    taken, slot_id = [
        await organiser.add_slot(campaignId=campaign_id, capacity=3) for _ in range(2)
    ]
    assert (await book_with_refusal(ben, slot_id))["__typename"] == "Booked"
    assert (await book_with_refusal(ada, taken))["__typename"] == "Booked"
    rules = {"eligibleGroups": [["class:6a"]], "maxBookings": 1, "forbidOverlap": True}
    times = {"closesAt": hours_from_now(-1)}
    await update_campaign(organiser, campaign_id, groupLimits=FIVE_A, **rules, **times)
    told = await book_with_refusal(organiser, slot_id, userId=await ada.fetch_user_id())
    expected = ["CLOSED", "NOT_ELIGIBLE", "MAX_BOOKINGS", "TIME_CONFLICT", "GROUP_FULL"]
    assert told["booking"]["overriddenLimits"] == expected
    booking = await ada.fetch_booking(told["booking"]["id"])
    assert booking["history"][0]["overriddenLimits"] == booking["overriddenLimits"] == expected
    assert (await book_with_refusal(organiser, slot_id))[
        "code"
    ] == "CLOSED"  # for themselves they are members


@pytest.mark.parametrize("way", ["book", "move"])
async def test_an_organiser_gives_places_before_the_opening(clients: Three, way: str) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, opensAt=OPENS, closesAt=CLOSES)
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    if way == "book":
        told = await book_with_refusal(organiser, slot_id, userId=await ada.fetch_user_id())
    else:
        booking_id = (await ada.book_slot(await organiser.add_slot()))["booking"]["id"]
        told = await organiser.move(booking_id, slot_id)
    assert told["booking"]["overriddenLimits"] == ["NOT_YET_OPEN"]
    assert (await ada.fetch_slot(slot_id))["myBooking"]["id"] == told["booking"]["id"]


async def test_places_are_given_back_until_the_campaign_says_so(clients: Three) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, cancelUntil=hours_from_now(2))
    slot_id, free = await organiser.add_slot(campaignId=campaign_id), await organiser.add_slot()
    booking_id = (await book_with_refusal(ada, slot_id))["booking"]["id"]
    until = (await update_campaign(organiser, campaign_id, cancelUntil=hours_from_now(-1)))[
        "cancelUntil"
    ]
    told = await ada.cancel_booking(booking_id)
    assert (told["__typename"], told["cutoff"]) == ("CutoffPassed", until)
    assert (await ada.move(booking_id, free))["__typename"] == "CutoffPassed"
    told = await organiser.cancel_booking(booking_id)
    assert told["booking"]["overriddenLimits"] == ["CANCEL_CUTOFF"]


async def test_a_hold_can_be_given_up_after_the_campaigns_cut_off(clients: Three) -> None:
    ada, _, organiser = clients
    campaign_id = await create_campaign(organiser, cancelUntil=hours_from_now(-1))
    slot_id = await organiser.add_slot(campaignId=campaign_id)
    hold_id = (await book_with_refusal(ada, slot_id, hold=True))["booking"]["id"]
    assert (await ada.cancel_booking(hold_id))["__typename"] == "BookingCancelled"


async def test_the_same_key_gets_the_same_answer_in_a_campaign_with_all_its_rules(
    clients: Three,
) -> None:
    ada, _, organiser = clients
    await set_groups(organiser, ada, "class:5a")
    rules = {"maxBookings": 1, "forbidOverlap": True, "groupLimits": FIVE_A}
    campaign_id = await create_campaign(organiser, **rules, cancelUntil=hours_from_now(9))
    slot_id = await organiser.add_slot(campaignId=campaign_id, resource="a room of its own")
    first = await ada.book_slot(slot_id, idempotencyKey="one")
    await unpublish_campaign(organiser, campaign_id)
    assert first["__typename"] == "Booked"
    assert await ada.book_slot(slot_id, idempotencyKey="one") == first
    other = await organiser.add_slot(campaignId=campaign_id)
    assert (await ada.book_slot(other, idempotencyKey="one"))["__typename"] == "KeyReused"
