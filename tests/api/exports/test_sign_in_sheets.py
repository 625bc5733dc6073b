"""Sign-in sheets: what a printed page shows."""

from io import BytesIO

import pytest
from pypdf import PdfReader

from slotlock.api.exports.sign_in_sheets import SignInSheets, TooManyRowsError
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.reports.roster import Roster
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.exports import (
    RosterUsers,
    create_resources,
    download_export,
    get_checked,
    set_name_and_groups,
)
from tests.support.domain.rosters import roster_of

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


def render(*rosters: Roster, only_published: bool = True) -> list[str]:
    """Return the pages of the sheets of these rosters."""
    target = BytesIO()
    sheets = SignInSheets(target, only_published=only_published)
    for roster in rosters:
        sheets.add(roster)
    sheets.close()
    return page_texts(target.getvalue())


async def test_a_sheet_lists_confirmed_users_by_name_and_the_slot_in_its_zone(
    roster_users: RosterUsers,
) -> None:
    ada, ben, cleo, organizer = roster_users
    slot_id = await organizer.add_slot(**COURSE, capacity=5)
    for user in (ben, ada):
        await user.book_slot(slot_id)
    await cleo.hold(slot_id)
    (page,) = page_texts(await download_export(organizer, f"slots/{slot_id}.pdf"))
    assert "Schwimmen *für* #Anfänger" in page
    assert "Monday, 2035-07-02 09:00 to 10:30 (Europe/Berlin)" in page
    assert "Bad, Bahn 3" in page
    assert page.index("Ada Löwe") < page.index("Ben")
    assert "Cleo" not in page  # a hold is no booking yet
    lines = page.splitlines()
    # Three empty rows for users without a booking: the slot has five places.
    assert [line.strip() for line in lines if line.strip() in ("3", "4", "5", "6")] == [
        "3", "4", "5",
    ]  # fmt: skip


async def test_a_sheet_names_the_location_and_all_resources(roster_users: RosterUsers) -> None:
    organizer = roster_users.organizer
    resources = await create_resources(organizer, "Halle 9", "Herr Öz")
    slot_id = await organizer.add_slot(**COURSE, resourceIds=resources)
    (page,) = page_texts(await download_export(organizer, f"slots/{slot_id}.pdf"))
    assert "Bad, Bahn 3, Halle 9, Herr Öz" in page


async def test_a_campaign_has_a_sheet_for_each_published_slot(roster_users: RosterUsers) -> None:
    ada, ben, _, organizer = roster_users
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


async def test_only_organizers_get_sheets(roster_users: RosterUsers) -> None:
    slot_id = await roster_users.organizer.add_slot()
    response = await get_checked(roster_users.ada, f"exports/slots/{slot_id}.pdf")
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


def test_only_characters_without_a_glyph_are_missing() -> None:
    for name, is_missing in (("Жанна Ünal\u200d Ἀγάθη", False), (f"Ada {NO_GLYPH}", True)):
        sheets = SignInSheets(BytesIO(), only_published=True)
        sheets.add(roster_of("Course", [name]))
        assert sheets.has_missing_glyphs() is is_missing


async def test_a_sheet_with_missing_glyphs_is_logged_once_without_the_name(
    two_apps: tuple[AppProcess, AppProcess], roster_users: RosterUsers
) -> None:
    ada, ben, _, organizer = roster_users
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    await set_name_and_groups(url, ada, f"Zoé {NO_GLYPH}", NO_GLYPH)
    (app,) = (app for app in two_apps if app.url == organizer.url)
    for user, warnings in ((ben, 0), (ada, 1)):
        slot_id = await organizer.add_slot()
        await user.book_slot(slot_id)
        await download_export(organizer, f"slots/{slot_id}.pdf")
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
    assert "This slot is cancelled." in page
    (empty,) = render(canceled)
    assert empty.strip() == "No published slots."
