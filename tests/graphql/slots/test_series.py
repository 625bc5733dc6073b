"""Creating a series of slots: its dates, invalid input, and dates with a taken resource."""

import secrets
from typing import Any

import pytest

from tests.support.clients.campaigns import book_with_refusal, create_campaign
from tests.support.clients.fixtures import Two
from tests.support.clients.series import (
    CREATE_SERIES,
    MONDAY_TIMES,
    RESOURCE_TAKEN_FRAGMENT,
    create_series,
    fetch_series_slots,
    start_times,
)

MEMBER_COUNT = 1


CREATE_SLOT = f"""mutation($input: CreateSlotInput!) {{
  createSlot(input: $input) {{ __typename ...T }}
}} {RESOURCE_TAKEN_FRAGMENT}"""
STARTS = ["03-17T08:00", "03-24T08:00", "03-31T07:00", "04-07T07:00"]


def new_resource() -> str:
    """Return a resource that no slot uses yet."""
    return f"Room {secrets.token_hex(4)}"


async def test_a_weekly_series_has_one_local_time_across_a_clock_change(clients: Two) -> None:
    ada, organizer = clients
    created = await create_series(organizer, capacity=3)
    assert created["__typename"] == "SlotSeriesCreated"
    assert start_times(created["slots"]) == STARTS
    assert {slot["seriesId"] for slot in created["slots"]} == {created["seriesId"]}
    assert {slot["capacity"] for slot in created["slots"]} == {3}
    assert created["conflicts"] == []
    assert await fetch_series_slots(ada, created) == created["slots"]
    october = {"startTime": "2031-10-20T09:00:00+02:00", "endTime": "2031-10-20T10:00:00+02:00"}
    back = await create_series(organizer, "FREQ=WEEKLY;COUNT=2", **october)
    assert start_times(back["slots"]) == ["10-20T07:00", "10-27T08:00"]


async def test_a_series_skips_its_holidays(clients: Two) -> None:
    _, organizer = clients
    series = {
        "slot": {"title": "Yoga", "timeZone": "Europe/Berlin", **MONDAY_TIMES},
        "rrule": "FREQ=WEEKLY;COUNT=4",
        "holidays": ["2031-03-24", "2031-12-24"],
    }
    created = await organizer.execute(CREATE_SERIES, input=series)
    assert start_times(created["slots"]) == [STARTS[0], *STARTS[2:]]


async def test_each_slot_of_a_series_is_booked_on_its_own(clients: Two) -> None:
    ada, organizer = clients
    created = await create_series(organizer)
    assert (await book_with_refusal(ada, created["slots"][1]["id"]))["__typename"] == "Booked"
    assert [slot["remaining"] for slot in await fetch_series_slots(ada, created)] == [1, 0, 1, 1]


INVALID: list[tuple[dict[str, Any], list[str]]] = [
    ({"rrule": ""}, ["rrule"]),
    ({"rrule": "FREQ=WEEKLY"}, ["rrule"]),
    ({"rrule": "FREQ=HOURLY;COUNT=3"}, ["rrule"]),
    ({"rrule": "FREQ=DAILY;COUNT=501"}, ["rrule"]),
    ({"rrule": "FREQ=DAILY;UNTIL=20351231"}, ["rrule"]),
    ({"rrule": "FREQ=DAILY;COUNT=3;UNTIL=20310401"}, ["rrule"]),
    ({"rrule": "FREQ=DAILY;UNTIL=20310101"}, ["rrule"]),
    ({"rrule": "FREQ=WEEKLY;BYDAY=XX;COUNT=3"}, ["rrule"]),
    ({"rrule": "x" * 501}, ["rrule"]),
    ({"endTime": "2031-03-17T09:00:00+01:00"}, ["endTime"]),
    ({"startTime": "1960-03-17T09:00:00+01:00"}, ["startTime", "endTime"]),
    ({"title": "", "capacity": 0}, ["title", "capacity"]),
    ({"startTime": None, "endTime": None}, ["startTime"]),
    ({"endTime": None}, ["startTime"]),
    ({"timetable": {"first": "2031-03-17", "last": "2031-03-17"}}, ["startTime"]),
]


@pytest.mark.parametrize(("wrong", "fields"), INVALID)
async def test_an_invalid_series_names_its_invalid_fields(
    clients: Two, wrong: dict[str, Any], fields: list[str]
) -> None:
    outcome = await create_series(clients[1], **wrong)
    assert outcome["__typename"] == "InvalidInput", outcome
    assert [problem["field"] for problem in outcome["fields"]] == fields


