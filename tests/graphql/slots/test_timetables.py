"""Courses: valid and invalid timetables, changes of a timetable, and overlaps of courses."""

from typing import Any

import pytest

from tests.support.clients.campaigns import book_with_refusal
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Two

MEMBER_COUNT = 1


COURSE = """fragment K on Slot {
  id title startTime endTime timeZone version meetingCount meetings { startTime endTime } resource
}"""
CREATE = f"""mutation($input: CreateSlotInput!) {{ createSlot(input: $input) {{
  __typename ...K ... on InvalidInput {{ fields {{ field message }} }}
}} }} {COURSE}"""
UPDATE = f"""mutation($input: UpdateSlotInput!) {{ updateSlot(input: $input) {{
  __typename ...K ... on InvalidInput {{ fields {{ field message }} }}
}} }} {COURSE}"""
READ = f"query($id: ID!) {{ slot(id: $id) {{ ...K }} }} {COURSE}"

MONDAY_NINE = {"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:30"}
MARCH = {"first": "2031-03-17", "last": "2031-04-07", "weekly": [MONDAY_NINE]}
STARTS = ["03-17T08:00", "03-24T08:00", "03-31T07:00", "04-07T07:00"]
NINE, TEN = "2031-05-05T09:00:00.000Z", "2031-05-05T10:00:00.000Z"


async def create_course(
    organizer: GraphQLTestClient, timetable: Json = MARCH, **fields: Any
) -> Json:
    """Return the result of creating a course in Berlin."""
    slot = {"title": "Choir", "kind": "COURSE", "timeZone": "Europe/Berlin", **fields}
    created: Json = await organizer.execute(CREATE, input={**slot, "timetable": timetable})
    return created


async def update_course(organizer: GraphQLTestClient, slot_id: str, **changes: Any) -> Json:
    """Return the result of changing a course."""
    created: Json = await organizer.execute(UPDATE, input={"slotId": slot_id, **changes})
    return created


def starts(slot: Json) -> list[str]:
    """Return the start times of the meetings in UTC."""
    assert slot["__typename"] == "Slot", slot
    return [meeting["startTime"][5:16] for meeting in slot["meetings"]]


def invalid_fields(outcome: Json) -> list[str]:
    """Return the names of the invalid fields."""
    assert outcome["__typename"] == "InvalidInput", outcome
    return [problem["field"] for problem in outcome["fields"]]


async def test_a_course_skips_holidays_and_has_extra_meetings(clients: Two) -> None:
    _, organizer = clients
    extra = [{"startTime": "2031-03-24T18:00:00+01:00", "endTime": "2031-03-24T20:00:00+01:00"}]
    extra += [{"startTime": "2031-06-01T10:00:00+02:00", "endTime": "2031-06-01T16:00:00+02:00"}]
    created = await create_course(organizer, {**MARCH, "holidays": ["2031-03-24"], "extra": extra})
    expected = ["03-17T08:00", "03-24T17:00", "03-31T07:00", "04-07T07:00", "06-01T08:00"]
    assert starts(created) == expected
    assert created["endTime"] == "2031-06-01T14:00:00.000Z"
    assert created["meetingCount"] == 5


def weekly(**fields: Any) -> Json:
    """Return a timetable with a changed weekly meeting."""
    return {**MARCH, "weekly": [{**MONDAY_NINE, **fields}]}


