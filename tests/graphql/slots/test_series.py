"""Series of slots over HTTP: which slots a rule makes, and what is taken already."""

import secrets
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import book_with_refusal, create_campaign
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.series import (
    CREATE_SERIES,
    MONDAY_TIMES,
    RESOURCE_TAKEN_FRAGMENT,
    create_series,
    fetch_series_slots,
    start_times,
    update_series,
)

CREATE_SLOT = f"""mutation($input: CreateSlotInput!) {{
  createSlot(input: $input) {{ __typename ...T }}
}} {RESOURCE_TAKEN_FRAGMENT}"""
STARTS = ["03-17T08:00", "03-24T08:00", "03-31T07:00", "04-07T07:00"]


@pytest.fixture
async def clients(app: AppProcess, http: httpx.AsyncClient) -> tuple[BookingClient, BookingClient]:
    """A member and an organiser."""
    (ada,), organiser = await create_booking_clients(http, 1, app)
    return ada, organiser


def room() -> str:
    """A resource that nothing uses yet."""
    return f"Room {secrets.token_hex(4)}"


async def test_a_weekly_nine_stays_nine_when_the_clocks_go_forward_and_back(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    made = await create_series(organiser, capacity=3)
    assert made["__typename"] == "SlotSeriesCreated"
    assert start_times(made["slots"]) == STARTS
    assert {slot["seriesId"] for slot in made["slots"]} == {made["seriesId"]}
    assert {slot["capacity"] for slot in made["slots"]} == {3}
    assert made["conflicts"] == []
    assert await fetch_series_slots(ada, made) == made["slots"]
    october = {"startTime": "2031-10-20T09:00:00+02:00", "endTime": "2031-10-20T10:00:00+02:00"}
    back = await create_series(organiser, "FREQ=WEEKLY;COUNT=2", **october)
    assert start_times(back["slots"]) == ["10-20T07:00", "10-27T08:00"]


async def test_holidays_leave_out_their_dates(clients: tuple[BookingClient, BookingClient]) -> None:
    _, organiser = clients
    wanted = {"slot": {"title": "Yoga", "timeZone": "Europe/Berlin", **MONDAY_TIMES}}
    rule = {"rrule": "FREQ=WEEKLY;COUNT=4", "holidays": ["2031-03-24", "2031-12-24"]}
    made = await organiser.execute(CREATE_SERIES, input={**wanted, **rule})
    assert start_times(made["slots"]) == [STARTS[0], *STARTS[2:]]


async def test_each_slot_of_a_series_is_booked_by_itself(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    made = await create_series(organiser)
    assert (await book_with_refusal(ada, made["slots"][1]["id"]))["__typename"] == "Booked"
    assert [slot["remaining"] for slot in await fetch_series_slots(ada, made)] == [1, 0, 1, 1]


WRONG: list[tuple[dict[str, Any], list[str]]] = [
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


@pytest.mark.parametrize(("wrong", "fields"), WRONG)
async def test_what_cannot_be_a_series_is_named(
    clients: tuple[BookingClient, BookingClient], wrong: dict[str, Any], fields: list[str]
) -> None:
    told = await create_series(clients[1], **wrong)
    assert told["__typename"] == "InvalidInput", told
    assert [problem["field"] for problem in told["fields"]] == fields


async def test_only_organisers_create_series(
    clients: tuple[BookingClient, BookingClient], app: AppProcess, http: httpx.AsyncClient
) -> None:
    wanted = {"slot": {"title": "Yoga", **MONDAY_TIMES}, "rrule": "FREQ=WEEKLY;COUNT=2"}
    assert await clients[0].error_code(CREATE_SERIES, input=wanted) == "FORBIDDEN"
    assert (
        await GraphQLTestClient(http, app.url).error_code(CREATE_SERIES, input=wanted)
        == "UNAUTHENTICATED"
    )


async def test_a_strict_series_is_created_with_all_its_dates_or_not_at_all(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    hall = room()
    taken = {"startTime": "2031-03-24T09:30:00+01:00", "endTime": "2031-03-24T11:00:00+01:00"}
    other_id = await organiser.add_slot(title="Ballet", resource=hall, **taken)
    told = await create_series(organiser, resource=hall)
    assert told == {
        "__typename": "SeriesConflicts",
        "code": "SERIES_CONFLICTS",
        "conflicts": [
            {
                "code": "RESOURCE_TAKEN",
                "meeting": {
                    "startTime": "2031-03-24T08:00:00.000Z",
                    "endTime": "2031-03-24T09:00:00.000Z",
                },
                "other": {"id": other_id, "title": "Ballet", "resource": hall},
                "otherMeeting": {
                    "startTime": "2031-03-24T08:30:00.000Z",
                    "endTime": "2031-03-24T10:00:00.000Z",
                },
            }
        ],
    }
    whole = await create_series(organiser, "FREQ=DAILY;COUNT=20", resource=hall)
    assert len(whole["conflicts"]) == 1  # the other series left nothing behind


async def test_a_series_that_skips_leaves_out_what_is_taken_and_says_why(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    hall = room()
    first = await create_series(organiser, "FREQ=WEEKLY;INTERVAL=2;COUNT=2", resource=hall)
    made = await create_series(organiser, on_conflict="SKIP_CONFLICTS", resource=hall)
    assert start_times(made["slots"]) == [STARTS[1], STARTS[3]]
    assert [c["other"]["id"] for c in made["conflicts"]] == [s["id"] for s in first["slots"]]
    assert [c["meeting"]["startTime"][5:16] for c in made["conflicts"]] == [STARTS[0], STARTS[2]]
    nothing = await create_series(organiser, on_conflict="SKIP_CONFLICTS", resource=hall)
    assert nothing["__typename"] == "SeriesConflicts"
    assert len(nothing["conflicts"]) == 4


async def test_a_series_whose_own_slots_overlap_takes_its_resource_once_at_a_time(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    long = {"endTime": "2031-03-18T10:00:00+01:00"}
    daily = "FREQ=DAILY;COUNT=4"
    assert len((await create_series(organiser, daily, **long))["slots"]) == 4
    hall = room()
    assert (await create_series(organiser, daily, resource=hall, **long))[
        "code"
    ] == "SERIES_CONFLICTS"
    made = await create_series(organiser, daily, "SKIP_CONFLICTS", resource=hall, **long)
    assert start_times(made["slots"]) == ["03-17T08:00", "03-19T08:00"]


async def test_drafts_and_what_was_called_off_keep_nobody_from_a_resource(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    hall = room()
    await create_series(organiser, resource=hall, draft=True)
    await organiser.cancel_slot(await organiser.add_slot(resource=hall, **MONDAY_TIMES))
    made = await create_series(organiser, resource=hall)
    assert start_times(made["slots"]) == STARTS
    again = await create_series(organiser, resource=hall, draft=True)
    assert {slot["status"] for slot in again["slots"]} == {"DRAFT"}


async def test_what_ends_when_the_next_begins_does_not_overlap(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    hall = room()
    await create_series(organiser, resource=hall)
    next_hour = {
        "startTime": "2031-03-17T10:00:00+01:00",
        "endTime": "2031-03-17T11:00:00+01:00",
    }
    assert (
        start_times((await create_series(organiser, resource=hall, **next_hour))["slots"])[0]
        == "03-17T09:00"
    )


async def test_a_series_in_a_campaign_is_under_its_terms(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    campaign_id = await create_campaign(organiser, maxBookings=1, published=False)
    made = await create_series(organiser, campaignId=campaign_id)
    assert {slot["campaign"]["id"] for slot in made["slots"]} == {campaign_id}
    assert await fetch_series_slots(ada, made) == []
    open_id = await create_campaign(organiser, maxBookings=1)
    made = await create_series(organiser, campaignId=open_id)
    told = [(await book_with_refusal(ada, slot["id"]))["__typename"] for slot in made["slots"]]
    assert told == ["Booked", "LimitReached", "LimitReached", "LimitReached"]
    missing = await create_series(organiser, campaignId="campaign_" + "0" * 24)
    assert missing["__typename"] == "CampaignNotFound"


async def test_a_series_has_up_to_500_slots(clients: tuple[BookingClient, BookingClient]) -> None:
    _, organiser = clients
    made = await create_series(organiser, "FREQ=DAILY;COUNT=500", resource=room())
    assert len(made["slots"]) == 500
    assert len({slot["id"] for slot in made["slots"]}) == 500


@pytest.mark.parametrize("start", ["0001-01-01T00:00:00Z", "2031-01-01T00:00:00Z"])
async def test_what_a_slot_of_thousands_of_years_holds_is_taken_as_from_any_other(
    clients: tuple[BookingClient, BookingClient], start: str
) -> None:
    _, organiser = clients
    hall = room()
    ages = await organiser.add_slot(resource=hall, startTime=start, endTime="4100-12-31T00:00:00Z")
    told = await organiser.execute(
        CREATE_SLOT, input={"title": "Yoga", **MONDAY_TIMES, "resource": hall}
    )
    assert (told["__typename"], told["other"]["id"]) == ("ResourceTaken", ages)
    for on in ("STRICT", "SKIP_CONFLICTS"):
        told = await create_series(organiser, on_conflict=on, resource=hall)
        assert (told["__typename"], len(told["conflicts"])) == ("SeriesConflicts", 4)


async def test_a_resource_is_the_same_however_its_letters_are_composed(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    name = room()
    composed, decomposed = f"Caf\u00e9 {name}", f"Cafe\u0301 {name} "
    first = await organiser.add_slot(resource=composed, **MONDAY_TIMES)
    wanted = {"title": "Yoga", **MONDAY_TIMES, "resource": decomposed}
    told = await organiser.execute(CREATE_SLOT, input=wanted)
    assert (told["__typename"], told["other"]["id"]) == ("ResourceTaken", first)
    other = {"id": await organiser.add_slot(**MONDAY_TIMES)}
    told = await update_series(organiser, other, "THIS", resource=decomposed)
    assert (told["__typename"], told["other"]["id"]) == ("ResourceTaken", first)
    told = await create_series(organiser, resource=decomposed)
    assert [conflict["other"]["id"] for conflict in told["conflicts"]] == [first]
