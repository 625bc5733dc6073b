"""Every rule of a campaign applies to every way of booking a place."""

import pytest
from bson import ObjectId

from slotlock.infrastructure.mongo.client import open_database
from tests.support.apps.processes import Pair
from tests.support.clients.campaigns import (
    BOOKING_AND_WAITLIST_METHODS,
    BOOKING_METHODS,
    book_with_refusal,
    create_campaign,
    set_groups,
    unpublish_campaign,
)
from tests.support.clients.fixtures import Three

PAST, RECENT = "2020-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"
OPENS, CLOSES = "2090-01-01T12:00:00.000Z", "2091-01-01T12:00:00.000Z"
NINE, TEN, ELEVEN = (f"2040-05-07T{hour}:00:00.000Z" for hour in ("09", "10", "11"))
UPDATE_GROUPS = """mutation($input: UpdateSlotInput!) { updateSlot(input: $input) {
  ... on Slot { onlyForGroups }
} }"""


@pytest.mark.parametrize("method", BOOKING_AND_WAITLIST_METHODS)
async def test_a_campaign_takes_no_bookings_before_and_after_its_times(
    clients: Three, method: str
) -> None:
    ada, _, organizer = clients
    early = await create_campaign(organizer, opensAt=OPENS, closesAt=CLOSES)
    late = await create_campaign(organizer, opensAt=PAST, closesAt=RECENT, allowPast=True)
    slot_ids = [await organizer.add_slot(campaignId=campaign_id) for campaign_id in (early, late)]
    before, after = [
        await BOOKING_AND_WAITLIST_METHODS[method](ada, organizer, slot_id) for slot_id in slot_ids
    ]
    opening = {"opensAt": OPENS, "slot": {"id": slot_ids[0]}}
    assert before == {"__typename": "NotYetOpen", "code": "NOT_YET_OPEN", **opening}
    closing = {"closesAt": RECENT, "slotId": slot_ids[1]}
    assert after == {"__typename": "Closed", "code": "CLOSED", **closing}


@pytest.mark.parametrize("method", BOOKING_AND_WAITLIST_METHODS)
async def test_a_slot_of_an_unpublished_campaign_is_refused_like_one_that_does_not_exist(
    clients: Three, method: str
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    deleted_id = await organizer.add_slot()
    assert (await organizer.delete_slot(deleted_id))["slotIds"] == [deleted_id]
    await unpublish_campaign(organizer, campaign_id)
    for refused_id in (slot_id, deleted_id):
        outcome = await BOOKING_AND_WAITLIST_METHODS[method](ada, organizer, refused_id)
        assert outcome == {"__typename": "SlotNotFound", "code": "SLOT_NOT_FOUND"}


@pytest.mark.parametrize("method", BOOKING_AND_WAITLIST_METHODS)
async def test_a_slot_can_be_for_some_groups_only(clients: Three, method: str) -> None:
    ada, _, organizer = clients
    await set_groups(organizer, ada, "class:8a")
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id, onlyForGroups=["class:9*", " 9 "])
    outcome = await BOOKING_AND_WAITLIST_METHODS[method](ada, organizer, slot_id)
    not_eligible = {"__typename": "NotEligible", "code": "NOT_ELIGIBLE", "slot": {"id": slot_id}}
    assert outcome == not_eligible
    edited = {"slotId": slot_id, "onlyForGroups": ["class:8a"]}
    assert (await organizer.execute(UPDATE_GROUPS, input=edited)) == {"onlyForGroups": ["class:8a"]}
    outcome = await BOOKING_METHODS["booking"](ada, organizer, slot_id)
    assert outcome["__typename"] == "Booked"


@pytest.mark.parametrize("method", BOOKING_AND_WAITLIST_METHODS)
async def test_a_campaign_can_be_for_users_with_a_verified_address(
    two_apps: Pair, clients: Three, method: str
) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer, requireVerifiedEmail=True)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    outcome = await BOOKING_AND_WAITLIST_METHODS[method](ada, organizer, slot_id)
    not_verified = {"__typename": "EmailNotVerified", "code": "EMAIL_NOT_VERIFIED"}
    assert outcome == not_verified
    async with open_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as database:
        user = {"_id": ObjectId((await ada.fetch_user_id())[-24:])}
        await database["users"].update_one(user, [{"$set": {"verifiedEmail": "$email"}}])
        outcome = await BOOKING_METHODS["booking"](ada, organizer, slot_id)
        assert outcome["__typename"] == "Booked"


@pytest.mark.parametrize("method", BOOKING_AND_WAITLIST_METHODS)
async def test_an_overlapping_booking_is_refused_with_the_id_of_the_other_one(
    clients: Three, method: str
) -> None:
    ada, _, organizer = clients
    first, second = [await create_campaign(organizer, forbidOverlap=True) for _ in range(2)]
    earlier = await organizer.add_slot(campaignId=first, startTime=NINE, endTime=ELEVEN)
    later = await organizer.add_slot(
        campaignId=second, startTime=TEN, endTime="2040-05-07T12:00:00Z"
    )
    booking_id = (await book_with_refusal(ada, earlier))["booking"]["id"]
    outcome = await BOOKING_AND_WAITLIST_METHODS[method](ada, organizer, later)
    assert outcome == {
        "__typename": "TimeConflict",
        "code": "TIME_CONFLICT",
        "otherBookingId": booking_id,
        "meeting": {"startTime": TEN, "endTime": "2040-05-07T12:00:00.000Z"},
        "otherMeeting": {"startTime": NINE, "endTime": ELEVEN},
        "slot": {"id": later},
    }


async def test_a_teammate_is_refused_without_seeing_the_other_booking(clients: Three) -> None:
    ada, ben, organizer = clients
    await ada.create_team_with(ben)
    campaign_id = await create_campaign(organizer, forbidOverlap=True)
    ben_slot, slot_id = [await organizer.add_slot(campaignId=campaign_id) for _ in range(2)]
    assert (await book_with_refusal(ben, ben_slot))["__typename"] == "Booked"
    outcome = await book_with_refusal(ada, slot_id, userId=await ben.fetch_user_id())
    assert (outcome["code"], outcome["otherBookingId"]) == ("TIME_CONFLICT", None)
    forced = await book_with_refusal(organizer, slot_id, userId=await ben.fetch_user_id())
    assert forced["booking"]["overriddenLimits"] == ["TIME_CONFLICT"]
