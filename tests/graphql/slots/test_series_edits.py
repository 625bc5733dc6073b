"""Changing and calling off slots of a series: one, this and following, or all, together or not."""

import secrets
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import book_with_refusal
from tests.support.clients.client import Json
from tests.support.clients.series import (
    MONDAY_TIMES,
    PUBLISH_SERIES,
    cancel_series,
    create_series,
    fetch_series_slots,
    start_times,
    update_series,
)

STARTS = ["03-17T08:00", "03-24T08:00", "03-31T07:00", "04-07T07:00"]
SECOND_AT_TEN = {"startTime": "2031-03-24T10:00:00+01:00", "endTime": "2031-03-24T11:30:00+01:00"}
COURSE = {
    "first": "2031-03-17",
    "last": "2031-03-24",
    "weekly": [{"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:00"}],
}
SCOPES = {"THIS": [1], "THIS_AND_FOLLOWING": [1, 2, 3], "ALL": [0, 1, 2, 3]}


@pytest.fixture
async def clients(
    two_apps: tuple[AppProcess, AppProcess], http: httpx.AsyncClient
) -> tuple[BookingClient, BookingClient]:
    """A member at the one process and an organiser at the other."""
    (ada,), organiser = await create_booking_clients(http, 1, two_apps[1], two_apps[0])
    return ada, organiser


def room() -> str:
    """A resource that nothing uses yet."""
    return f"Room {secrets.token_hex(4)}"


