"""Exports of a campaign by user, by group and by resource."""

import random
import string
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pypdf import PdfReader

from slotlock.api.exports.export_builder import ExportJob
from slotlock.api.exports.export_process import write_export
from slotlock.api.exports.workbook import GroupedWorkbook
from slotlock.domain.reports.export_formats import ExportGrouping
from slotlock.domain.reports.roster import RosterUser
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.reads import rosters
from slotlock.infrastructure.mongo.slots.reads.rosters import CampaignUsers
from slotlock.services.container import utc_now
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.exports import (
    CREATE_LINK,
    RosterUsers,
    create_export_link,
    create_resources,
    download_export,
    get_checked,
    load_workbook_bytes,
    set_name_and_groups,
)
from tests.support.domain.builders import roster_of

Sheets = dict[str, list[list[Any]]]


def on_day(day: int) -> Json:
    """Return the times of a slot in Berlin on a day of July 2035."""
    return {
        "timeZone": "Europe/Berlin",
        "startTime": f"2035-07-0{day}T09:00:00+02:00",
        "endTime": f"2035-07-0{day}T10:30:00+02:00",
    }


def read_sheets(body: bytes) -> Sheets:
    """Return the rows of each sheet of a workbook by its name."""
    book = load_workbook_bytes(body)
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


class School:
    """A campaign for two classes and a club, whose names no other test has."""

    def __init__(self, users: RosterUsers, url: str, mark: str) -> None:
        self.users, self.organizer = users, users.organizer
        self.url = url
        self.first, self.second, self.club = f"9{mark}", f"10{mark}", f"Club {mark}"

    async def open(self, **fields: Any) -> None:
        """Name the users, and create the campaign."""
        ada, ben, cleo, _ = self.users
        await set_name_and_groups(self.url, ada, "Ada Löwe", self.second, self.club)
        await set_name_and_groups(self.url, ben, "Ben", self.first)
        await set_name_and_groups(self.url, cleo, "Cleo", self.first)
        self.campaign = await create_campaign(self.organizer, **fields)

    async def add(self, **fields: Any) -> str:
        """Create a slot of the campaign."""
        return await self.organizer.add_slot(campaignId=self.campaign, **{"capacity": 3, **fields})

    async def export(self, grouping: ExportGrouping, temporary: Any) -> Sheets:
        """Write a workbook in this process, and read it."""
        target, id_ = BytesIO(), self.campaign[-24:]
        job = ExportJob("campaign", id_, "xlsx", utc_now(), grouping=grouping)
        await write_export(self.url, job, target, str(temporary))
        return read_sheets(target.getvalue())


@pytest.fixture
async def school(users: RosterUsers, two_apps: Pair) -> School:
    """Return a school of Ada in class 10 and the club, and of Ben and Cleo in class 9."""
    mark = "".join(random.choices(string.ascii_lowercase, k=8))
    return School(users, two_apps[0].environment["SLOTLOCK_MONGO_URL"], mark)


async def test_by_user_each_user_has_a_row_by_class_with_a_column_for_each_course(
    school: School,
) -> None:
    ada, ben, cleo, organizer = school.users
    await school.open(eligibleGroups=[[school.first, school.second]])
    chess = await school.add(title="Chess", number="7", **on_day(3))
    early = await school.add(title="Swimming", location="Pool", **on_day(2))
    late = await school.add(title="Swimming", **on_day(4))
    cancelled = await school.add(title="Cancelled")
    draft = await school.add(title="Draft", draft=True)
    for slot_id in (late, chess, early, cancelled):
        await ada.book_slot(slot_id)
    await organizer.book_slot(draft, userId=await ben.fetch_user_id())
    await organizer.cancel_slot(cancelled)
    await ben.book_slot(chess)
    await cleo.hold(early)
    link = await create_export_link(
        organizer, school.campaign, "XLSX", grouping="USER", language="DE"
    )
    response = await organizer.http.get(organizer.url + link)
    assert "personen-" in response.headers["content-disposition"]
    by_group = await create_export_link(
        organizer, school.campaign, "XLSX", grouping="GROUP", language="DE"
    )
    other = await organizer.http.get(organizer.url + by_group)
    assert "personen-nach-gruppe-" in other.headers["content-disposition"]
    (sheet,) = read_sheets(response.content).items()
    emails = {row[2] or row[1]: row[3] for row in sheet[1][1:]}
    assert sheet == ("Alle", [
        ["Klasse", "Nachname", "Vorname", "E-Mail oder Benutzername", "Klassen und Gruppen",
         "Telefon", "Kurs 1", "Kurs 2", "Kurs 3"],
        [school.first, "Ben", None, emails["Ben"], school.first, None, "7 Chess", None, None],
        [school.first, "Cleo", None, emails["Cleo"], school.first, None, None, None, None],
        [school.second, "Ada Löwe", None, emails["Ada Löwe"], f"{school.second};{school.club}",
         None, "Swimming, Mo. 2. Juli 2035 09:00, Pool", "7 Chess",
         "Swimming, Mi. 4. Juli 2035 09:00"],
    ])  # fmt: skip
    assert all("@" in each for each in emails.values())


