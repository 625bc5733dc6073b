"""Courses from a file over HTTP: all rows or none, and an export that changes nothing."""

import csv
from collections.abc import AsyncIterator
from io import BytesIO, StringIO

import httpx
import openpyxl
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.exports import create_resources, csv_rows, download_export
from tests.support.clients.series import set_periods

# Of a course system: a table of courses, one of their weekly lessons, and one of their places.
COURSES = """\
课程编号;课程名称;教师;教室;星期;开始日期;结束日期;开始时间;结束时间;名额;电话
K1;象棋;王老师;201;周二、周四;2035-09-04;2035-12-20;13:30;15:00;12;-
K2;篮球;;;周三;2035-09-05;2035-12-20;13:30;15:00;20;-
K3;Reise;;;;2035-10-01;;8:00;18:00;30;-
"""
CREATE = "&createResources=true"
PERIODS: list[Json] = [
    {"name": "3", "startTime": "10:05", "endTime": "10:50"},
    {"name": "4", "startTime": "10:55", "endTime": "11:40", "weekdays": ["TUESDAY", "FRIDAY"]},
]
LESSONS = """\
number,title,first_day,last_day,weekly,period,places
1,Chess,2035-09-04,2035-09-18,Tue,3,12
2,Choir,2035-09-04,2035-09-18,周二第4节,,12
"""
PUBLISH = "mutation($id: ID!) { publishSlot(slotId: $id) { __typename } }"
SLOTS = """query($campaign: ID!, $status: SlotStatus!) {
  slots(first: 20, filter: {campaignId: $campaign, status: $status}) {
  nodes { id number title status capacity startTime resources { name kind }
    meetings { startTime } } } }"""


async def post_slots(
    client: BookingClient, campaign: str, body: str | bytes, query: str = ""
) -> httpx.Response:
    """Send a file of courses and return the response, which must not be an internal error."""
    response = await client.http.post(
        f"{client.url}/slots/import?campaign={campaign}&timeZone=Europe/Berlin{query}",
        content=body,
        headers={**client.headers, "Content-Type": "text/csv"},
    )
    assert response.status_code < 500, response.text
    return response


async def import_slots(
    client: BookingClient, campaign: str, body: str | bytes, query: str = ""
) -> dict[str, int]:
    """Import a valid file, and return the numbers of slots that are not 0."""
    response = await post_slots(client, campaign, body, query)
    assert response.status_code == 200, response.text
    report: Json = response.json()
    names = ("created", "updated", "unchanged", "notInFile")
    return {name: report[name] for name in names if report[name]}


async def slots_of(client: BookingClient, campaign: str) -> dict[str, Json]:
    """Return the slots of a campaign by number."""
    statuses = ("DRAFT", "PUBLISHED")
    found = [await client.execute(SLOTS, campaign=campaign, status=each) for each in statuses]
    return {each["number"]: each for page in found for each in page["nodes"]}