def unlike(before: list[Json], after: list[Json]) -> list[int]:
    """Which of the slots changed."""
    return [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_change_is_for_the_slots_in_its_scope(
    clients: tuple[BookingClient, BookingClient], scope: str
) -> None:
    ada, organiser = clients
    made = await create_series(organiser)
    told = await update_series(organiser, made["slots"][1], scope, title="Pilates", capacity=4)
    assert (told["id"], told["title"]) == (made["slots"][1]["id"], "Pilates")
    after = await fetch_series_slots(ada, made)
    assert unlike(made["slots"], after) == SCOPES[scope]
    changed = [(after[n]["title"], after[n]["remaining"]) for n in SCOPES[scope]]
    assert set(changed) == {("Pilates", 4)}


@pytest.mark.parametrize("scope", SCOPES)
async def test_times_move_by_the_clock_on_the_wall_on_both_sides_of_a_clock_change(
    clients: tuple[BookingClient, BookingClient], scope: str
) -> None:
    ada, organiser = clients
    made = await create_series(organiser)
    await update_series(organiser, made["slots"][1], scope, **SECOND_AT_TEN)
    later = ["03-17T09:00", "03-24T09:00", "03-31T08:00", "04-07T08:00"]
    expected = [later[n] if n in SCOPES[scope] else STARTS[n] for n in range(4)]
    after = await fetch_series_slots(ada, made)
    assert start_times(after) == expected
    ends = {slot["endTime"][11:16] for n, slot in enumerate(after) if n in SCOPES[scope]}
    assert ends <= {"10:30", "09:30"}


async def test_a_series_moves_to_another_day_as_far_as_one_of_its_slots_does(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    hall = room()
    made = await create_series(organiser, "FREQ=DAILY;COUNT=4", resource=hall)
    next_day = {"startTime": "2031-03-19T09:00:00+01:00", "endTime": "2031-03-19T10:00:00+01:00"}
    told = await update_series(organiser, made["slots"][1], "ALL", **next_day)
    assert told["__typename"] == "Slot", told  # each to where the next one was
    moved = ["03-18T08:00", "03-19T08:00", "03-20T08:00", "03-21T08:00"]
    assert start_times(await fetch_series_slots(ada, made)) == moved
    # Without the first one the others would come to where that one is.
    told = await update_series(organiser, made["slots"][1], "THIS_AND_FOLLOWING", **MONDAY_TIMES)
    assert (told["code"], told["other"]["id"]) == ("RESOURCE_TAKEN", made["slots"][0]["id"])
    assert start_times(await fetch_series_slots(ada, made)) == moved


async def test_bookings_survive_a_change_of_their_series(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    made = await create_series(organiser)
    booking_id = (await book_with_refusal(ada, made["slots"][2]["id"]))["booking"]["id"]
    await update_series(organiser, made["slots"][1], "ALL", **SECOND_AT_TEN)
    slot = await ada.fetch_slot(made["slots"][2]["id"])
    assert (slot["myBooking"]["id"], slot["remaining"]) == (booking_id, 0)


@pytest.mark.parametrize("scope", ["THIS_AND_FOLLOWING", "ALL"])
async def test_if_one_has_more_bookings_than_places_are_left_none_changes(
    clients: tuple[BookingClient, BookingClient], scope: str
) -> None:
    ada, organiser = clients
    made = await create_series(organiser, capacity=3)
    last = made["slots"][3]["id"]
    for person in (ada, organiser):
        await book_with_refusal(person, last)
    before = await fetch_series_slots(organiser, made)
    told = await update_series(organiser, made["slots"][1], scope, capacity=1, title="Small")
    assert (told["__typename"], told["code"]) == ("CapacityBelowTaken", "CAPACITY_BELOW_TAKEN")
    assert await fetch_series_slots(organiser, made) == before
    assert (await update_series(organiser, made["slots"][1], scope, capacity=2))["capacity"] == 2


@pytest.mark.parametrize("scope", ["THIS_AND_FOLLOWING", "ALL"])
async def test_if_the_resource_of_one_is_taken_none_moves(
    clients: tuple[BookingClient, BookingClient], scope: str
) -> None:
    _, organiser = clients
    hall = room()
    made = await create_series(organiser, resource=hall)
    taken = {"startTime": "2031-04-07T10:15:00+02:00", "endTime": "2031-04-07T10:45:00+02:00"}
    other_id = await organiser.add_slot(resource=hall, **taken)
    told = await update_series(organiser, made["slots"][1], scope, **SECOND_AT_TEN)
    assert (told["code"], told["other"]["id"]) == ("RESOURCE_TAKEN", other_id)
    assert told["meeting"]["startTime"][5:16] == "04-07T08:00"
    assert await fetch_series_slots(organiser, made) == made["slots"]
    assert (await update_series(organiser, made["slots"][1], "THIS", **SECOND_AT_TEN))[
        "resource"
    ] == hall


async def test_what_is_wrong_changes_none(clients: tuple[BookingClient, BookingClient]) -> None:
    _, organiser = clients
    made = await create_series(organiser)
    this = made["slots"][1]
    for wrong in ({"title": ""}, {"endTime": MONDAY_TIMES["startTime"]}, {"capacity": 0}):
        assert (await update_series(organiser, this, "ALL", **wrong))[
            "__typename"
        ] == "InvalidInput"
    for course in (COURSE, None):
        told = await update_series(organiser, this, "ALL", timetable=course)
        assert [problem["field"] for problem in told["fields"]] == ["timetable"]
    assert await fetch_series_slots(organiser, made) == made["slots"]


async def test_times_of_a_series_with_a_course_in_it_change_one_by_one(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    made = await create_series(organiser)
    told = await update_series(organiser, made["slots"][3], "THIS", timetable=COURSE)
    assert told["__typename"] == "Slot", told
    before = await fetch_series_slots(organiser, made)
    told = await update_series(organiser, made["slots"][1], "ALL", **SECOND_AT_TEN)
    assert [problem["field"] for problem in told["fields"]] == ["startTime"]
    assert await fetch_series_slots(organiser, made) == before
    told = await update_series(organiser, made["slots"][1], "ALL", title="Pilates")
    assert told["__typename"] == "Slot", told


async def test_a_slot_that_was_made_longer_stays_so_when_its_series_moves(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    made = await create_series(organiser)
    await update_series(organiser, made["slots"][0], "THIS", endTime="2031-03-17T11:00:00+01:00")
    await update_series(organiser, made["slots"][1], "ALL", **SECOND_AT_TEN)
    first, second, *_ = await fetch_series_slots(ada, made)
    assert (first["startTime"][11:16], first["endTime"][11:16]) == ("09:00", "11:30")
    assert (second["startTime"][11:16], second["endTime"][11:16]) == ("09:00", "10:30")


@pytest.mark.parametrize("act", ["update", "call_off"])
async def test_what_is_over_stays_as_it_was(
    clients: tuple[BookingClient, BookingClient], act: str
) -> None:
    ada, organiser = clients
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(days=10)
    times = {"startTime": past.isoformat(), "endTime": (past + timedelta(hours=1)).isoformat()}
    made = await create_series(organiser, "FREQ=WEEKLY;COUNT=4", timeZone="UTC", **times)
    if act == "update":
        await update_series(organiser, made["slots"][2], "ALL", title="Pilates")
        assert unlike(made["slots"], await fetch_series_slots(ada, made)) == [2, 3]
    else:
        await cancel_series(organiser, made["slots"][2], "ALL")
        assert await fetch_series_slots(ada, made) == made["slots"][:2]


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_series_is_called_off_in_its_scope_and_all_are_told(
    clients: tuple[BookingClient, BookingClient], scope: str
) -> None:
    ada, organiser = clients
    made = await create_series(organiser)
    for slot in made["slots"]:
        await book_with_refusal(ada, slot["id"])
    assert (await cancel_series(organiser, made["slots"][1], scope))["status"] == "CANCELLED"
    off = [slot["id"] for slot in await fetch_series_slots(organiser, made, "CANCELLED")]
    assert off == [made["slots"][n]["id"] for n in SCOPES[scope]]
    told = [(await ada.fetch_slot(slot["id"]))["myBooking"]["status"] for slot in made["slots"]]
    assert told == ["CANCELLED" if n in SCOPES[scope] else "CONFIRMED" for n in range(4)]


async def test_what_was_called_off_stays_so_when_the_rest_changes(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    made = await create_series(organiser)
    off = await cancel_series(organiser, made["slots"][2], "THIS")
    told = await update_series(organiser, made["slots"][0], "ALL", title="Pilates")
    assert told["title"] == "Pilates"
    assert await fetch_series_slots(organiser, made, "CANCELLED") == [
        {name: value for name, value in off.items() if name != "__typename"}
    ]
    told = await update_series(organiser, made["slots"][2], "ALL", title="Ballet")
    assert told["code"] == "SLOT_CANCELLED"
    assert {slot["title"] for slot in await fetch_series_slots(organiser, made)} == {"Pilates"}
    assert (await cancel_series(organiser, made["slots"][2], "ALL"))["status"] == "CANCELLED"
    assert await fetch_series_slots(organiser, made) == []


async def test_drafts_of_a_series_are_published_together_if_their_resource_is_free(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organiser = clients
    hall = room()
    made = await create_series(organiser, resource=hall, draft=True)
    taken = {"startTime": "2031-04-07T09:00:00+02:00", "endTime": "2031-04-07T10:00:00+02:00"}
    other_id = await organiser.add_slot(resource=hall, **taken)
    first = made["slots"][0]["id"]
    told = await organiser.execute(PUBLISH_SERIES, slot=first, scope="ALL")
    assert (told["__typename"], told["other"]["id"]) == ("ResourceTaken", other_id)
    assert await fetch_series_slots(ada, made) == []
    await organiser.cancel_slot(other_id)
    assert (await organiser.execute(PUBLISH_SERIES, slot=first, scope="ALL"))[
        "status"
    ] == "PUBLISHED"
    assert start_times(await fetch_series_slots(ada, made)) == STARTS


async def test_a_slot_that_is_no_part_of_a_series_is_changed_by_itself_in_any_scope(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organiser = clients
    slot = {"id": await organiser.add_slot()}
    for scope in SCOPES:
        assert (await update_series(organiser, slot, scope, title=scope))["title"] == scope
