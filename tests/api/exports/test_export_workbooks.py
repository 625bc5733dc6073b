"""Rosters as Excel workbooks: the summary, the sheets, their names and typed cells."""

import re
from datetime import UTC, datetime, timedelta
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slotlock.api.exports import workbook
from slotlock.api.exports.export_builder import ExportJob
from slotlock.api.exports.workbook import MAX_SHEET_NAME_LENGTH, RosterWorkbook, SheetNames
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import (
    COURSE,
    RosterUsers,
    csv_rows,
    download_export,
    load_workbook_bytes,
)
from tests.support.domain.builders import roster_of

BERLIN = ZoneInfo("Europe/Berlin")
TITLES = ["Course", "Start (local)", "End (local)", "Time zone", "Where", "Name",
          "Email or user name", "Classes and groups", "Status", "Reserved until (local)",
          "Booked at (local)", "Booked by",
          "Waiting since (local)", "Overridden limits", "Attendance",
          "Checked in at (local)", "Rooms and devices", "Meetings", "Number",
          "Periods", "Booked as", "Parents or guardians"]  # fmt: skip


async def download_workbook(organizer: BookingClient, path: str) -> Any:
    """Download the workbook of a slot or a campaign."""
    return load_workbook_bytes(await download_export(organizer, f"{path}.xlsx"))


async def test_a_workbook_has_a_summary_and_a_sheet_for_each_slot_with_typed_cells(
    users: RosterUsers,
) -> None:
    ada, ben, cleo, organizer = users
    campaign_id = await create_campaign(organizer)
    later = {**COURSE, "startTime": "2035-07-02T08:00:00Z", "endTime": "2035-07-02T09:00:00Z"}
    second = await organizer.add_slot(**later, campaignId=campaign_id, capacity=1)
    first = await organizer.add_slot(**COURSE, campaignId=campaign_id, capacity=5)
    hold = await ada.hold(first)
    await ben.book_slot(first)
    await ben.book_slot(second)
    await cleo.join(second)
    book = await download_workbook(organizer, f"campaigns/{campaign_id}")
    names = ["07-02 09.00 Schwimmen für Anfän", "07-02 10.00 Schwimmen für Anfän"]
    assert book.sheetnames == ["Summary", "Waiting lists", *names]
    summary = [[cell.value for cell in row] for row in book["Summary"].iter_rows()]
    assert summary[1][0:2] == [COURSE["title"], datetime(2035, 7, 2, 9)]  # noqa: DTZ001
    assert summary[1][5:] == ["PUBLISHED", 5, 1, 1, 0, 0, 3, names[0], *[None] * 4]
    assert summary[2][5:] == ["PUBLISHED", 1, 1, 0, 0, 1, 0, names[1], *[None] * 4]
    assert summary[3] == ["Total", *[None] * 5, 6, 2, 1, 0, 1, 3, *[None] * 5]
    assert [cell.data_type for cell in book["Summary"][2]][6:12] == ["n"] * 6
    sheet = book[names[0]]
    assert [cell.value for cell in sheet[1]] == TITLES
    assert all(cell.font.bold for cell in sheet[1])
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:V3"
    row = sheet[2]
    types = [*"sdd", *"ssssss", *"dd", *"nnn", "s", *"nnnnnnn"]
    assert [cell.data_type for cell in row] == types
    # Ada made the hold herself, did not wait and overrode no limit.
    assert [cell.value for cell in row[11:]] == [None, None, None, "NOT_RECORDED", *[None] * 7]
    assert row[1].number_format == "yyyy-mm-dd hh:mm:ss"
    held_until = datetime.fromisoformat(hold["heldUntil"]).astimezone(BERLIN).replace(tzinfo=None)
    assert abs(row[9].value - held_until) < timedelta(seconds=1)


# Parts of texts that a reader of workbooks could take for escapes or markup.
JOB = ExportJob("campaign", "", "xlsx", datetime(2030, 1, 1, tzinfo=UTC))
PARTS = ["_", "x", "_x0041_", "_x00e9", "0042_", "_x005F_", "_X0041_", "_xD800_", "<r>", "</r>",
         "<t>&amp;", "=1+1", "é", " "]  # fmt: skip


def unescape(cell: str) -> str:
    """Return the text of a cell as Excel reads it (ECMA-376, 22.9.2.19)."""
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), cell)


@settings(deadline=None, max_examples=3)  # each has many texts, because a workbook takes long
@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1).map("".join), min_size=50))
@example(["_x0041_x0042_", "__x0041__x0042__", "_x005F_x0041_", "<r>a</r>", "\x01_x0001_"])
def test_every_text_is_read_back_exactly(texts: list[str]) -> None:
    target = BytesIO()
    with TemporaryDirectory() as folder:
        workbook = RosterWorkbook(target, folder, JOB, sheet_per_slot=True)
        workbook.add(roster_of(texts[0], texts))
        workbook.close()
    *_, sheet = load_workbook_bytes(target.getvalue())
    rows = [[unescape(row[n].value) for n in (0, 5)] for row in sheet.iter_rows(min_row=2)]
    assert rows == [[texts[0], text] for text in texts]
    assert unescape(sheet.title) == sheet.title