async def test_by_group_each_class_has_a_sheet_and_nobody_is_missing(
    school: School, tmp_path: Any
) -> None:
    ada, ben, _, organizer = school.users
    limits = [{"group": f"{school.club[:-1]}*", "limit": 2}]
    await school.open(eligibleGroups=[[school.second]], groupLimits=limits)
    chess = await school.add(title="Chess", **on_day(3))
    await ada.book_slot(chess)
    await organizer.book_slot(chess, userId=await ben.fetch_user_id())
    sheets = await school.export(ExportGrouping.GROUP, tmp_path)
    shown = {name: [(row[1], row[6]) for row in rows[1:]] for name, rows in sheets.items()}
    assert shown == {
        school.second: [("Ada Löwe", "Chess")],
        school.club: [("Ada Löwe", "Chess")],
        "Others": [("Ben", "Chess")],
    }
    assert [*shown] == [school.second, school.club, "Others"]


async def test_a_campaign_for_everybody_has_a_sheet_for_each_group_of_its_users(
    school: School, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rosters, "MAX_UNPLACED", 1)
    await school.open()
    await school.users.ada.book_slot(await school.add(title="Chess"))
    sheets = await school.export(ExportGrouping.GROUP, tmp_path)
    for name in (school.second, school.club):
        assert [(row[1], row[6]) for row in sheets[name][1:]] == [("Ada Löwe", "Chess")]
    # The first other member, by address, of all those of the other tests.
    assert len({row[3] for rows in sheets.values() for row in rows[1:]}) == 2


def test_what_has_no_sheet_of_its_own_is_on_the_last_one() -> None:
    target = BytesIO()
    job = ExportJob("campaign", "", "xlsx", utc_now(), grouping=ExportGrouping.GROUP)
    with TemporaryDirectory() as folder:
        book = GroupedWorkbook(target, folder, job, max_sheets=3)
        book.add(roster_of("Chess", ["Ada"]))
        names = {"a": ("10a",), "b": ("9b",), "c": ("11c", "9b"), "d": ()}
        users = {UserId(each): RosterUser(each, each, groups) for each, groups in names.items()}
        book.add_users(CampaignUsers(None, users))
        book.close()
    sheets = read_sheets(target.getvalue())
    shown = {name: [row[1] for row in rows[1:]] for name, rows in sheets.items()}
    assert [*shown.items()] == [("9b", ["b", "c"]), ("10a", ["a"]), ("Others", ["d", "c"])]


async def test_by_resource_each_has_a_sheet_with_a_row_for_each_place_by_time(
    school: School, tmp_path: Any
) -> None:
    ada, ben, _, organizer = school.users
    await school.open()
    vogel, room = await create_resources(
        organizer, f"Ms. Vogel {school.club}", f"Room {school.club}"
    )
    late = await school.add(title="Talk", capacity=1, resourceIds=[vogel, room], **on_day(4))
    early = await school.add(title="Talk", capacity=2, resourceIds=[vogel], **on_day(2))
    await school.add(title="Chess", capacity=1, **on_day(3))
    await school.add(title="Draft", draft=True)
    await ada.book_slot(late)
    await ben.hold(early)
    sheets = await school.export(ExportGrouping.RESOURCE, tmp_path)
    shown = {
        name: [(row[0].day, row[3], row[4], row[7]) for row in rows[1:]]
        for name, rows in sheets.items()
    }
    assert shown == {
        f"Ms. Vogel {school.club}": [
            (2, "Talk", "Ben", "HELD"), (2, "Talk", None, None),
            (4, "Talk", "Ada Löwe", "CONFIRMED"),
        ],
        f"Room {school.club}": [(4, "Talk", "Ada Löwe", "CONFIRMED")],
        "Others": [(3, "Chess", None, None)],
    }  # fmt: skip
    assert [*shown][-1] == "Others"
    path = f"campaigns/{school.campaign}.pdf?by=resource&language=en"
    pdf = PdfReader(BytesIO(await download_export(organizer, path)))
    pages = [page.extract_text() for page in pdf.pages]
    assert [page.split("\n")[0] for page in pages] == [*shown]
    teacher = pages[0]
    assert "Berlin time" in teacher.splitlines()[1]
    assert teacher.index("July 2, 2035") < teacher.index("July 4, 2035") < teacher.index("Ada Löwe")
    assert teacher.count("Talk") == 3
    assert "Ben" not in teacher
    assert "Signature" not in teacher


@pytest.mark.parametrize(
    ("kind", "file_format", "grouping"),
    [("campaign", "csv", "user"), ("campaign", "pdf", "group"), ("campaign", "csv", "resource"),
     ("slot", "xlsx", "user"), ("slot", "pdf", "resource")],
)  # fmt: skip
async def test_other_pairs_of_format_and_grouping_are_refused(
    organizer: BookingClient, kind: str, file_format: str, grouping: str
) -> None:
    id_ = f"{kind}_{'0' * 24}"
    response = await get_checked(organizer, f"exports/{kind}s/{id_}.{file_format}?by={grouping}")
    assert (response.status_code, "for campaigns, as" in response.text) == (400, True)
    options = {"format": file_format.upper(), "grouping": grouping.upper()}
    assert await organizer.error_code(CREATE_LINK, id=id_, **options) == "BAD_USER_INPUT"


async def test_an_unknown_grouping_names_the_known_ones(organizer: BookingClient) -> None:
    response = await get_checked(organizer, f"exports/campaigns/campaign_{'0' * 24}.xlsx?by=class")
    assert response.status_code == 400
    assert "slot, user, group, resource" in response.text