ONCE = {"startTime": NINE, "endTime": TEN}
INVALID: list[tuple[str, Json, list[str]]] = [
    ("last day before the first", {**MARCH, "last": "2031-03-16"}, ["last"]),
    ("more than two years", {**MARCH, "last": "2033-03-20"}, ["last"]),
    ("year too early", {**MARCH, "first": "1969-12-31", "last": "1970-01-01"}, ["first"]),
    ("year too late", {**MARCH, "first": "2090-12-31", "last": "2091-01-01"}, ["last"]),
    ("no meeting", {**MARCH, "weekly": []}, ["weekly"]),
    ("only a holiday", {**MARCH, "last": "2031-03-18", "holidays": ["2031-03-17"]}, ["weekly"]),
    ("no duration", weekly(endTime="09:00"), ["weekly"]),
    ("too many per week", {**MARCH, "weekly": [MONDAY_NINE] * 51}, ["weekly"]),
    ("twice the same", {**MARCH, "weekly": [MONDAY_NINE] * 2}, ["weekly"]),
    (
        "extra overlaps weekly",
        {
            **MARCH,
            "extra": [
                {"startTime": "2031-03-17T09:00:00+01:00", "endTime": "2031-03-17T12:00:00+01:00"}
            ],
        },
        ["weekly"],
    ),
    (
        "extra ends before its start",
        {**MARCH, "extra": [{"startTime": TEN, "endTime": NINE}]},
        ["extra"],
    ),
    (
        "extra without duration",
        {**MARCH, "extra": [{"startTime": NINE, "endTime": NINE}]},
        ["extra"],
    ),
    ("extra twice", {**MARCH, "extra": [ONCE, ONCE]}, ["weekly"]),
    ("several problems", {**weekly(endTime="09:00"), "last": "2030-01-01"}, ["last", "weekly"]),
    (
        "more than 500 meetings",
        {
            "first": "2031-01-01",
            "last": "2032-12-31",
            "weekly": [
                {"weekday": day, "startTime": "09:00", "endTime": "10:00"}
                for day in ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY")
            ],
        },
        ["weekly"],
    ),
]


@pytest.mark.parametrize(
    ("timetable", "fields"), [w[1:] for w in INVALID], ids=[w[0] for w in INVALID]
)
async def test_an_invalid_timetable_is_reported_and_changes_nothing(
    clients: Two, timetable: Json, fields: list[str]
) -> None:
    _, organizer = clients
    assert invalid_fields(await create_course(organizer, timetable)) == fields
    before = await create_course(organizer)
    assert (
        invalid_fields(await update_course(organizer, before["id"], timetable=timetable)) == fields
    )
    after = await organizer.execute(READ, id=before["id"])
    assert after == {name: value for name, value in before.items() if name != "__typename"}


@pytest.mark.parametrize(
    "wrong",
    [
        weekly(weekday="SOMEDAY"),
        weekly(startTime="9:00"),
        weekly(startTime="24:00"),
        weekly(startTime="09:00+01:00"),
        {**MARCH, "first": "2031-02-29"},
        {**MARCH, "first": "17.3.2031"},
        {**MARCH, "holidays": ["2031-3-17"]},
        {**MARCH, "extra": [{"startTime": "2031-05-05T09:00:00", "endTime": TEN}]},
    ],
)
async def test_a_malformed_date_or_time_is_bad_user_input(clients: Two, wrong: Json) -> None:
    slot = {"title": "Choir", "timetable": wrong}
    assert await clients[1].error_code(CREATE, input=slot) == "BAD_USER_INPUT"


COMBINATIONS: list[tuple[Json, str | None]] = [
    ({"startTime": NINE, "endTime": TEN}, None),
    ({"timetable": MARCH}, None),
    ({}, "startTime"),
    ({"startTime": NINE}, "startTime"),
    ({"endTime": TEN}, "startTime"),
    ({"startTime": NINE, "endTime": TEN, "timetable": MARCH}, "timetable"),
    ({"startTime": NINE, "timetable": MARCH}, "startTime"),
    ({"endTime": TEN, "timetable": MARCH}, "startTime"),
    ({"startTime": TEN, "endTime": NINE}, "endTime"),
]


@pytest.mark.parametrize(("times", "wrong"), COMBINATIONS)
async def test_a_slot_has_either_a_start_and_an_end_or_a_timetable(
    clients: Two, times: Json, wrong: str | None
) -> None:
    outcome = await clients[1].execute(CREATE, input={"title": "Choir", **times})
    if wrong is None:
        assert outcome["__typename"] == "Slot"
    else:
        assert invalid_fields(outcome) == [wrong]