def test_a_full_sheet_continues_in_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MAX_ROWS", 4)
    target, names = BytesIO(), [f"user {number}" for number in range(7)]
    with TemporaryDirectory() as folder:
        file = RosterWorkbook(target, folder, JOB, sheet_per_slot=False)
        file.add(roster_of("Yoga", names))
        file.close()
    sheets = [each for each in load_workbook_bytes(target.getvalue()) if "Book" in each.title]
    assert [each.max_row for each in sheets] == [4, 4, 2]
    assert all(each.auto_filter.ref for each in sheets)
    assert [row[5].value for each in sheets for row in each.iter_rows(min_row=2)] == names


async def test_csv_and_excel_have_the_same_content(users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    slot_id = await organizer.add_slot(**COURSE, capacity=5)
    await ada.hold(slot_id)
    await organizer.book_slot(slot_id, userId=await ben.fetch_user_id())
    rows = csv_rows(await download_export(organizer, f"slots/{slot_id}.csv"))
    sheet = (await download_workbook(organizer, f"slots/{slot_id}")).worksheets[2]
    for row, cells in zip(rows, sheet.iter_rows(min_row=2), strict=True):
        texts = [text for name, text in row.items() if name != "waiting_position"]
        for text, cell in zip(texts, cells, strict=True):
            value = cell.value
            if isinstance(value, datetime):
                value = value.replace(tzinfo=BERLIN).isoformat(timespec="seconds")
            assert text == (value or "")


async def test_the_totals_count_published_slots_as_the_statistics_do(users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    campaign_id = await create_campaign(organizer)
    await ada.book_slot(await organizer.add_slot(campaignId=campaign_id, capacity=4))
    cancelled = await organizer.add_slot(campaignId=campaign_id, capacity=3)
    await ben.book_slot(cancelled)
    await organizer.cancel_slot(cancelled)
    await organizer.add_slot(campaignId=campaign_id, capacity=2, draft=True)
    summary = (await download_workbook(organizer, f"campaigns/{campaign_id}"))["Summary"]
    assert [cell.value for cell in summary[5]][6:12] == [4, 1, 0, 1, 0, 3]


async def test_times_outside_the_calendar_of_excel_are_text(users: RosterUsers) -> None:
    organizer = users.organizer
    campaign_id = await create_campaign(organizer, published=False)
    for start, end in (
        ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"),
        ("1900-05-01T00:00:00Z", "1900-05-02T00:00:00Z"),
        ("9999-12-30T00:00:00Z", "9999-12-31T23:59:59Z"),
    ):
        for zone in ("America/New_York", "Pacific/Auckland"):
            await organizer.add_slot(
                startTime=start,
                endTime=end,
                timeZone=zone,
                draft=True,
                campaignId=campaign_id,
                allowPast=True,
            )
    assert csv_rows(await download_export(organizer, f"campaigns/{campaign_id}.csv")) == []
    summary = (await download_workbook(organizer, f"campaigns/{campaign_id}"))["Summary"]
    assert [cell.data_type for cell in summary["B"][1:7]] == [*"ssssdd"]


async def test_an_empty_campaign_has_a_file_without_rows(users: RosterUsers) -> None:
    organizer = users.organizer
    campaign_id = await create_campaign(organizer, published=False)
    assert csv_rows(await download_export(organizer, f"campaigns/{campaign_id}.csv")) == []
    book = await download_workbook(organizer, f"campaigns/{campaign_id}")
    assert book.sheetnames == ["Summary", "Waiting lists"]
    assert [cell.value for cell in book["Summary"][2]][6:12] == [0, 0, 0, 0, 0, 0]
    assert book.properties.created.replace(tzinfo=UTC) < datetime.now(UTC)


@given(st.lists(st.text(max_size=40), max_size=12))
def test_every_title_gives_a_unique_sheet_name_that_excel_accepts(titles: list[str]) -> None:
    names = SheetNames("Summary")
    sheet_names = [names.name(title) for title in [*titles, *titles, "summary", "SUMMARY"]]
    assert len({name.casefold() for name in [*sheet_names, "Summary"]}) == len(sheet_names) + 1
    for name in sheet_names:
        assert 1 <= len(name.encode("utf-16-le")) // 2 <= MAX_SHEET_NAME_LENGTH
        assert not set(name) & set("[]:*?/\\\0\n")
        assert not name.startswith("'")
        assert not name.endswith("'")
    second_names = SheetNames("Summary")
    assert [
        second_names.name(title) for title in [*titles, *titles, "summary", "SUMMARY"]
    ] == sheet_names


def test_equal_sheet_names_are_numbered() -> None:
    names = SheetNames()
    long_title = "Swimming for beginners of every age"
    assert [
        names.name(title) for title in (long_title, long_title.upper(), "'a/b'", "a b", "")
    ] == [
        "Swimming for beginners of every",
        "SWIMMING FOR BEGINNERS OF E (2)",
        "a b",
        "a b (2)",
        "Sheet",
    ]
