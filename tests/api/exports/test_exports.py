"""Rosters out: what organisers download says what is so, in the types that it is."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import (
    csv_rows,
    download_export,
    get_checked,
    load_workbook_bytes,
    set_name_and_groups,
)

Pair = tuple[AppProcess, AppProcess]
Staff = tuple[BookingClient, BookingClient, BookingClient, BookingClient]
BERLIN = ZoneInfo("Europe/Berlin")
COURSE = {
    "title": "Schwimmen für Anfänger",
    "location": "Bad, Bahn 3",
    "timeZone": "Europe/Berlin",
    "startTime": "2035-07-02T09:00:00+02:00",
    "endTime": "2035-07-02T10:30:00+02:00",
}
HEADER = ["slot", "start", "end", "time_zone", "location", "name", "email", "groups", "status",
          "held_until", "created_at", "created_by", "waiting_since",
          "overridden_limits"]  # fmt: skip
TITLES = ["Slot", "Start (local)", "End (local)", "Time zone", "Location", "Name", "Address",
          "Groups", "Status", "Held until (local)", "Created at (local)",
          "Created by", "Waiting since (local)", "Overridden limits"]  # fmt: skip


@pytest.fixture
async def organizer_and_members(two_apps: Pair, http: httpx.AsyncClient) -> Staff:
    """Ada, Ben and Cleo with names and groups, and an organiser."""
    (ada, ben, cleo), organiser = await create_booking_clients(http, 3, *two_apps)
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    await set_name_and_groups(url, ada, "Ada Löwe", "5a", "choir")
    await set_name_and_groups(url, ben, "Ben", "5b")
    await set_name_and_groups(url, cleo, "Cleo")
    await set_name_and_groups(url, organiser, "Olga")
    return ada, ben, cleo, organiser


async def email(person: BookingClient) -> str:
    return str((await person.execute("{ me { email } }"))["email"])


def local(time: str) -> str:
    """A time of an answer as a file tells it: in Berlin, to the second."""
    return datetime.fromisoformat(time).astimezone(BERLIN).isoformat(timespec="seconds")


async def test_a_slot_is_told_booking_by_booking_in_their_order(
    organizer_and_members: Staff,
) -> None:
    ada, ben, cleo, organiser = organizer_and_members
    slot_id = await organiser.add_slot(**COURSE, capacity=2)
    first = (await ada.book_slot(slot_id))["booking"]
    held = (await organiser.hold(slot_id, userId=await ben.fetch_user_id()))["heldUntil"]
    waiting = (await cleo.join(slot_id))["entry"]
    await ada.cancel_booking(first["id"])
    promoted = (await cleo.fetch_slot(slot_id))["myBooking"]
    rows = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
    assert list(rows[0]) == HEADER
    slot = {
        "slot": COURSE["title"], "start": COURSE["startTime"], "end": COURSE["endTime"],
        "time_zone": "Europe/Berlin", "location": "Bad, Bahn 3",
    }  # fmt: skip
    for row in rows:
        assert row.items() >= slot.items()
    bens, cleos = rows
    assert (bens["name"], bens["email"], bens["groups"]) == ("Ben", await email(ben), "5b")
    assert (bens["status"], bens["held_until"], bens["created_by"]) == ("HELD", local(held), "Olga")
    assert (cleos["name"], cleos["status"], cleos["held_until"]) == ("Cleo", "CONFIRMED", "")
    assert cleos["created_at"] == local(promoted["createdAt"])
    assert (cleos["waiting_since"], cleos["created_by"]) == (local(waiting["since"]), "")


async def test_groups_are_those_of_the_booking_where_they_count(
    two_apps: Pair, organizer_and_members: Staff
) -> None:
    ada, _, _, organiser = organizer_and_members
    limited = await organiser.add_slot(groupLimits=[{"group": "5a", "limit": 1}])
    plain = await organiser.add_slot()
    await ada.book_slot(limited)
    await ada.book_slot(plain)
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    await set_name_and_groups(url, ada, "Ada", "6a")
    for slot_id, groups in ((limited, "5a;choir"), (plain, "6a")):
        (row,) = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
        assert sorted(row["groups"].split(";")) == groups.split(";")


async def test_what_was_overridden_is_told(organizer_and_members: Staff) -> None:
    ada, _, _, organiser = organizer_and_members
    slot_id = await organiser.add_slot()
    await organiser.update_slot(slot_id, startTime="2020-01-01T00:00:00Z")
    await organiser.book_slot(slot_id, userId=await ada.fetch_user_id())
    (row,) = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
    assert (row["overridden_limits"], row["created_by"]) == ("SLOT_STARTED", "Olga")


async def test_a_hold_that_ran_out_is_not_on_the_roster(
    two_apps: Pair, organizer_and_members: Staff
) -> None:
    ada, ben, _, organiser = organizer_and_members
    slot_id = await organiser.add_slot(capacity=3)
    await ada.hold(slot_id)
    await ben.book_slot(slot_id)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    (row,) = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
    assert row["name"] == "Ben"
    book = load_workbook_bytes(await download_export(organiser, f"slots/{slot_id}.xlsx"))
    assert [cell.value for cell in book["Summary"][2]][6:12] == [3, 1, 0, 0, 0, 2]


async def test_the_bookings_of_a_called_off_slot_are_cancelled(
    organizer_and_members: Staff,
) -> None:
    ada, ben, _, organiser = organizer_and_members
    slot_id = await organiser.add_slot(capacity=3)
    await ada.book_slot(slot_id)
    await ben.hold(slot_id)
    await organiser.cancel_slot(slot_id)
    rows = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
    assert [row["status"] for row in rows] == ["CANCELLED", "CANCELLED"]
    assert [row["held_until"] for row in rows] == ["", ""]
    book = load_workbook_bytes(await download_export(organiser, f"slots/{slot_id}.xlsx"))
    assert [cell.value for cell in book["Summary"][2]][5:12] == ["CANCELLED", 3, 0, 0, 2, 0, 0]
    assert [cell.value for cell in book["Summary"][3]][6:12] == [0, 0, 0, 2, 0, 0]


async def test_the_total_counts_the_places_that_the_figures_of_the_campaign_count(
    organizer_and_members: Staff,
) -> None:
    ada, ben, _, organiser = organizer_and_members
    campaign_id = await create_campaign(organiser)
    await ada.book_slot(await organiser.add_slot(campaignId=campaign_id, capacity=4))
    off = await organiser.add_slot(campaignId=campaign_id, capacity=3)
    await ben.book_slot(off)
    await organiser.cancel_slot(off)
    await organiser.add_slot(campaignId=campaign_id, capacity=2, draft=True)
    summary = load_workbook_bytes(
        await download_export(organiser, f"campaigns/{campaign_id}.xlsx")
    )["Summary"]
    assert [cell.value for cell in summary[5]][6:12] == [4, 1, 0, 1, 0, 3]


async def test_a_workbook_has_a_summary_and_a_sheet_a_slot_with_typed_cells(
    organizer_and_members: Staff,
) -> None:
    ada, ben, cleo, organiser = organizer_and_members
    campaign_id = await create_campaign(organiser)
    later = {**COURSE, "startTime": "2035-07-02T08:00:00Z", "endTime": "2035-07-02T09:00:00Z"}
    second = await organiser.add_slot(**later, campaignId=campaign_id, capacity=1)
    first = await organiser.add_slot(**COURSE, campaignId=campaign_id, capacity=5)
    hold = await ada.hold(first)
    await ben.book_slot(first)
    await ben.book_slot(second)
    await cleo.join(second)
    book = load_workbook_bytes(await download_export(organiser, f"campaigns/{campaign_id}.xlsx"))
    names = ["07-02 09.00 Schwimmen für Anfän", "07-02 10.00 Schwimmen für Anfän"]
    assert book.sheetnames == ["Summary", *names]
    summary = [[cell.value for cell in row] for row in book["Summary"].iter_rows()]
    assert summary[1][0:2] == [COURSE["title"], datetime(2035, 7, 2, 9)]  # noqa: DTZ001
    assert summary[1][5:] == ["PUBLISHED", 5, 1, 1, 0, 0, 3, names[0]]
    assert summary[2][5:] == ["PUBLISHED", 1, 1, 0, 0, 1, 0, names[1]]
    assert summary[3] == ["Total", *[None] * 5, 6, 2, 1, 0, 1, 3, None]
    sheet = book[names[0]]
    assert [cell.value for cell in sheet[1]] == TITLES
    assert all(cell.font.bold for cell in sheet[1])
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:N3"
    row = sheet[2]
    kinds = ["s", "d", "d", "s", "s", "s", "s", "s", "s", "d", "d", "n", "n", "n"]
    assert [cell.data_type for cell in row] == kinds
    assert [cell.value for cell in row[11:]] == [None] * 3  # nobody else, no waiting, no limit
    assert row[1].number_format == "yyyy-mm-dd hh:mm:ss"
    until = datetime.fromisoformat(hold["heldUntil"]).astimezone(BERLIN).replace(tzinfo=None)
    assert abs(row[9].value - until) < timedelta(seconds=1)
    assert [cell.data_type for cell in book["Summary"][2]][6:12] == ["n"] * 6


async def test_both_forms_tell_the_same(organizer_and_members: Staff) -> None:
    ada, ben, _, organiser = organizer_and_members
    slot_id = await organiser.add_slot(**COURSE, capacity=5)
    await ada.hold(slot_id)
    await organiser.book_slot(slot_id, userId=await ben.fetch_user_id())
    rows = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
    sheet = load_workbook_bytes(
        await download_export(organiser, f"slots/{slot_id}.xlsx")
    ).worksheets[1]
    for told, cells in zip(rows, sheet.iter_rows(min_row=2), strict=True):
        for text, cell in zip(told.values(), cells, strict=True):
            value = cell.value
            if isinstance(value, datetime):
                value = value.replace(tzinfo=BERLIN).isoformat(timespec="seconds")
            assert text == (value or "")


async def test_the_same_again_is_the_same_to_the_byte(
    two_apps: Pair, organizer_and_members: Staff
) -> None:
    ada, ben, cleo, organiser = organizer_and_members
    campaign_id = await create_campaign(organiser)
    for number in range(3):
        same_start = COURSE if number < 2 else {}
        slot_id = await organiser.add_slot(**same_start, campaignId=campaign_id, capacity=5)
        for person in (cleo, ada, ben):
            await person.book_slot(slot_id)
    other = BookingClient(organiser.http, two_apps[1].url, organiser.token)
    for form in ("csv", "xlsx"):
        path = f"campaigns/{campaign_id}.{form}"
        first = await download_export(organiser, path)
        assert first == await download_export(organiser, path) == await download_export(other, path)


async def test_nothing_that_people_write_becomes_a_formula(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    cells = {
        "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@sum": "'@sum", " =1+1": "' =1+1",
        "a;=1+1": "a;'=1+1", "\uff1d1+1": "'\uff1d1+1", "http://a.example": "http://a.example",
        "1": "1", "_x000D_": "_x000D_", "\ufffe": "\ufffe", '"=1"': '"=1"',
        "\U0001f3ca": "\U0001f3ca",
    }  # fmt: skip
    people, organiser = await create_booking_clients(http, len(cells), *two_apps)
    title = "=HYPERLINK(1)"
    slot_id = await organiser.add_slot(title=title, location="+49 30", capacity=len(cells))
    for person, name in zip(people, cells, strict=True):
        await set_name_and_groups(two_apps[0].environment["SLOTLOCK_MONGO_URL"], person, name)
        await person.book_slot(slot_id)
    rows = csv_rows(await download_export(organiser, f"slots/{slot_id}.csv"))
    assert [row["name"] for row in rows] == list(cells.values())
    assert {(row["slot"], row["location"]) for row in rows} == {(f"'{title}", "'+49 30")}
    sheet = load_workbook_bytes(
        await download_export(organiser, f"slots/{slot_id}.xlsx")
    ).worksheets[1]
    for name, row in zip(cells, sheet.iter_rows(min_row=2), strict=True):
        texts = (row[0], row[4], row[5])
        assert {(cell.data_type, cell.hyperlink) for cell in texts} == {("s", None)}
        assert (row[0].value, row[4].value) == (title, "+49 30")
        # Escapes of Excel's that openpyxl does not read: of `_x`, and of what XML cannot hold.
        escaped = {"_x000D_": "_x005F_x000D_", "\ufffe": "_xFFFE_"}
        assert row[5].value == escaped.get(name, name)


async def test_times_outside_of_excels_calendar_are_text(organizer_and_members: Staff) -> None:
    ada, _, _, organiser = organizer_and_members
    for start, end in (
        ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"),
        ("9999-12-30T00:00:00Z", "9999-12-31T23:59:59Z"),
    ):
        for zone in ("America/New_York", "Pacific/Auckland"):
            slot_id = await organiser.add_slot(
                startTime=start, endTime=end, timeZone=zone, draft=True
            )
            assert csv_rows(await download_export(organiser, f"slots/{slot_id}.csv")) == []
            summary = load_workbook_bytes(
                await download_export(organiser, f"slots/{slot_id}.xlsx")
            )["Summary"]
            assert summary["B2"].data_type == ("s" if start < "1900" else "d")
    assert ada.token


async def test_only_organisers_get_rosters(organizer_and_members: Staff) -> None:
    ada, _, _, organiser = organizer_and_members
    slot_id = await organiser.add_slot()
    path = f"exports/slots/{slot_id}.csv"
    nobody = BookingClient(ada.http, ada.url)
    stranger = BookingClient(ada.http, ada.url, "no.such.token")
    for who, status, code in (
        (ada, 403, "FORBIDDEN"),
        (nobody, 401, "UNAUTHENTICATED"),
        (stranger, 401, "UNAUTHENTICATED"),
    ):
        response = await get_checked(who, path)
        assert (response.status_code, response.json()["code"]) == (status, code)
    response = await organiser.http.post(f"{organiser.url}/{path}", headers=organiser.headers)
    assert (response.status_code, response.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    ["slots/slot_" + "0" * 24 + ".csv", "campaigns/campaign_" + "0" * 24 + ".xlsx",
     "slots/slot_1.csv", "slots/campaign_" + "0" * 24 + ".csv", "slots/.csv", "slots/%00.csv",
     "slots/slot_" + "0" * 24 + ".pdf", "slots/slot_" + "0" * 24, "slots", "", "people/1.csv",
     "slots/slot_" + "0" * 24 + ".csv/", "slots/..%2f..%2fetc.csv", "slots/" + "x" * 2000 + ".csv",
     "slots/%FF.csv", "slots/slot_" + "0" * 24 + "%0A.csv"],
)  # fmt: skip
async def test_what_is_not_there_is_not_found(organizer_and_members: Staff, path: str) -> None:
    response = await get_checked(organizer_and_members[3], f"exports/{path}")
    assert response.status_code == 404
    assert response.json()["error"]


async def test_an_empty_campaign_is_a_file_without_rows(organizer_and_members: Staff) -> None:
    organiser = organizer_and_members[3]
    campaign_id = await create_campaign(organiser, published=False)
    assert csv_rows(await download_export(organiser, f"campaigns/{campaign_id}.csv")) == []
    book = load_workbook_bytes(await download_export(organiser, f"campaigns/{campaign_id}.xlsx"))
    assert book.sheetnames == ["Summary"]
    assert json.dumps([cell.value for cell in book["Summary"][2]][6:12]) == "[0, 0, 0, 0, 0, 0]"
    assert book.properties.created.replace(tzinfo=UTC) < datetime.now(UTC)