async def test_a_new_timetable_preserves_the_bookings(clients: Two) -> None:
    ada, organizer = clients
    created = await create_course(organizer)
    booking_id = (await book_with_refusal(ada, created["id"]))["booking"]["id"]
    tuesday = weekly(weekday="TUESDAY")
    after = await update_course(organizer, created["id"], timetable=tuesday)
    assert starts(after) == ["03-18T08:00", "03-25T08:00", "04-01T07:00"]
    assert (after["startTime"], after["version"]) == ("2031-03-18T08:00:00.000Z", 3)
    assert (await ada.fetch_booking(booking_id))["status"] == "CONFIRMED"
    in_tokyo = await update_course(
        organizer, created["id"], timetable=tuesday, timeZone="Asia/Tokyo"
    )
    assert starts(in_tokyo) == ["03-18T00:00", "03-25T00:00", "04-01T00:00"]


async def test_a_course_becomes_a_single_meeting_and_a_course_again(clients: Two) -> None:
    _, organizer = clients
    slot_id = (await create_course(organizer))["id"]
    assert invalid_fields(await update_course(organizer, slot_id, startTime=NINE)) == ["startTime"]
    both = await update_course(organizer, slot_id, timetable=MARCH, startTime=NINE, endTime=TEN)
    assert invalid_fields(both) == ["timetable"]
    once = await update_course(organizer, slot_id, timetable=None, startTime=NINE, endTime=TEN)
    assert once["meetings"] == [{"startTime": NINE, "endTime": TEN}]
    assert starts(await update_course(organizer, slot_id, timetable=MARCH)) == STARTS


MY_MEETINGS = """query($from: DateTime!, $until: DateTime!) {
  myMeetings(from: $from, until: $until) {
    startTime endTime slot { title } booking { status } waitlistEntry { position }
  }
}"""
WEEK = {"from": "2031-03-24T00:00:00Z", "until": "2031-03-31T00:00:00Z"}


async def test_my_meetings_of_a_week_are_those_of_bookings_and_waiting_list_entries(
    clients: Two,
) -> None:
    member, organizer = clients
    assert await member.execute(MY_MEETINGS, **WEEK) == []
    course = await create_course(organizer)
    full = await organizer.add_slot(
        title="Full", startTime="2031-03-25T08:00:00Z", endTime="2031-03-25T09:00:00Z"
    )
    other = await organizer.add_slot(
        title="Next week", startTime="2031-03-31T08:00:00Z", endTime="2031-03-31T09:00:00Z"
    )
    await organizer.book(full)
    assert (await member.join(full))["__typename"] == "WaitlistJoined"
    for slot_id in (course["id"], other):
        assert (await member.book(slot_id))["__typename"] == "Booked"
    choir, waiting = await member.execute(MY_MEETINGS, **WEEK)
    assert choir == {
        "startTime": "2031-03-24T08:00:00.000Z",
        "endTime": "2031-03-24T09:30:00.000Z",
        "slot": {"title": "Choir"},
        "booking": {"status": "CONFIRMED"},
        "waitlistEntry": None,
    }
    assert waiting["slot"] == {"title": "Full"}
    assert (waiting["booking"], waiting["waitlistEntry"]) == (None, {"position": 1})
    march = {"from": "2031-03-10T00:00:00Z", "until": "2031-04-10T00:00:00Z"}
    titles = [each["slot"]["title"] for each in await member.execute(MY_MEETINGS, **march)]
    assert titles == ["Choir", "Choir", "Full", "Choir", "Next week", "Choir"]


@pytest.mark.parametrize("until", ["2031-03-24T00:00:00Z", "2031-04-24T00:00:01Z"])
async def test_my_meetings_of_no_time_or_more_than_a_month_are_bad_user_input(
    clients: Two, until: str
) -> None:
    code = await clients[0].error_code(MY_MEETINGS, **{**WEEK, "until": until})
    assert code == "BAD_USER_INPUT"
