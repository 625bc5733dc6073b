"""Sign-in sheets: what a printed page shows."""

import re
from dataclasses import replace
from datetime import date, time
from importlib.util import find_spec
from io import BytesIO

import pytest
from pypdf import PdfReader

from slotlock.api.exports.columns import TooManyRowsError
from slotlock.api.exports.sheet_texts import SHEET_TEXTS
from slotlock.api.exports.sign_in_sheets import FONT_PACKAGES, SignInSheets
from slotlock.domain.booking.booking import Attendance
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.reports.roster import Roster
from slotlock.domain.schedule.periods import NamedPeriods, Period
from slotlock.domain.schedule.schedule_texts import format_periods, format_schedule
from slotlock.domain.schedule.timetables import Weekday
from tests.support.apps.processes import Pair
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.exports import (
    RosterUsers,
    create_resources,
    download_export,
    get_checked,
    set_name_and_groups,
)
from tests.support.domain.builders import build_slot, hour_from, roster_of, with_values

NO_GLYPH = "\U000f0000"  # no font of a system has characters for private use
COURSE: Json = {
    "title": "Schwimmen *für* #Anfänger",
    "location": "Bad, Bahn 3",
    "timeZone": "Europe/Berlin",
    "startTime": "2035-07-02T09:00:00+02:00",
    "endTime": "2035-07-02T10:30:00+02:00",
}


def page_texts(body: bytes) -> list[str]:
    """Return the text of each page of a PDF."""
    return [page.extract_text() for page in PdfReader(BytesIO(body)).pages]


def render(*rosters: Roster, only_published: bool = True, language: str = "en") -> list[str]:
    """Return the pages of the sheets of these rosters."""
    target = BytesIO()
    sheets = SignInSheets(target, only_published=only_published, language=language)
    for roster in rosters:
        sheets.add(roster)
    sheets.close()
    return page_texts(target.getvalue())


async def test_a_sheet_lists_confirmed_users_and_the_slot_in_its_zone(users: RosterUsers) -> None:
    ada, ben, cleo, organizer = users
    slot_id = await organizer.add_slot(**COURSE, capacity=5)
    for user in (ben, ada):
        await user.book_slot(slot_id)
    await cleo.hold(slot_id)
    (page,) = page_texts(await download_export(organizer, f"slots/{slot_id}.pdf"))
    assert "Schwimmen *für* #Anfänger" in page
    assert "Mon, July 2, 2035, 09:00–10:30 (Berlin time)" in page  # noqa: RUF001
    assert "Bad, Bahn 3" in page
    assert page.index("Ada Löwe") < page.index("Ben")
    assert "Cleo" not in page  # a hold is no booking yet
    lines = page.splitlines()
    # Three empty rows for users without a booking: the slot has five places.
    assert [line.strip() for line in lines if line.strip() in ("3", "4", "5", "6")] == [
        "3", "4", "5",
    ]  # fmt: skip


async def test_a_sheet_names_the_location_and_all_resources(users: RosterUsers) -> None:
    organizer = users.organizer
    resources = await create_resources(organizer, "Halle 9", "Herr Öz")
    slot_id = await organizer.add_slot(**COURSE, resourceIds=resources)
    (page,) = page_texts(await download_export(organizer, f"slots/{slot_id}.pdf"))
    assert "Bad, Bahn 3, Halle 9, Herr Öz" in page


