"""Courses over HTTP: their timetables, what is wrong with some, and courses that overlap."""

from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import book_with_refusal, create_campaign
from tests.support.clients.client import GraphQLTestClient, Json

COURSE = """fragment K on Slot {
  id title startTime endTime timeZone version meetings { startTime endTime } resource
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


@pytest.fixture
async def clients(app: AppProcess, http: httpx.AsyncClient) -> tuple[BookingClient, BookingClient]:
    """A member and an organiser."""
    (ada,), organizer = await create_booking_clients(http, 1, app)
    return ada, organizer


async def course(organizer: GraphQLTestClient, timetable: Json = MARCH, **fields: Any) -> Json:
    """What came of creating a course in Berlin."""
    given = {"title": "Choir", "kind": "COURSE", "timeZone": "Europe/Berlin", **fields}
    made: Json = await organizer.execute(CREATE, input={**given, "timetable": timetable})
    return made


async def edited(organizer: GraphQLTestClient, slot_id: str, **changes: Any) -> Json:
    """What came of changing a course."""
    made: Json = await organizer.execute(UPDATE, input={"slotId": slot_id, **changes})
    return made


def starts(slot: Json) -> list[str]:
    """When the meetings of a course begin, UTC."""
    assert slot["__typename"] == "Slot", slot
    return [meeting["startTime"][5:16] for meeting in slot["meetings"]]


def named(told: Json) -> list[str]:
    """The fields that are named as wrong."""
    assert told["__typename"] == "InvalidInput", told
    return [problem["field"] for problem in told["fields"]]


async def test_a_course_meets_by_the_clock_on_the_wall_over_a_clock_change(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organizer = clients
    made = await course(organizer)
    assert starts(made) == STARTS
    assert made["startTime"] == made["meetings"][0]["startTime"] == "2031-03-17T08:00:00.000Z"
    assert made["endTime"] == made["meetings"][-1]["endTime"] == "2031-04-07T08:30:00.000Z"
    del made["__typename"]
    assert await ada.execute(READ, id=made["id"]) == made


async def test_a_course_leaves_holidays_out_and_meets_besides(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    extra = [{"startTime": "2031-03-24T18:00:00+01:00", "endTime": "2031-03-24T20:00:00+01:00"}]
    extra += [{"startTime": "2031-06-01T10:00:00+02:00", "endTime": "2031-06-01T16:00:00+02:00"}]
    made = await course(organizer, {**MARCH, "holidays": ["2031-03-24"], "extra": extra})
    expected = ["03-17T08:00", "03-24T17:00", "03-31T07:00", "04-07T07:00", "06-01T08:00"]
    assert starts(made) == expected
    assert made["endTime"] == "2031-06-01T14:00:00.000Z"


async def test_a_night_class_ends_on_the_next_day(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    night = {"weekday": "SATURDAY", "startTime": "22:00", "endTime": "06:00:30"}
    made = await course(organizer, {**MARCH, "weekly": [night], "last": "2031-03-31"})
    times = [(meeting["startTime"], meeting["endTime"]) for meeting in made["meetings"]]
    assert times == [
        ("2031-03-22T21:00:00.000Z", "2031-03-23T05:00:30.000Z"),
        ("2031-03-29T21:00:00.000Z", "2031-03-30T04:00:30.000Z"),
    ]


async def test_a_slot_that_is_no_course_meets_once(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    slot_id = await organizer.add_slot(startTime=NINE, endTime=TEN)
    meetings = (await organizer.execute(READ, id=slot_id))["meetings"]
    assert meetings == [{"startTime": NINE, "endTime": TEN}]


def weekly(**fields: Any) -> Json:
    """The timetable with another weekly meeting."""
    return {**MARCH, "weekly": [{**MONDAY_NINE, **fields}]}


ONCE = {"startTime": NINE, "endTime": TEN}
WRONG: list[tuple[str, Json, list[str]]] = [
    ("the last day before the first", {**MARCH, "last": "2031-03-16"}, ["last"]),
    ("over two years", {**MARCH, "last": "2033-03-20"}, ["last"]),
    ("too early a year", {**MARCH, "first": "1969-12-31", "last": "1970-01-01"}, ["first"]),
    ("too late a year", {**MARCH, "first": "2090-12-31", "last": "2091-01-01"}, ["last"]),
    ("no meeting at all", {**MARCH, "weekly": []}, ["weekly"]),
    (
        "nothing but a holiday",
        {**MARCH, "last": "2031-03-18", "holidays": ["2031-03-17"]},
        ["weekly"],
    ),
    ("no duration", weekly(endTime="09:00"), ["weekly"]),
    ("too many a week", {**MARCH, "weekly": [MONDAY_NINE] * 51}, ["weekly"]),
    ("the same twice", {**MARCH, "weekly": [MONDAY_NINE] * 2}, ["weekly"]),
    (
        "extra beside weekly",
        {
            **MARCH,
            "extra": [
                {"startTime": "2031-03-17T09:00:00+01:00", "endTime": "2031-03-17T12:00:00+01:00"}
            ],
        },
        ["weekly"],
    ),
    ("extra ends first", {**MARCH, "extra": [{"startTime": TEN, "endTime": NINE}]}, ["extra"]),
    ("extra of no duration", {**MARCH, "extra": [{"startTime": NINE, "endTime": NINE}]}, ["extra"]),
    ("extra twice", {**MARCH, "extra": [ONCE, ONCE]}, ["weekly"]),
    ("several", {**weekly(endTime="09:00"), "last": "2030-01-01"}, ["last", "weekly"]),
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


@pytest.mark.parametrize(("timetable", "fields"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
async def test_what_cannot_be_a_timetable_is_named_and_nothing_changes(
    clients: tuple[BookingClient, BookingClient], timetable: Json, fields: list[str]
) -> None:
    _, organizer = clients
    assert named(await course(organizer, timetable)) == fields
    before = await course(organizer)
    assert named(await edited(organizer, before["id"], timetable=timetable)) == fields
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
async def test_what_is_no_date_or_time_is_an_error(
    clients: tuple[BookingClient, BookingClient], wrong: Json
) -> None:
    given = {"title": "Choir", "timetable": wrong}
    assert await clients[1].error_code(CREATE, input=given) == "BAD_USER_INPUT"


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
async def test_a_slot_has_a_start_and_an_end_or_a_timetable(
    clients: tuple[BookingClient, BookingClient], times: Json, wrong: str | None
) -> None:
    told = await clients[1].execute(CREATE, input={"title": "Choir", **times})
    if wrong is None:
        assert told["__typename"] == "Slot"
    else:
        assert named(told) == [wrong]


async def test_a_course_gets_another_timetable_and_keeps_its_bookings(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organizer = clients
    made = await course(organizer)
    booking_id = (await book_with_refusal(ada, made["id"]))["booking"]["id"]
    tuesday = weekly(weekday="TUESDAY")
    after = await edited(organizer, made["id"], timetable=tuesday)
    assert starts(after) == ["03-18T08:00", "03-25T08:00", "04-01T07:00"]
    assert (after["startTime"], after["version"]) == ("2031-03-18T08:00:00.000Z", 3)
    assert (await ada.fetch_booking(booking_id))["status"] == "CONFIRMED"
    in_tokyo = await edited(organizer, made["id"], timetable=tuesday, timeZone="Asia/Tokyo")
    assert starts(in_tokyo) == ["03-18T00:00", "03-25T00:00", "04-01T00:00"]


async def test_a_course_becomes_a_slot_that_meets_once_and_a_course_again(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    slot_id = (await course(organizer))["id"]
    assert named(await edited(organizer, slot_id, startTime=NINE)) == ["startTime"]
    both = await edited(organizer, slot_id, timetable=MARCH, startTime=NINE, endTime=TEN)
    assert named(both) == ["timetable"]
    once = await edited(organizer, slot_id, timetable=None, startTime=NINE, endTime=TEN)
    assert once["meetings"] == [{"startTime": NINE, "endTime": TEN}]
    assert starts(await edited(organizer, slot_id, timetable=MARCH)) == STARTS


async def test_other_changes_of_a_course_leave_its_meetings_alone(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    slot_id = (await course(organizer))["id"]
    changed = await edited(organizer, slot_id, title="Band", capacity=9, timeZone="UTC")
    assert (changed["title"], starts(changed)) == ("Band", STARTS)


async def test_courses_overlap_if_one_of_their_meetings_does(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    ada, organizer = clients
    campaign_id = await create_campaign(organizer, forbidOverlap=True)
    here: Json = {"campaignId": campaign_id}
    choir = (await course(organizer, **here))["id"]
    assert (await book_with_refusal(ada, choir))["__typename"] == "Booked"
    late = weekly(startTime="10:30", endTime="12:00")
    beside = (await course(organizer, late, **here))["id"]
    utc = (
        await course(organizer, weekly(startTime="07:00", endTime="08:00"), timeZone="UTC", **here)
    )["id"]
    told = await book_with_refusal(ada, utc)  # nine in Berlin, once the clocks went forward
    assert (told["__typename"], told["meeting"]["startTime"][5:16]) == ("TimeConflict", STARTS[2])
    assert told["otherMeeting"]["startTime"][5:16] == STARTS[2]
    once = {"startTime": "2031-03-24T08:00:00Z", "endTime": "2031-03-24T08:01:00Z"}
    one_day = await organizer.add_slot(**once, **here)
    assert (await book_with_refusal(ada, one_day))["otherMeeting"]["startTime"][5:16] == STARTS[1]
    between = {"startTime": "2031-03-25T08:00:00Z", "endTime": "2031-03-30T08:00:00Z"}
    assert (await book_with_refusal(ada, await organizer.add_slot(**between, **here)))[
        "__typename"
    ] == "Booked"
    assert (await book_with_refusal(ada, beside))["__typename"] == "Booked"
