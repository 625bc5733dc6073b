"""Changing and cancelling slots of a series: all slots in the scope of a change, or none."""

import secrets

import pytest

from tests.support.clients.campaigns import book_with_refusal
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Two
from tests.support.clients.series import (
    MONDAY_TIMES,
    PUBLISH_SERIES,
    cancel_series,
    create_series,
    fetch_series_slots,
    start_times,
    update_series,
)

MEMBER_COUNT = 1


STARTS = ["03-17T08:00", "03-24T08:00", "03-31T07:00", "04-07T07:00"]
SECOND_AT_TEN = {"startTime": "2031-03-24T10:00:00+01:00", "endTime": "2031-03-24T11:30:00+01:00"}
COURSE = {
    "first": "2031-03-17",
    "last": "2031-03-24",
    "weekly": [{"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:00"}],
}
SCOPES = {"THIS": [1], "THIS_AND_FOLLOWING": [1, 2, 3], "ALL": [0, 1, 2, 3]}


def new_resource() -> str:
    """Return a resource that no slot uses yet."""
    return f"Room {secrets.token_hex(4)}"


def changed_indexes(before: list[Json], after: list[Json]) -> list[int]:
    """Return the indexes of the slots that changed."""
    return [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_change_applies_to_the_slots_in_its_scope(clients: Two, scope: str) -> None:
    ada, organizer = clients
    series = await create_series(organizer)
    outcome = await update_series(organizer, series["slots"][1], scope, title="Pilates", capacity=4)
    assert (outcome["id"], outcome["title"]) == (series["slots"][1]["id"], "Pilates")
    after = await fetch_series_slots(ada, series)
    assert changed_indexes(series["slots"], after) == SCOPES[scope]
    changed = [(after[n]["title"], after[n]["remaining"]) for n in SCOPES[scope]]
    assert set(changed) == {("Pilates", 4)}


async def test_all_slots_move_by_as_many_days_as_the_changed_one(clients: Two) -> None:
    ada, organizer = clients
    resource = new_resource()
    series = await create_series(organizer, "FREQ=DAILY;COUNT=4", resource=resource)
    next_day = {"startTime": "2031-03-19T09:00:00+01:00", "endTime": "2031-03-19T10:00:00+01:00"}
    outcome = await update_series(organizer, series["slots"][1], "ALL", **next_day)
    assert outcome["__typename"] == "Slot", outcome  # each moves to the next day
    moved = ["03-18T08:00", "03-19T08:00", "03-20T08:00", "03-21T08:00"]
    assert start_times(await fetch_series_slots(ada, series)) == moved
    # The second slot would overlap the first one, which does not move with the others.
    outcome = await update_series(
        organizer, series["slots"][1], "THIS_AND_FOLLOWING", **MONDAY_TIMES
    )
    assert (outcome["code"], outcome["other"]["id"]) == ("RESOURCE_TAKEN", series["slots"][0]["id"])
    assert start_times(await fetch_series_slots(ada, series)) == moved


@pytest.mark.parametrize(
    ("scope", "moved"),
    [
        ("THIS", ["03-17T08:00", "03-24T13:00", "03-31T07:00", "04-07T07:00"]),
        ("THIS_AND_FOLLOWING", ["03-17T08:00", "03-24T13:00", "03-31T13:00", "04-07T13:00"]),
        ("ALL", ["03-17T13:00", "03-24T13:00", "03-31T13:00", "04-07T13:00"]),
    ],
)
async def test_nine_in_the_old_zone_becomes_nine_in_the_new_one_on_each_date(
    clients: Two, scope: str, moved: list[str]
) -> None:
    _, organizer = clients
    series = await create_series(organizer)
    assert start_times(series["slots"]) == STARTS
    nine = {"startTime": "2031-03-24T09:00:00-04:00", "endTime": "2031-03-24T10:30:00-04:00"}
    new_york = {"timeZone": "America/New_York", **nine}
    outcome = await update_series(organizer, series["slots"][1], scope, **new_york)
    assert outcome["__typename"] == "Slot", outcome
    after = await fetch_series_slots(organizer, series)
    assert start_times(after) == moved
    ends = [slot["endTime"][11:16] for slot in after]
    assert [ends[n] for n in SCOPES[scope]] == ["14:30"] * len(SCOPES[scope])
    # Back to Berlin, each slot from the clock of its own zone.
    berlin = {"timeZone": "Europe/Berlin", **SECOND_AT_TEN}
    await update_series(organizer, series["slots"][1], "ALL", **berlin)
    ten = ["03-17T09:00", "03-24T09:00", "03-31T08:00", "04-07T08:00"]
    assert start_times(await fetch_series_slots(organizer, series)) == ten


async def test_bookings_survive_a_change_of_their_series(clients: Two) -> None:
    ada, organizer = clients
    series = await create_series(organizer)
    booking_id = (await book_with_refusal(ada, series["slots"][2]["id"]))["booking"]["id"]
    await update_series(organizer, series["slots"][1], "ALL", **SECOND_AT_TEN)
    slot = await ada.fetch_slot(series["slots"][2]["id"])
    assert (slot["myBooking"]["id"], slot["remaining"]) == (booking_id, 0)


@pytest.mark.parametrize("scope", ["THIS_AND_FOLLOWING", "ALL"])
async def test_no_slot_changes_if_one_has_more_bookings_than_the_new_capacity(
    clients: Two, scope: str
) -> None:
    ada, organizer = clients
    series = await create_series(organizer, capacity=3)
    last = series["slots"][3]["id"]
    for client in (ada, organizer):
        await book_with_refusal(client, last)
    before = await fetch_series_slots(organizer, series)
    outcome = await update_series(organizer, series["slots"][1], scope, capacity=1, title="Small")
    assert (outcome["__typename"], outcome["code"]) == (
        "CapacityBelowTaken",
        "CAPACITY_BELOW_TAKEN",
    )
    assert await fetch_series_slots(organizer, series) == before
    assert (await update_series(organizer, series["slots"][1], scope, capacity=2))["capacity"] == 2


@pytest.mark.parametrize("scope", ["THIS_AND_FOLLOWING", "ALL"])
async def test_no_slot_moves_if_the_resource_of_one_is_taken(clients: Two, scope: str) -> None:
    _, organizer = clients
    resource = new_resource()
    series = await create_series(organizer, resource=resource)
    taken = {"startTime": "2031-04-07T10:15:00+02:00", "endTime": "2031-04-07T10:45:00+02:00"}
    other_id = await organizer.add_slot(resource=resource, **taken)
    outcome = await update_series(organizer, series["slots"][1], scope, **SECOND_AT_TEN)
    assert (outcome["code"], outcome["other"]["id"]) == ("RESOURCE_TAKEN", other_id)
    assert outcome["meeting"]["startTime"][5:16] == "04-07T08:00"
    assert await fetch_series_slots(organizer, series) == series["slots"]
    assert (await update_series(organizer, series["slots"][1], "THIS", **SECOND_AT_TEN))[
        "resource"
    ] == resource


async def test_no_slot_changes_if_the_input_is_invalid(clients: Two) -> None:
    _, organizer = clients
    series = await create_series(organizer)
    slot = series["slots"][1]
    for wrong in ({"title": ""}, {"endTime": MONDAY_TIMES["startTime"]}, {"capacity": 0}):
        assert (await update_series(organizer, slot, "ALL", **wrong))[
            "__typename"
        ] == "InvalidInput"
    for course in (COURSE, None):
        outcome = await update_series(organizer, slot, "ALL", timetable=course)
        assert [problem["field"] for problem in outcome["fields"]] == ["timetable"]
    assert await fetch_series_slots(organizer, series) == series["slots"]


@pytest.mark.parametrize("scope", SCOPES)
async def test_cancelling_slots_in_a_scope_cancels_their_bookings(clients: Two, scope: str) -> None:
    ada, organizer = clients
    series = await create_series(organizer)
    for slot in series["slots"]:
        await book_with_refusal(ada, slot["id"])
    assert (await cancel_series(organizer, series["slots"][1], scope))["status"] == "CANCELLED"
    cancelled_ids = [
        slot["id"] for slot in await fetch_series_slots(organizer, series, "CANCELLED")
    ]
    assert cancelled_ids == [series["slots"][n]["id"] for n in SCOPES[scope]]
    statuses = [
        (await ada.fetch_slot(slot["id"]))["myBooking"]["status"] for slot in series["slots"]
    ]
    assert statuses == ["CANCELLED" if n in SCOPES[scope] else "CONFIRMED" for n in range(4)]


async def test_drafts_of_a_series_are_published_together_if_possible(clients: Two) -> None:
    ada, organizer = clients
    resource = new_resource()
    series = await create_series(organizer, resource=resource, draft=True)
    taken = {"startTime": "2031-04-07T09:00:00+02:00", "endTime": "2031-04-07T10:00:00+02:00"}
    other_id = await organizer.add_slot(resource=resource, **taken)
    first = series["slots"][0]["id"]
    outcome = await organizer.execute(PUBLISH_SERIES, slot=first, scope="ALL")
    assert (outcome["__typename"], outcome["other"]["id"]) == ("ResourceTaken", other_id)
    assert await fetch_series_slots(ada, series) == []
    await organizer.cancel_slot(other_id)
    assert (await organizer.execute(PUBLISH_SERIES, slot=first, scope="ALL"))[
        "status"
    ] == "PUBLISHED"
    assert start_times(await fetch_series_slots(ada, series)) == STARTS
