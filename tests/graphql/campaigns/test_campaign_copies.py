"""Copying a campaign with its slots to later dates: dry runs, what is copied, and refusals."""

import asyncio
import secrets
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, publish_campaign
from tests.support.clients.client import Json
from tests.support.clients.series import create_series
from tests.support.stores.empty_database import stored_database

COPY = """mutation($input: CopyCampaignInput!) { copyCampaign(input: $input) {
  __typename
  ... on Refusal { code message }
  ... on CampaignCopy {
    campaign { id name published description mailNote version maxBookings }
    opensAt closesAt cancelUntil
    slotCount firstStartTime lastEndTime
    slots { sourceSlotId title startTime endTime timeZone } adjustedSlots { title }
    problemCount problems { kind message sourceSlotId otherSlotId }
    draftProblemCount draftProblems { kind sourceSlotId otherSlotId }
  }
  ... on CampaignNotCopied { problemCount problems { kind sourceSlotId otherSlotId } }
  ... on CampaignNotFound { campaignId }
  ... on InvalidInput { fields { field message } }
} }"""
SLOTS = """query($campaign: ID!, $status: SlotStatus! = PUBLISHED) {
  slots(filter: {campaignId: $campaign, status: $status}, first: 100) { nodes {
    id title startTime endTime status capacity remaining waitlistLength seriesId choiceGroup
    description resource holdCooldownMinutes meetings { startTime }
  } }
}"""
AUDIT = """query($campaign: ID!) { auditLog(filter: {campaignId: $campaign}) { nodes {
  action edits { field after }
} } }"""
TIMES = {"startTime": "2031-05-05T09:00:00+02:00", "endTime": "2031-05-05T10:00:00+02:00"}


@pytest.fixture
def members(two_apps: Pair, http: httpx.AsyncClient) -> list[BookingClient]:
    """Return two members at both processes."""
    return create_booking_clients(http, 2, *two_apps)[0]


def new_name() -> str:
    """Return a name that nothing has."""
    return secrets.token_hex(8)


async def a_campaign(organizer: BookingClient, **fields: Any) -> str:
    """Create a published campaign that takes bookings now, and return its id."""
    times = {"opensAt": "2025-02-03T14:00:00+01:00", "closesAt": "2031-04-01T14:00:00+02:00"}
    return await create_campaign(organizer, **{**times, **fields})


async def a_slot(organizer: BookingClient, campaign_id: str, **fields: Any) -> str:
    """Create a slot of a campaign in Berlin and return its id."""
    place = {"campaignId": campaign_id, "timeZone": "Europe/Berlin"}
    return str((await organizer.create_slot(**{**TIMES, **place, **fields}))["id"])


async def copy(organizer: BookingClient, campaign_id: str, **fields: Any) -> Json:
    """Copy a campaign by a year of 52 weeks and return the result."""
    fields = {"campaignId": campaign_id, "name": new_name(), "weeks": 52, **fields}
    result: Json = await organizer.execute(COPY, input={"dryRun": False, **fields})
    return result


async def slots_of(organizer: BookingClient, campaign_id: str, status: str = "PUBLISHED") -> Any:
    """Return the slots of a campaign."""
    found = await organizer.execute(SLOTS, campaign=campaign_id, status=status)
    return found["nodes"]


def documents(app: AppProcess) -> Counter[str]:
    """Return how many documents each collection has."""
    database = stored_database(app.environment["SLOTLOCK_MONGO_URL"])
    names = ("campaigns", "slots", "audit_notes", "idempotency_records")
    return Counter({name: database[name].count_documents({}) for name in names})