async def test_a_strict_series_is_created_with_all_of_its_dates_or_not_at_all(clients: Two) -> None:
    _, organizer = clients
    resource = new_resource()
    taken = {"startTime": "2031-03-24T09:30:00+01:00", "endTime": "2031-03-24T11:00:00+01:00"}
    other_id = await organizer.add_slot(title="Ballet", resource=resource, **taken)
    outcome = await create_series(organizer, resource=resource)
    assert outcome == {
        "__typename": "SeriesConflicts",
        "code": "SERIES_CONFLICTS",
        "conflicts": [
            {
                "code": "RESOURCE_TAKEN",
                "meeting": {
                    "startTime": "2031-03-24T08:00:00.000Z",
                    "endTime": "2031-03-24T09:00:00.000Z",
                },
                "other": {"id": other_id, "title": "Ballet", "resource": resource},
                "otherMeeting": {
                    "startTime": "2031-03-24T08:30:00.000Z",
                    "endTime": "2031-03-24T10:00:00.000Z",
                },
            }
        ],
    }
    daily = await create_series(organizer, "FREQ=DAILY;COUNT=20", resource=resource)
    assert len(daily["conflicts"]) == 1  # the refused series created nothing


async def test_a_series_that_skips_conflicts_reports_the_skipped_dates(clients: Two) -> None:
    _, organizer = clients
    resource = new_resource()
    first = await create_series(organizer, "FREQ=WEEKLY;INTERVAL=2;COUNT=2", resource=resource)
    created = await create_series(organizer, on_conflict="SKIP_CONFLICTS", resource=resource)
    assert start_times(created["slots"]) == [STARTS[1], STARTS[3]]
    assert [c["other"]["id"] for c in created["conflicts"]] == [s["id"] for s in first["slots"]]
    assert [c["meeting"]["startTime"][5:16] for c in created["conflicts"]] == [STARTS[0], STARTS[2]]
    nothing = await create_series(organizer, on_conflict="SKIP_CONFLICTS", resource=resource)
    assert nothing["__typename"] == "SeriesConflicts"
    assert len(nothing["conflicts"]) == 4


async def test_slots_of_one_series_cannot_share_a_resource_at_the_same_time(clients: Two) -> None:
    _, organizer = clients
    long = {"endTime": "2031-03-18T10:00:00+01:00"}
    daily = "FREQ=DAILY;COUNT=4"
    assert len((await create_series(organizer, daily, **long))["slots"]) == 4
    resource = new_resource()
    assert (await create_series(organizer, daily, resource=resource, **long))[
        "code"
    ] == "SERIES_CONFLICTS"
    created = await create_series(organizer, daily, "SKIP_CONFLICTS", resource=resource, **long)
    assert start_times(created["slots"]) == ["03-17T08:00", "03-19T08:00"]


async def test_drafts_and_cancelled_slots_do_not_occupy_a_resource(clients: Two) -> None:
    _, organizer = clients
    resource = new_resource()
    await create_series(organizer, resource=resource, draft=True)
    await organizer.cancel_slot(await organizer.add_slot(resource=resource, **MONDAY_TIMES))
    created = await create_series(organizer, resource=resource)
    assert start_times(created["slots"]) == STARTS
    again = await create_series(organizer, resource=resource, draft=True)
    assert {slot["status"] for slot in again["slots"]} == {"DRAFT"}


async def test_a_series_in_a_campaign_follows_the_rules_of_the_campaign(clients: Two) -> None:
    ada, organizer = clients
    campaign_id = await create_campaign(organizer, maxBookings=1, published=False)
    created = await create_series(organizer, campaignId=campaign_id)
    assert {slot["campaign"]["id"] for slot in created["slots"]} == {campaign_id}
    assert await fetch_series_slots(ada, created) == []
    open_id = await create_campaign(organizer, maxBookings=1)
    created = await create_series(organizer, campaignId=open_id)
    results = [
        (await book_with_refusal(ada, slot["id"]))["__typename"] for slot in created["slots"]
    ]
    assert results == ["Booked", "LimitReached", "LimitReached", "LimitReached"]
    missing = await create_series(organizer, campaignId="campaign_" + "0" * 24)
    assert missing["__typename"] == "CampaignNotFound"


async def test_a_series_has_up_to_500_slots(clients: Two) -> None:
    _, organizer = clients
    created = await create_series(organizer, "FREQ=DAILY;COUNT=500", resource=new_resource())
    assert len(created["slots"]) == 500
    assert len({slot["id"] for slot in created["slots"]}) == 500


@pytest.mark.parametrize("start", ["0001-01-01T00:00:00Z", "2031-01-01T00:00:00Z"])
async def test_a_slot_of_thousands_of_years_occupies_its_resource_like_any_other(
    clients: Two, start: str
) -> None:
    _, organizer = clients
    resource = new_resource()
    ages = await organizer.add_slot(
        resource=resource, startTime=start, endTime="4100-12-31T00:00:00Z"
    )
    outcome = await organizer.execute(
        CREATE_SLOT, input={"title": "Yoga", **MONDAY_TIMES, "resource": resource}
    )
    assert (outcome["__typename"], outcome["other"]["id"]) == ("ResourceTaken", ages)
    for on in ("STRICT", "SKIP_CONFLICTS"):
        outcome = await create_series(organizer, on_conflict=on, resource=resource)
        assert (outcome["__typename"], len(outcome["conflicts"])) == ("SeriesConflicts", 4)
