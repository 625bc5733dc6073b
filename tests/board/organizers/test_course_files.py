"""The courses of a campaign come from a file on the board, and go to one, in a real browser."""

import asyncio
import csv
import secrets
from datetime import UTC, date, datetime, time
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.styles.numbers import FORMAT_DATE_DMYSLASH
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from playwright.async_api import FilePayload, Page, Route, expect

from tests.board.test_accessibility import violations
from tests.board.test_organizers import open_as_organizer
from tests.support.board.pages import Board, serve_sources, shown
from tests.support.clients.campaigns import create_campaign

pytestmark = pytest.mark.asyncio(loop_scope="module")

READ = """async (bytes) => {
  const { workbookToCsv } = await import("/board/sources/views/organizer/xlsx.js");
  return workbookToCsv(new Uint8Array(bytes).buffer);
}"""
ZONES = """query($campaign: ID!) {
  slots(filter: {campaignId: $campaign, status: DRAFT}) { nodes { timeZone } }
}"""
DAY = date(2035, 9, 4)
TITLES = ("Nr.", "Kurs", "Beschreibung", "Erster Tag", "Letzter Tag", "Wochentag")
HEADER = (*TITLES, "Startzeit", "Endzeit", "Plätze", "Raum")
ROOM = f"Room {secrets.token_hex(4)}"
TEXT = "Zug um Zug\n\n- mit Uhr"
CHESS = (
    "0012",
    "Schach",
    TEXT,
    DAY,
    date(2035, 12, 20),
    "Di; Do",
    time(13, 30),
    time(15),
    12,
    ROOM,
)
TRIP = (13, "Ausflug", None, date(2035, 10, 1), None, None, time(8), time(18), 30, None)


def workbook(*rows: tuple[Any, ...], **options: Any) -> bytes:
    """Return a workbook with these rows."""
    book, file = openpyxl.Workbook(), BytesIO()
    for name, value in options.items():
        setattr(book, name, value)
    for row in rows:
        book.worksheets[0].append(row)
    book.save(file)
    return file.getvalue()


async def choose(page: Page, content: bytes, name: str = "kurse.xlsx") -> None:
    """Choose a file."""
    await page.set_input_files("#file", FilePayload(name=name, mimeType="", buffer=content))


async def read(page: Page, content: bytes) -> list[list[str]]:
    """Return the cells of a workbook as the page reads them."""
    text = await page.evaluate(READ, list(content))
    return [*csv.reader(StringIO(text, newline=""))]


async def test_a_workbook_is_read_as_it_is_shown(board: Board) -> None:
    page = await board.open(await board.context())
    await serve_sources(page)
    row = (
        DAY,
        time(13, 30),
        datetime(2035, 9, 4, 13, 30, tzinfo=UTC).replace(tzinfo=None),
        12,
        0.5625,
        "a\r\nb",
        "'=1",
        "_x005F_x0041_",
    )
    expected = ["2035-09-04", "13:30:00", "2035-09-04 13:30:00", "12", "0.5625"]
    expected += ["a\u2028b", "''=1", "_x0041_"]
    for options in ({}, {"epoch": CALENDAR_MAC_1904}, {"iso_dates": True}):
        [cells] = await read(page, workbook(row, **options))
        assert [each.replace("T", " ") for each in cells] == expected, options
    book, file = openpyxl.Workbook(), BytesIO()
    formats = {
        FORMAT_DATE_DMYSLASH: "2035-09-04",
        'yyyy"年"m"月"d"日"': "2035-09-04",
        "[$-407]d. mmmm yyyy;@": "2035-09-04",
        "0000": "49556",
        "000000": "049556",
        '0.00 "days"': "49556",
        "[Red]0": "49556",
        "[h]:mm": "00:00:00",
        "General": "49556",
    }
    for number, code in enumerate(formats, 1):
        cell = book.worksheets[0].cell(1, number, 49_556)
        cell.number_format = code
    book.save(file)
    assert await read(page, file.getvalue()) == [[*formats.values()]]
    # LibreOffice opened a CSV file in German, and saved it with its own dates and line ends.
    saved = (Path(__file__).parent / "libreoffice.xlsx").read_bytes()
    days, times = ["2035-09-03", "2035-12-20", "Di, Do"], ["13:30:00", "15:00:00"]
    assert (await read(page, saved))[1] == [
        *("12", "Schach für Anfänger", "Frau Vögel", "Übungsraum", *days, *times),
        *("12", "Zeile 1\u2028\u2028- Straße", ""),
    ]