async def test_a_copy_has_the_slots_of_the_campaign_at_the_same_local_time_and_no_bookings(
    organizer: BookingClient, members: list[BookingClient]
) -> None:
    texts = {"description": "# Courses", "mailNote": "Bring shoes."}
    fields = {**texts, "cancelUntil": "2031-04-20T12:00:00+02:00"}
    campaign_id = await a_campaign(organizer, maxBookings=3, **fields)
    more = {"holdCooldownMinutes": 7, "description": "Bring shoes.", "capacity": 1}
    slot_id = await a_slot(organizer, campaign_id, title="Yoga", **more)
    assert (await members[0].book(slot_id))["__typename"] == "Booked"
    assert (await members[1].join(slot_id))["__typename"] == "WaitlistJoined"
    await a_slot(organizer, campaign_id, title="Draft", draft=True)
    cancelled = await a_slot(organizer, campaign_id, title="Cancelled")
    await organizer.cancel_slot(cancelled)

    copied = await copy(organizer, campaign_id, name=" Next year ", weeks=40)
    new = copied["campaign"]
    assert {name: new[name] for name in ("name", "published", *texts, "version")} == {
        "name": "Next year",
        "published": False,
        **texts,
        "version": 1,
    }
    assert (new["maxBookings"], copied["slotCount"], copied["problemCount"]) == (3, 2, 0)
    # Berlin is one hour nearer to UTC in winter.
    assert copied["opensAt"] == "2025-11-10T13:00:00.000Z"
    assert copied["closesAt"] == "2032-01-06T13:00:00.000Z"
    assert copied["cancelUntil"] == "2032-01-25T11:00:00.000Z"
    assert copied["firstStartTime"] == "2032-02-09T08:00:00.000Z"
    assert copied["lastEndTime"] == "2032-02-09T09:00:00.000Z"
    (yoga,) = await slots_of(organizer, new["id"])
    shown = {"title": "Yoga", "capacity": 1, "remaining": 1, "waitlistLength": 0}
    shown |= {"startTime": "2032-02-09T08:00:00.000Z", "description": "Bring shoes."}
    shown |= {"holdCooldownMinutes": 7}
    assert {name: yoga[name] for name in shown} == shown
    assert [each["title"] for each in await slots_of(organizer, new["id"], "DRAFT")] == ["Draft"]
    assert await slots_of(organizer, new["id"], "CANCELLED") == []
    # Only organizers see it, until it is published.
    assert (await members[0].book(yoga["id"]))["__typename"] == "SlotNotFound"
    await publish_campaign(organizer, new["id"])
    assert [each["id"] for each in await slots_of(members[0], new["id"])] == [yoga["id"]]


async def test_a_dry_run_shows_what_a_copy_would_be_and_writes_nothing(
    organizer: BookingClient, two_apps: Pair
) -> None:
    campaign_id = await a_campaign(organizer)
    slot_id = await a_slot(organizer, campaign_id, title="Yoga")
    key, before = new_name(), documents(two_apps[0])
    shown = await copy(organizer, campaign_id, dryRun=True, idempotencyKey=key)
    assert documents(two_apps[0]) == before
    assert shown.pop("campaign") is None
    assert shown["slots"] == [
        {
            "sourceSlotId": slot_id,
            "title": "Yoga",
            "startTime": "2032-05-03T07:00:00.000Z",
            "endTime": "2032-05-03T08:00:00.000Z",
            "timeZone": "Europe/Berlin",
        }
    ]
    created = await copy(organizer, campaign_id, idempotencyKey=key)
    assert created.pop("campaign")["id"]
    assert created == shown


async def test_what_prevents_a_copy_is_shown_by_a_dry_run_and_refused_by_the_copy(
    organizer: BookingClient, two_apps: Pair
) -> None:
    room = new_name()
    campaign_id = await a_campaign(organizer)
    slot_id = await a_slot(organizer, campaign_id, resource=room)
    times = {"startTime": "2032-05-03T09:30:00+02:00", "endTime": "2032-05-03T11:00:00+02:00"}
    other_id = (await organizer.create_slot(resource=room, **times))["id"]
    before = documents(two_apps[0])
    shown = await copy(organizer, campaign_id, dryRun=True)
    (problem,) = shown["problems"]
    assert problem.pop("message")
    expected = {"kind": "RESOURCE_TAKEN", "sourceSlotId": slot_id, "otherSlotId": other_id}
    assert (shown["problemCount"], problem) == (1, expected)
    refused = await copy(organizer, campaign_id)
    assert (refused["__typename"], refused["code"]) == ("CampaignNotCopied", "CAMPAIGN_NOT_COPIED")
    assert (refused["problemCount"], refused["problems"]) == (1, [expected])
    assert documents(two_apps[0]) == before
    later = await copy(organizer, campaign_id, weeks=53)
    assert later["__typename"] == "CampaignCopy"