async def test_a_file_makes_drafts_and_the_same_file_changes_nothing(
    organizer: BookingClient,
) -> None:
    campaign = await create_campaign(organizer)
    response = await post_slots(organizer, campaign, COURSES, "&dryRun=true&createResources=true")
    assert response.json() == {
        "dryRun": True,
        "created": 3,
        "updated": 0,
        "unchanged": 0,
        "notInFile": 0,
        "newResources": [
            {"name": "王老师", "kind": "STAFF"},
            {"name": "201", "kind": "ROOM"},
        ],
        "ignoredColumns": ["电话"],
        "preview": [
            {
                "line": line,
                "number": number,
                "title": title,
                "startTime": f"2035-{start}:00.000Z",
                "timeZone": "Europe/Berlin",
                "meetingCount": count,
                "changed": [],
            }
            for line, number, title, start, count in (
                (2, "K1", "象棋", "09-04T11:30", 32),
                (3, "K2", "篮球", "09-05T11:30", 16),
                (4, "K3", "Reise", "10-01T06:00", 1),
            )
        ],
    }
    assert await slots_of(organizer, campaign) == {}
    assert await import_slots(organizer, campaign, COURSES, CREATE) == {"created": 3}
    slots = await slots_of(organizer, campaign)
    assert {each["status"] for each in slots.values()} == {"DRAFT"}
    assert [each["name"] for each in slots["K1"]["resources"]] == ["王老师", "201"]
    assert len(slots["K1"]["meetings"]) == 32
    assert await import_slots(organizer, campaign, COURSES) == {"unchanged": 3}
    export = await download_export(organizer, f"campaigns/{campaign}/slots.csv")
    assert [row["number"] for row in csv_rows(export)] == ["K1", "K2", "K3"]
    assert await import_slots(organizer, campaign, export) == {"unchanged": 3}
    assert await slots_of(organizer, campaign) == slots
    edited = export.replace("篮球".encode(), "足球".encode())
    response = await post_slots(organizer, campaign, edited, "&dryRun=true")
    (preview,) = response.json()["preview"]
    assert (preview["line"], preview["number"], preview["changed"]) == (3, "K2", ["title"])
    assert await import_slots(organizer, campaign, edited) == {"updated": 1, "unchanged": 2}
    changed = await slots_of(organizer, campaign)
    assert [number for number, slot in changed.items() if slot != slots[number]] == ["K2"]


async def test_a_workbook_has_the_cells_of_the_csv_file_as_texts(organizer: BookingClient) -> None:
    campaign = await create_campaign(organizer)
    courses = COURSES.replace("K1", "0012").replace("象棋", "=1+1 _x0041_").replace("电话", "简介")
    await import_slots(organizer, campaign, courses.replace(";-", ';"a\n\n- b"'), CREATE)
    content, text = [
        await download_export(organizer, f"campaigns/{campaign}/slots.{each}?language=de")
        for each in ("xlsx", "csv")
    ]
    (sheet,) = openpyxl.load_workbook(BytesIO(content)).worksheets
    rows = [*csv.reader(StringIO(text.decode("utf-8-sig"), newline=""))]
    shown = [[cell.value or "" for cell in row] for row in sheet.iter_rows()]
    assert shown == [[cell.replace("'=", "=") for cell in row] for row in rows]
    assert rows[0][:5] == ["Id", "Nummer", "Titel", "Beschreibung", "Erster Tag"]
    assert {cell.number_format for row in sheet.iter_rows(2) for cell in row if cell.value} == {"@"}
    # A page sends the rows of a workbook as lines, with U+2028 within a cell.
    lines = StringIO()
    csv.writer(lines).writerows([cell.replace("\n", "\u2028") for cell in row] for row in rows)
    assert await import_slots(organizer, campaign, lines.getvalue().encode()) == {"unchanged": 3}


async def test_one_wrong_line_imports_nothing(organizer: BookingClient) -> None:
    campaign = await create_campaign(organizer)
    response = await post_slots(organizer, campaign, COURSES.replace("2035-10-01", "1.10.35x"))
    assert response.status_code == 422
    body = response.json()
    assert body["code"] == "INVALID_FILE", body
    assert [(each["line"], each["column"], each["header"], each["code"])
            for each in body["problems"]] == [
        (4, "first_day", "开始日期", "INVALID_DATE"),
    ]  # fmt: skip
    unknown = COURSES.replace("王老师", "Zq").replace("201", "Xy")
    problems = (await post_slots(organizer, campaign, unknown)).json()["problems"]
    assert [(each["line"], each["code"]) for each in problems] == [
        (2, "UNKNOWN_RESOURCE"),
        (2, "UNKNOWN_RESOURCE"),
    ]
    assert await slots_of(organizer, campaign) == {}