async def test_courses_of_a_workbook_are_checked_imported_and_edited(board: Board) -> None:
    campaign = await create_campaign(board.organizer)
    keller = await board.colleague("Ms Keller")
    context = await board.context(keller, timezone_id="Asia/Tokyo")
    page = await board.open(context, f"#/plan/{campaign}")
    await page.get_by_role("link", name="Courses from a file").click()
    await choose(page, workbook(HEADER, CHESS, (*TRIP[:6], "noon", *TRIP[7:])))
    wrong = page.locator("[aria-labelledby=problems] li")
    await expect(wrong).to_contain_text("Line 3 · Startzeit")
    await shown(page, "This is not a time. Example: 13:30.").wait_for()
    await choose(page, workbook(HEADER, CHESS, TRIP))
    await expect(wrong).to_contain_text("There is no room or person named Room")
    assert await violations(page) == []
    create = "Create teachers and rooms that are missing"
    await page.get_by_role("button", name=create).click()
    await expect(page.get_by_label(create)).to_be_checked()
    changes = page.locator("[data-key=changes] li")
    await expect(changes).to_have_text(
        [
            "Schach newLine 2 · 0012 · Tue, Sep 4, 2035, 13:30 · 32 meetings",
            "Ausflug newLine 3 · 13 · Mon, Oct 1, 2035, 08:00",
        ]
    )
    assert await violations(page) == []
    await page.get_by_role("button", name="Import 2 courses").click()
    await page.locator(".notice", has_text="2 courses are imported.").wait_for()
    await page.get_by_role("link", name="Schach").wait_for()
    # Times are those of the forms, on a site without a zone.
    zones = await board.organizer.execute(ZONES, campaign=campaign)
    assert [each["timeZone"] for each in zones["nodes"]] == ["Asia/Tokyo"] * 2
    await page.get_by_role("link", name="Courses from a file").click()
    async with page.expect_download() as saved:
        await page.get_by_role("button", name="Excel").click()
    exported = (await (await saved.value).path()).read_bytes()
    await choose(page, exported)
    await shown(page, "This file has nothing new.").wait_for()
    book, file = openpyxl.load_workbook(BytesIO(exported)), BytesIO()
    sheet = book.worksheets[0]
    assert [sheet[cell].value for cell in ("A1", "B1", "B2", "D2", "H2")] == [
        *("Id", "Number", "0012", TEXT, "13:30"),
    ]
    sheet["B2"], sheet["H2"] = 12, time(14)
    book.save(file)
    await choose(page, file.getvalue())
    await expect(changes).to_have_text(
        "Schach changedLine 2 · 0012 · Tue, Sep 4, 2035, 14:00 · 32 meetings · changes: Start time"
    )
    await page.get_by_role("button", name="Import 1 course").click()
    await page.locator(".notice", has_text="1 course is imported.").wait_for()


async def test_a_choice_that_comes_while_a_file_is_checked_counts(board: Board) -> None:
    campaign = await create_campaign(board.organizer)
    page = await open_as_organizer(board, f"plan/{campaign}/file")
    is_chosen = asyncio.Event()

    async def hold(route: Route) -> None:
        await is_chosen.wait()
        await route.continue_()

    await page.route("**/slots/import?*createResources=false*", hold)
    async with page.expect_request("**/slots/import?*"):
        await choose(page, workbook(HEADER, (*CHESS[:-1], f"{ROOM} of another")))
    await page.get_by_label("Create teachers and rooms that are missing").check()
    is_chosen.set()
    await expect(page.locator("[data-key=changes] li")).to_have_count(1)


async def test_the_example_is_a_file_that_can_be_imported_in_each_language(board: Board) -> None:
    campaign = await create_campaign(board.organizer)
    for language, separator in (("en", ","), ("de", ";"), ("zh", ",")):
        keller = await board.colleague("Ms Keller")
        context = await board.context(keller, locale=language)
        page = await board.open(context, "#/account")
        await page.evaluate(f"localStorage.setItem('slotlock.language', '{language}')")
        await page.goto(f"/board#/plan/{campaign}/file")
        await page.reload()
        example = page.locator("main button.second").first
        await example.wait_for()
        async with page.expect_download() as saved:
            await example.click()
        content = (await (await saved.value).path()).read_bytes()
        assert separator in content.decode().splitlines()[0]
        await page.locator("label.check input").check()
        await choose(page, content, "example.csv")
        await expect(page.locator(".numbers dd").first).to_have_text("2")
        await expect(page.locator("[data-key=changes] li")).to_have_count(2)