async def test_a_campaign_has_a_sheet_for_each_published_slot(users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    campaign_id = await create_campaign(organizer)
    first = await organizer.add_slot(title="First", campaignId=campaign_id)
    second = await organizer.add_slot(title="Second", campaignId=campaign_id)
    await organizer.add_slot(title="Draft", campaignId=campaign_id, draft=True)
    await ada.book_slot(first)
    await ben.book_slot(second)
    body = await download_export(organizer, f"campaigns/{campaign_id}.pdf")
    pages = page_texts(body)
    by_title = {page.split()[0]: page for page in pages}
    assert by_title.keys() == {"First", "Second"}
    assert "Ben" not in by_title["First"]
    assert "Ada" not in by_title["Second"]
    assert body == await download_export(organizer, f"campaigns/{campaign_id}.pdf")


async def test_only_organizers_get_sheets(users: RosterUsers) -> None:
    slot_id = await users.organizer.add_slot()
    response = await get_checked(users.ada, f"exports/slots/{slot_id}.pdf")
    assert response.status_code == 403


def test_markup_in_names_is_printed_as_text() -> None:
    names = (
        "#panic()", "*bold* _it_", "$x^2$", "= Heading", "<label> @ref", "#sys.inputs.data",
        "`raw` \\ \" \\u{41}", "// no comment", "Жанна Ünal Łukasz Ἀγάθη",
    )  # fmt: skip
    (page,) = render(roster_of("Course", names))
    printed = "".join(page.split())
    for name in names:
        assert "".join(name.split()) in printed


def test_only_the_sheets_with_boxes_for_missing_glyphs_say_so() -> None:
    complete = roster_of("Erster", ["Жанна Ünal\u200d Ἀγάθη"])
    for rosters in ([complete], [complete, roster_of("Zweiter", [f"Ada {NO_GLYPH}"])]):
        target = BytesIO()
        sheets = SignInSheets(target, only_published=True, language="de")
        for roster in rosters:
            sheets.add(roster)
        sheets.close()
        assert sheets.has_missing_glyphs is (len(rosters) == 2)
        says_so = ["Kästchen stehen" in page for page in page_texts(target.getvalue())]
        assert says_so == [False, True][: len(rosters)]


@pytest.mark.skipif(not all(map(find_spec, FONT_PACKAGES)), reason="the fonts are not installed")
def test_the_font_packages_have_the_scripts_of_many_names() -> None:
    names = ["张伟", "田中さくら", "김민지", "محمد", "דוד", "राम", "สมชาย", "ივანი", "😀"]
    sheets = SignInSheets(BytesIO(), only_published=True)
    sheets.add(roster_of("Course", names))
    sheets.close()
    assert not sheets.has_missing_glyphs


@pytest.mark.parametrize("language", SHEET_TEXTS)
def test_headings_are_in_the_language_of_the_viewer_if_a_font_has_it(language: str) -> None:
    target = BytesIO()
    sheets = SignInSheets(target, only_published=False, language=language)
    third = Period("3", time(9), time(10))
    periods = (NamedPeriods(Weekday.TUESDAY, third, third),)
    roster = roster_of("Course", ["Ada"], status=SlotStatus.CANCELLED)
    sheets.add(replace(roster, periods=periods))
    sheets.close()
    page = "".join(page_texts(target.getvalue())[0].split())
    texts = SHEET_TEXTS[language]
    if language == "zh" and texts.here not in page:  # this system has no Chinese font
        language, texts = "en", SHEET_TEXTS["en"]
    slot = build_slot().slot
    expected = (
        *(texts.number, texts.here, texts.name, texts.groups, texts.signature, texts.cancelled),
        format_schedule(slot.all_meetings, slot.time_zone, language),
        format_periods(periods, language),
    )
    for text in expected:
        assert "".join(text.split()) in page


@pytest.mark.parametrize(
    ("accepted", "heading"),
    [("de-AT,de;q=0.9,en;q=0.5", "Unterschrift"), ("ja, fr;q=0.2", "émargement"), ("*", "Here")],
)
async def test_the_request_names_the_language(
    users: RosterUsers, accepted: str, heading: str
) -> None:
    organizer = users.organizer
    slot_id = await organizer.add_slot()
    headers = {**organizer.headers, "accept-language": accepted}
    path = f"{organizer.url}/exports/slots/{slot_id}.pdf"
    response = await organizer.http.get(path, headers=headers)
    reader = PdfReader(BytesIO(response.content))
    title = reader.metadata and reader.metadata.title
    assert heading in f"{title} {reader.pages[0].extract_text()}"
    assert "x-missing-glyphs" not in response.headers


# So many letters W are as wide as the title, a name and a group.
FITTING = {"title": 33, "name": 16, "group": 9}


HYPHENS = "Sachsen-Weimar-Eisenach-Schwarzburg-Sondershausen"


def test_a_word_without_a_break_stays_in_its_cell() -> None:
    lengths = {"title": 60, "name": 100, "group": 50}
    title, name, group = ("W" * length for length in lengths.values())
    roster = roster_of(title, [name, f"Anna {'我' * 90}", "😀" * 60, HYPHENS])
    rows = tuple(replace(row, groups=(group, "5a")) for row in roster.rows)
    page = "".join(render(replace(roster, rows=rows)))
    runs = [len(run) for run in re.findall("W+", page)]
    for word, length in lengths.items():
        whole, rest = divmod(length, FITTING[word])
        assert runs.count(FITTING[word]) == whole * (1 if word != "group" else 4)
        assert rest in runs
    lines = page.splitlines()
    assert all(any(part in line for line in lines) for part in HYPHENS.split("-"))


async def test_a_sheet_with_missing_glyphs_is_logged_once_without_the_name(
    two_apps: Pair, users: RosterUsers
) -> None:
    ada, ben, _, organizer = users
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    await set_name_and_groups(url, ada, f"Zoé {NO_GLYPH}", NO_GLYPH)
    (app,) = (app for app in two_apps if app.url == organizer.url)
    for user, warnings in ((ben, 0), (ada, 1)):
        slot_id = await organizer.add_slot()
        await user.book_slot(slot_id)
        response = await get_checked(organizer, f"exports/slots/{slot_id}.pdf")
        assert ("x-missing-glyphs" in response.headers) is bool(warnings)
        lines = [line for line in app.log.splitlines() if slot_id.removeprefix("slot_") in line]
        assert len(lines) == warnings
        assert all("no font has" in line and "Zoé" not in line for line in lines)


def test_the_heading_and_the_columns_repeat_on_each_of_several_pages() -> None:
    names = [f"User {number:03}" for number in range(300)]
    pages = render(roster_of("Long course", names))
    assert len(pages) > 5
    assert all("Long course" in page and "Signature" in page for page in pages)
    for name in names:
        assert sum(name in page for page in pages) == 1


def test_a_long_course_continues_with_other_meetings_on_the_next_page() -> None:
    roster = roster_of("Choir", ["Ada"])
    days = [date(2031, month, day) for month in (3, 4) for day in range(1, 21)]
    months = {3: "März 2031 10:00", 4: "Apr. 2031 11:00"}
    starts = [f"{each.day}. {months[each.month]}" for each in days]
    course = replace(
        roster,
        slot=with_values(roster.slot, meetings=tuple(hour_from(f"{day}T09:00") for day in days)),
        rows=(replace(roster.rows[0], meeting_attendances=(Attendance.CHECKED_IN,) * 40),),
    )
    pages = render(course, language="de")
    assert [sum(f" {time}" in page for time in starts) for page in pages] == [25, 15]
    assert all("Choir" in page and "Ada" in page for page in pages)
    assert [page.split().count("X") for page in pages] == [25, 15]


def test_a_file_that_would_take_too_much_memory_is_refused() -> None:
    sheets = SignInSheets(BytesIO(), only_published=True)
    roster = roster_of("Course", [f"User {number}" for number in range(1_000)])
    for _ in range(4):
        sheets.add(roster)
    with pytest.raises(TooManyRowsError):
        sheets.add(roster)


def test_a_canceled_slot_says_so_and_lists_nobody() -> None:
    canceled = roster_of("Course", (), status=SlotStatus.CANCELLED)
    (page,) = render(canceled, only_published=False)
    assert "This course does not take place." in page
    (empty,) = render(canceled)
    assert empty.strip() == "No published courses."