async def test_numbers_can_be_exchanged_and_places_go_to_those_who_wait(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    campaign = await create_campaign(organizer)
    text = "number;title;date;start time;end time;places\nA;a;1.9.2035;8:00;9:00;1\n"
    text += "B;b;2.9.2035;8:00;9:00;1\n"
    assert await import_slots(organizer, campaign, text) == {"created": 2}
    slots = await slots_of(organizer, campaign)
    slot_id, other_id = (slots[number]["id"] for number in "AB")
    await organizer.execute(PUBLISH, id=slot_id)
    await ada.book_slot(slot_id)
    await ben.join(slot_id)
    rows = f"id;number;places\n{slot_id};B;2\n{other_id};A;1\n"
    assert await import_slots(organizer, campaign, rows, "&dryRun=true") == {"updated": 2}
    assert await import_slots(organizer, campaign, rows) == {"updated": 2}
    after = await slots_of(organizer, campaign)
    assert (after["A"]["id"], after["B"]["id"]) == (other_id, slot_id)
    roster = csv_rows(await download_export(organizer, f"slots/{slot_id}.csv"))
    assert [row["status"] for row in roster] == ["CONFIRMED", "CONFIRMED"]
    fewer = await post_slots(organizer, campaign, f"id;places\n{slot_id};1\n")
    (problem,) = fewer.json()["problems"]
    assert (problem["code"], problem["values"]) == ("CAPACITY_BELOW_TAKEN", {"count": 2})


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("campaign=campaign_" + "0" * 24, 404),
        ("campaign=slot_x", 400),
        ("", 400),
        ("campaign=campaign_" + "0" * 24 + "&timeZone=Berlin", 400),
        ("campaign=campaign_" + "0" * 24 + "&dryRun=yes", 400),
        ("campaign=campaign_" + "0" * 24 + "&dryrun=true", 400),
    ],
)
async def test_a_wrong_request_imports_nothing(
    organizer: BookingClient, query: str, status: int
) -> None:
    url = f"{organizer.url}/slots/import?{query}"
    headers = {**organizer.headers, "Content-Type": "text/csv"}
    response = await organizer.http.post(url, content=COURSES, headers=headers)
    assert response.status_code == status, response.text


async def test_an_export_names_the_kinds_of_resources(organizer: BookingClient) -> None:
    campaign = await create_campaign(organizer)
    await create_resources(organizer, "Beamer fi")
    text = "number;title;date;start time;end time;places;equipment\n"
    text += "A;a;1.9.2035;8:00;9:00;1;beamer FI\n"
    assert await import_slots(organizer, campaign, text) == {"created": 1}
    (row,) = csv_rows(await download_export(organizer, f"campaigns/{campaign}/slots.csv"))
    assert (row["resources"], row["teacher"], row["first_day"]) == ("Beamer fi", "", "2035-09-01")


@pytest.fixture
async def no_periods(organizer: BookingClient) -> AsyncIterator[None]:
    """Leave no periods to other tests."""
    yield
    await set_periods(organizer)


@pytest.mark.usefixtures("no_periods")
async def test_a_file_names_periods_and_rosters_name_them_again(organizer: BookingClient) -> None:
    campaign = await create_campaign(organizer)
    refused = (await post_slots(organizer, campaign, LESSONS)).json()
    assert [(each["column"], each["code"]) for each in refused["problems"]] == [
        ("period", "UNKNOWN_PERIOD"),
        ("weekly", "UNKNOWN_PERIOD"),
    ]
    await set_periods(organizer, *PERIODS)
    assert await import_slots(organizer, campaign, LESSONS) == {"created": 2}
    assert await import_slots(organizer, campaign, LESSONS) == {"unchanged": 2}
    slots = await slots_of(organizer, campaign)
    starts = {number: each["startTime"] for number, each in slots.items()}
    assert starts == {"1": "2035-09-04T08:05:00.000Z", "2": "2035-09-04T08:55:00.000Z"}
    await organizer.execute(PUBLISH, id=slots["2"]["id"])
    await organizer.book_slot(slots["2"]["id"])
    [row] = csv_rows(await download_export(organizer, f"campaigns/{campaign}.csv"))
    assert (row["number"], row["periods"]) == ("2", "Tue 4")
    # An export has times, which another list of periods does not move.
    exported = await download_export(organizer, f"campaigns/{campaign}/slots.csv")
    assert [each["period"] for each in csv_rows(exported)] == ["", ""]
    assert await set_periods(organizer, {**PERIODS[0], "endTime": "11:00"}) == 2
    assert await import_slots(organizer, campaign, exported) == {"unchanged": 2}
