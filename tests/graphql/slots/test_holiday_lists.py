"""Lists of holidays over GraphQL, and the series and courses that skip their days."""

import asyncio
import json
import secrets
from typing import Any

import pytest

from slotlock.domain.schedule.holiday_files import MAX_ICS_LENGTH
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Two
from tests.support.clients.series import MONDAY_TIMES, start_times

MEMBER_COUNT = 1

LIST = """fragment L on HolidayList { id name holidays { first last name } }
fragment R on Refusal { code ... on InvalidInput { fields { field } } }"""
CREATE = f"""mutation($input: CreateHolidayListInput!) {{
  createHolidayList(input: $input) {{ __typename ...L ...R }}
}} {LIST}"""
UPDATE = f"""mutation($input: UpdateHolidayListInput!) {{
  updateHolidayList(input: $input) {{ __typename ...L ...R }}
}} {LIST}"""
DELETE = """mutation($id: ID!) { deleteHolidayList(holidayListId: $id) {
  __typename ... on HolidayListDeleted { holidayListId } ... on Refusal { code }
} }"""
CREATE_SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  __typename ... on SlotSeriesCreated { seriesId slots { startTime } skippedHolidays }
  ... on InvalidInput { fields { field } }
} }"""
ADD_DATES = """mutation($input: AddSeriesDatesInput!) { addSeriesDates(input: $input) {
  __typename ... on SeriesDatesAdded { slots { startTime } skippedHolidays }
  ... on InvalidInput { fields { field } }
} }"""
CREATE_COURSE = """mutation($input: CreateSlotInput!) { createSlot(input: $input) {
  __typename ... on Slot { id meetings { startTime } } ... on InvalidInput { fields { field } }
} }"""
UPDATE_COURSE = CREATE_COURSE.replace("createSlot(", "updateSlot(").replace(
    "CreateSlotInput", "UpdateSlotInput"
)
# Mondays at nine in Berlin: the second and the third one are holidays.
HOLIDAYS = [
    {"first": "2031-03-24", "name": "Inspection"},
    {"first": "2031-03-31", "last": "2031-04-04", "name": "Spring"},
]
ICS = (
    "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nBEGIN:VEVENT\nUID:1\n"
    "DTSTART;VALUE=DATE:20311225\nSUMMARY:Christmas\nEND:VEVENT\nEND:VCALENDAR\n"
)
YOGA = {"title": "Yoga", "timeZone": "Europe/Berlin"}
TIMETABLE = {
    "first": "2031-03-17",
    "last": "2031-04-07",
    "weekly": [{"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:00"}],
}


def new_name() -> str:
    """Return a name that no list has."""
    return f"School {secrets.token_hex(4)}"


async def create_list(organizer: GraphQLTestClient, **fields: Any) -> Json:
    """Create a list and return the result."""
    fields = {"name": new_name(), "holidays": HOLIDAYS} | fields
    created: Json = await organizer.execute(CREATE, input=fields)
    return created


async def test_a_list_is_created_changed_deleted_and_in_the_audit_log(clients: Two) -> None:
    ada, organizer = clients
    created = await create_list(organizer)
    name = created["name"]
    assert created["holidays"][0] == {**HOLIDAYS[0], "last": "2031-03-24"}
    again = await create_list(organizer, name=name.upper())
    assert (again["code"], again["fields"]) == ("INVALID_INPUT", [{"field": "name"}])
    changed = await organizer.execute(UPDATE, input={"holidayListId": created["id"], "ics": ICS})
    christmas = {"first": "2031-12-25", "last": "2031-12-25", "name": "Christmas"}
    assert changed == {**created, "holidays": [christmas]}
    both = {"name": new_name(), "ics": ICS, "holidays": HOLIDAYS}
    assert await organizer.error_code(CREATE, input=both) == "BAD_USER_INPUT"
    other = await create_list(organizer)
    renamed = {"holidayListId": other["id"], "name": name}
    assert (await organizer.execute(UPDATE, input=renamed))["code"] == "INVALID_INPUT"
    listed = await organizer.execute("{ holidayLists(first: 100) { nodes { id name } } }")
    assert {"id": created["id"], "name": name} in listed["nodes"]
    assert await ada.error_code("{ holidayLists { nodes { id } } }") == "FORBIDDEN"
    deleted = await organizer.execute(DELETE, id=created["id"])
    assert deleted["holidayListId"] == created["id"]
    assert (await organizer.execute(DELETE, id=created["id"]))["code"] == "HOLIDAY_LIST_NOT_FOUND"
    assert (await organizer.execute(UPDATE, input={"holidayListId": created["id"]}))["code"] == (
        "HOLIDAY_LIST_NOT_FOUND"
    )
    log = await organizer.execute(
        """{ auditLog(first: 10, filter: {
          actions: [HOLIDAY_LIST_CREATED, HOLIDAY_LIST_EDITED, HOLIDAY_LIST_DELETED]
        }) { nodes { action holidayListName edits { field before after } } } }"""
    )
    of_list = [each for each in log["nodes"] if each.pop("holidayListName") == name]
    before = "2031-03-24/2031-03-24 Inspection, 2031-03-31/2031-04-04 Spring"
    after = "2031-12-25/2031-12-25 Christmas"
    assert [(each["action"], each["edits"][-1]) for each in of_list] == [
        ("HOLIDAY_LIST_DELETED", {"field": "holidays", "before": after, "after": None}),
        ("HOLIDAY_LIST_EDITED", {"field": "holidays", "before": before, "after": after}),
        ("HOLIDAY_LIST_CREATED", {"field": "holidays", "before": None, "after": before}),
    ]


async def test_of_two_lists_with_one_name_at_once_one_is_created(clients: Two) -> None:
    _, organizer = clients
    name = new_name()
    created = await asyncio.gather(*(create_list(organizer, name=name) for _ in range(4)))
    assert sorted(each["__typename"] for each in created) == ["HolidayList"] + ["InvalidInput"] * 3


async def test_changes_of_the_name_and_of_the_holidays_at_once_both_happen(clients: Two) -> None:
    _, organizer = clients
    created = await create_list(organizer)
    name, days = new_name(), [{"first": "2031-05-01"}]
    changes: list[Json] = [{"name": name}, {"holidays": days}]
    named = ({"holidayListId": created["id"], **change} for change in changes)
    await asyncio.gather(*(organizer.execute(UPDATE, input=each) for each in named))
    after = await organizer.execute(UPDATE, input={"holidayListId": created["id"]})
    assert (after["name"], after["holidays"][0]["first"]) == (name, "2031-05-01")


@pytest.mark.parametrize("is_ascii", [True, False])
async def test_the_longest_file_fits_in_a_request_of_an_organizer_however_it_is_written(
    clients: Two, is_ascii: bool
) -> None:
    """JSON in ASCII has 12 bytes for a character beyond the basic plane."""

    async def send(client: GraphQLTestClient, length: int) -> tuple[int, str | None]:
        ics = ICS.replace("PRODID:x", "PRODID:" + "\N{SUN WITH FACE}" * (length - len(ICS) + 1))
        assert len(ics) == length
        body = {"query": CREATE, "variables": {"input": {"name": new_name(), "ics": ics}}}
        content = json.dumps(body, ensure_ascii=is_ascii).encode()
        headers = {**client.headers, "Content-Type": "application/json"}
        response = await client.http.post(f"{client.url}/graphql", content=content, headers=headers)
        data = response.json().get("data")
        return response.status_code, data and data["createHolidayList"]["__typename"]

    ada, organizer = clients
    assert await send(organizer, MAX_ICS_LENGTH) == (200, "HolidayList")
    assert await send(organizer, MAX_ICS_LENGTH + 1) == (200, "InvalidInput")
    assert await send(organizer, 11 * MAX_ICS_LENGTH) == (413, None)
    assert await send(ada, MAX_ICS_LENGTH) == (413, None)


async def test_a_series_and_new_dates_skip_the_holidays_of_a_list_and_name_them(
    clients: Two,
) -> None:
    _, organizer = clients
    list_id = (await create_list(organizer))["id"]
    series = {
        "slot": {**YOGA, **MONDAY_TIMES},
        "rrule": "FREQ=WEEKLY;COUNT=5",
        "holidays": ["2031-04-07", "2031-12-24"],
        "holidayListId": list_id,
        "idempotencyKey": secrets.token_hex(8),
    }
    created = await organizer.execute(CREATE_SERIES, input=series)
    assert start_times(created["slots"]) == ["03-17T08:00", "04-14T07:00"]
    assert created["skippedHolidays"] == ["2031-03-24", "2031-03-31", "2031-04-07"]
    assert await organizer.execute(CREATE_SERIES, input=series) == created
    # 22:30 in UTC is after midnight in the zone of the series.
    added = {
        "seriesId": created["seriesId"],
        "startTimes": ["2031-04-01T08:00:00Z", "2031-04-04T22:30:00Z", "2031-03-30T22:30:00Z"],
        "holidayListId": list_id,
        "idempotencyKey": secrets.token_hex(8),
    }
    dates = await organizer.execute(ADD_DATES, input=added)
    assert start_times(dates["slots"]) == ["04-04T22:30"]
    assert dates["skippedHolidays"] == ["2031-03-31", "2031-04-01"]
    assert await organizer.execute(ADD_DATES, input=added) == dates


async def test_a_course_skips_the_holidays_of_a_list(clients: Two) -> None:
    _, organizer = clients
    list_id = (await create_list(organizer))["id"]
    course = {**YOGA, "timetable": {**TIMETABLE, "holidayListId": list_id}}
    created = await organizer.execute(CREATE_COURSE, input=course)
    assert start_times(created["meetings"]) == ["03-17T08:00", "04-07T07:00"]
    longer = {**TIMETABLE, "last": "2031-04-14", "holidayListId": list_id}
    changed = await organizer.execute(
        UPDATE_COURSE, input={"slotId": created["id"], "timetable": longer}
    )
    assert start_times(changed["meetings"]) == ["03-17T08:00", "04-07T07:00", "04-14T07:00"]


async def test_a_list_that_does_not_exist_is_an_invalid_field(clients: Two) -> None:
    _, organizer = clients
    list_id = (await create_list(organizer))["id"]
    await organizer.execute(DELETE, id=list_id)
    for unknown in (list_id, "x"):
        course = {**YOGA, "timetable": {**TIMETABLE, "holidayListId": unknown}}
        refused = await organizer.execute(CREATE_COURSE, input=course)
        assert refused["fields"] == [{"field": "holidayListId"}]
        series = {"slot": {**YOGA, **MONDAY_TIMES}, "rrule": "FREQ=WEEKLY;COUNT=5"}
        series["holidayListId"] = unknown
        refused = await organizer.execute(CREATE_SERIES, input=series)
        assert refused["fields"] == [{"field": "holidayListId"}]