async def test_a_dry_run_names_the_drafts_that_need_the_room_of_another_copy(
    organizer: BookingClient,
) -> None:
    campaign_id, room = await a_campaign(organizer), new_name()
    for draft in (False, True):
        slot_id = await a_slot(organizer, campaign_id, resource=room, draft=draft)
    shown = await copy(organizer, campaign_id, dryRun=True)
    assert (shown["problemCount"], shown["draftProblemCount"]) == (0, 1)
    taken = {"kind": "RESOURCE_TAKEN", "sourceSlotId": slot_id, "otherSlotId": None}
    assert shown["draftProblems"] == [taken]
    assert (await copy(organizer, campaign_id))["campaign"]


async def test_the_log_shows_the_new_campaign_and_its_slots(organizer: BookingClient) -> None:
    campaign_id = await a_campaign(organizer)
    await a_slot(organizer, campaign_id, title="Yoga")
    copied = await copy(organizer, campaign_id)
    log = await organizer.execute(AUDIT, campaign=copied["campaign"]["id"])
    edits = {
        each["action"]: {edit["field"]: edit["after"] for edit in each["edits"]}
        for each in log["nodes"]
    }
    assert edits.keys() == {"CAMPAIGN_CREATED", "SLOT_CREATED"}
    assert edits["CAMPAIGN_CREATED"]["name"] == copied["campaign"]["name"]
    assert edits["SLOT_CREATED"]["startTime"] == "2032-05-03T07:00:00.000Z"


async def test_copies_are_all_made_each_with_a_series_and_a_choice_group_of_its_own(
    organizer: BookingClient,
) -> None:
    campaign_id = await a_campaign(organizer)
    of_campaign = {"campaignId": campaign_id, "choiceGroup": new_name()}
    source = await create_series(organizer, "FREQ=WEEKLY;COUNT=2", **of_campaign)
    copies = await asyncio.gather(*(copy(organizer, campaign_id) for _ in range(3)))
    new_ids = {each["campaign"]["id"] for each in copies}
    slots = [slot for each in new_ids for slot in await slots_of(organizer, each)]
    assert len(slots) == 6
    assert len({slot["seriesId"] for slot in slots} - {source["seriesId"]}) == 3
    assert len({slot["choiceGroup"] for slot in slots} - {of_campaign["choiceGroup"]}) == 3


async def test_a_refused_copy_says_why_and_the_past_has_to_be_allowed(
    organizer: BookingClient,
) -> None:
    times = {"opensAt": "2021-02-01T00:00:00Z", "closesAt": "2021-02-08T00:00:00Z"}
    campaign_id = await a_campaign(organizer, allowPast=True, **times)
    refused = await copy(organizer, campaign_id)
    assert [each["kind"] for each in refused["problems"]] == ["IN_PAST"]
    copied = await copy(organizer, campaign_id, allowPast=True)
    assert (copied["closesAt"], copied["slotCount"]) == ("2022-02-07T00:00:00.000Z", 0)
    invalid = await copy(organizer, campaign_id, weeks=0)
    assert [each["field"] for each in invalid["fields"]] == ["weeks"]
    unknown = await copy(organizer, "nonsense")
    assert (unknown["code"], unknown["campaignId"]) == ("CAMPAIGN_NOT_FOUND", "nonsense")
