"""Exported rosters: their rows, and who may download them."""

import secrets
from datetime import datetime
from io import BytesIO
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
import pytest
from pypdf import PdfReader

from slotlock.api.exports.columns import ALL_COLUMNS, STATUS, WAITING_COLUMNS
from slotlock.api.exports.csv_file import FILE
from slotlock.api.exports.table_texts import TEXTS, shown_cells
from slotlock.api.exports.workbook import SUMMARY_SHEET
from slotlock.domain.booking.booking import Attendance, BookingLimit, BookingStatus, MadeAs
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.reports.export_formats import ExportLanguage
from slotlock.domain.schedule.schedule_texts import format_short_time
from tests.support.apps.processes import Pair
from tests.support.clients.attendance import UNDO_CHECK_IN, booked_course, check_in
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.exports import (
    COURSE,
    CREATE_LINK,
    RosterUsers,
    create_resources,
    csv_rows,
    download_export,
    get_checked,
    load_workbook_bytes,
    set_name_and_groups,
)
from tests.support.clients.user_files import import_users
from tests.support.domain.builders import roster_of

CODES = (BookingStatus, SlotStatus, Attendance, BookingLimit, MadeAs)
BERLIN = ZoneInfo("Europe/Berlin")
PUPILS = {
    "Becker;Björn": "10a",
    "Zander;Ada": "5a",
    "王;伟": "5a",
    "陈;静": "5a",
    "Adler;Zoe": "5a",
}
FIND_USERS = "query($text: String) { users(filter: {text: $text}, first: 9) { nodes { id } } }"
COLUMNS = ["slot", "start", "end", "time_zone", "location", "name", "email", "groups", "status",
           "held_until", "created_at", "created_by", "waiting_since",
           "overridden_limits", "attendance", "checked_in_at", "waiting_position",
           "resources", "meetings", "number", "periods", "made_as", "guardians"]  # fmt: skip


async def email_of(client: BookingClient) -> str:
    """Return the email address of a user."""
    return str((await client.execute("{ me { email } }"))["email"])


def in_berlin(time: str) -> str:
    """Return a time of a GraphQL response as a CSV file shows it: in Berlin, to the second."""
    return datetime.fromisoformat(time).astimezone(BERLIN).isoformat(timespec="seconds")


async def slot_rows(organizer: BookingClient, slot_id: str) -> list[dict[str, str]]:
    """Download the roster of a slot as CSV."""
    return csv_rows(await download_export(organizer, f"slots/{slot_id}.csv"))


async def test_the_meetings_of_a_course_are_columns_with_what_is_recorded(
    users: RosterUsers,
) -> None:
    ada, ben, cleo, organizer = users
    slot_id, booking_id, starts = await booked_course(
        organizer, ada, 1, 3, 30, title="Choir", timeZone="Europe/Berlin", capacity=2
    )
    await organizer.book_slot(slot_id, userId=await ben.fetch_user_id())
    await cleo.join(slot_id)
    for meeting in starts[:2]:
        await check_in(organizer, bookingId=booking_id, meetingStartTime=meeting)
    await organizer.execute(UNDO_CHECK_IN, booking=booking_id, meeting=starts[0])
    rows = await slot_rows(organizer, slot_id)
    columns = [in_berlin(start) for start in starts]
    assert list(rows[0]) == [*COLUMNS, *columns]
    shown = [[row[column] for column in columns] for row in rows]
    assert shown == [["", "CHECKED_IN", ""], [""] * 3, [""] * 3]
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    sheet = [[cell.value for cell in row[-3:]] for row in book.worksheets[-1].iter_rows()]
    titles = [column[:16].replace("T", " ") for column in columns]
    assert sheet == [titles, [None, "CHECKED_IN", None], [None] * 3]
    pdf = PdfReader(BytesIO(await download_export(organizer, f"slots/{slot_id}.pdf")))
    (page,) = [page.extract_text() for page in pdf.pages]
    times = [format_short_time(datetime.fromisoformat(column), "en") for column in columns]
    assert all(time in page for time in times)
    assert "Signature" not in page


async def test_a_slot_has_a_row_for_each_booking_by_name(users: RosterUsers) -> None:
    ada, ben, cleo, organizer = users
    slot_id = await organizer.add_slot(**COURSE, capacity=2)
    booking = (await ada.book_slot(slot_id))["booking"]
    hold = await organizer.hold(slot_id, userId=await ben.fetch_user_id())
    entry = (await cleo.join(slot_id))["entry"]
    await ada.cancel_booking(booking["id"])
    promoted = (await cleo.fetch_slot(slot_id))["myBooking"]
    rows = await slot_rows(organizer, slot_id)
    assert list(rows[0]) == COLUMNS
    slot_cells = {
        "slot": COURSE["title"],
        "start": COURSE["startTime"],
        "end": COURSE["endTime"],
        "time_zone": "Europe/Berlin",
        "location": "Bad, Bahn 3",
    }
    for row in rows:
        assert row.items() >= slot_cells.items()
    of_ben, of_cleo = rows
    assert (of_ben["name"], of_ben["email"]) == ("Ben", await email_of(ben))
    assert (of_ben["groups"], of_ben["status"], of_ben["created_by"]) == ("5b", "HELD", "Olga")
    assert of_ben["held_until"] == in_berlin(hold["heldUntil"])
    assert (of_cleo["name"], of_cleo["status"]) == ("Cleo", "CONFIRMED")
    assert (of_cleo["held_until"], of_cleo["created_by"]) == ("", "")
    assert of_cleo["created_at"] == in_berlin(promoted["createdAt"])
    assert of_cleo["waiting_since"] == in_berlin(entry["since"])


async def test_a_table_in_a_language_has_its_titles_and_words(users: RosterUsers) -> None:
    ada, ben, cleo, organizer = users
    slot_id = await organizer.add_slot(**COURSE, capacity=2, draft=False)
    # The rows are in the order of the page, not that of booking.
    await cleo.book_slot(slot_id)
    await ada.book_slot(slot_id)
    await ben.join(slot_id)
    rows = csv_rows(await download_export(organizer, f"slots/{slot_id}.csv?language=de"))
    assert [(row["Name"], row["Status"]) for row in rows] == [
        ("Ada Löwe", "bestätigt"),
        ("Cleo", "bestätigt"),
        ("Ben", "wartet"),
    ]
    assert rows[0].items() >= {"Ort": "Bad, Bahn 3", "Anwesenheit": "nicht erfasst"}.items()
    link = await organizer.execute(CREATE_LINK, id=slot_id, format="XLSX", language="DE")
    answer = await organizer.http.get(f"{organizer.url}{link['url']}")
    book = load_workbook_bytes(answer.content)
    names = ["Alle", "Übersicht", "Wartelisten", "2. Juli 09.00 Schwimmen für Anf"]
    assert book.sheetnames == names
    assert (
        book.worksheets[1]["B2"].number_format == "m/d/yy h:mm"
    )  # as Excel of the reader shows it
    summary = [cell.value for cell in book.worksheets[1][2]]
    assert (summary[0], summary[5]) == (COURSE["title"], "veröffentlicht")
    for query in ("language=xx", "lang=de", "language=de&language=de"):
        response = await get_checked(organizer, f"exports/slots/{slot_id}.csv?{query}")
        assert (response.status_code, "language" in response.text) == (400, True)
        assert response.json()["code"] == "BAD_USER_INPUT"
    answer = await organizer.http.get(f"{organizer.url}{link['url']}?utm_source=mail")
    assert answer.status_code == 200


async def test_lists_for_readers_are_by_class_and_family_name(organizer: BookingClient) -> None:
    tag = secrets.token_hex(4)
    lines = [
        "Nachname;Vorname;Benutzername;Klasse",
        *(f"{names};{tag}.{names[0]};{class_} {tag}" for names, class_ in PUPILS.items()),
    ]
    await import_users(organizer, "\n".join(lines).encode())
    found = await organizer.execute(FIND_USERS, text=tag)
    resource_ids = await create_resources(organizer, f"Raum 7 {tag}")
    slot_id = await organizer.add_slot(**COURSE, capacity=5, resourceIds=resource_ids)
    for user in found["nodes"]:
        await organizer.book_slot(slot_id, userId=user["id"])
    path = f"exports/slots/{slot_id}.xlsx?language=de"
    response = await get_checked(organizer, path)
    assert "anfanger-teilnehmer-2035-07-02.xlsx" in response.headers["content-disposition"]
    sheet = load_workbook_bytes(response.content).worksheets[0]
    rows = [[cell.value for cell in row][:5] for row in sheet.iter_rows()]
    course = [COURSE["title"], f"Bad, Bahn 3, Raum 7 {tag}"]
    assert rows == [
        ["Klasse", "Nachname", "Vorname", "Kurs", "Ort"],
        [f"5a {tag}", "Adler", "Zoe", *course],
        [f"5a {tag}", "Zander", "Ada", *course],
        [f"5a {tag}", "陈", "静", *course],
        [f"5a {tag}", "王", "伟", *course],
        [f"10a {tag}", "Becker", "Björn", *course],
    ]
    body = await download_export(organizer, f"slots/{slot_id}.pdf")
    [text] = [page.extract_text() for page in PdfReader(BytesIO(body)).pages]
    places = [text.index(each) for each in ("Adler, Zoe", "Becker, Björn", "Zander, Ada", "陈静")]
    assert [*places, text.index("王伟")] == sorted([*places, text.index("王伟")])
    response = await get_checked(organizer, path.replace("=de", "=zh"))
    assert "anfanger-roster-2035-07-02.xlsx" in response.headers["content-disposition"]
    assert quote("名单-2035-07-02.xlsx") in response.headers["content-disposition"]


def test_every_column_and_every_code_has_a_text_in_each_language() -> None:
    columns = {each.name for each in (*FILE, *WAITING_COLUMNS, *SUMMARY_SHEET, *ALL_COLUMNS)}
    codes = {"WAITING", *(code.name for codes in CODES for code in codes)}
    assert columns | codes <= set(TEXTS)
    assert all({*texts} | {"en"} == {*ExportLanguage} for texts in TEXTS.values())


def test_a_canceled_course_and_an_ended_booking_have_different_words() -> None:
    slot = roster_of("Choir", ["Ada"], SlotStatus.CANCELLED).slot
    assert shown_cells([STATUS], slot, "UTC", ExportLanguage.DE) == ["abgesagt"]
    assert shown_cells([STATUS], slot, "UTC", ExportLanguage.EN) == ["does not take place"]
    assert shown_cells([STATUS], slot, "UTC", None) == ["CANCELLED"]
    assert TEXTS["CANCELLED"]["de"] == "beendet"


async def test_waiting_users_follow_the_bookings_in_their_order(users: RosterUsers) -> None:
    ada, ben, cleo, organizer = users
    slot_id = await organizer.add_slot(**COURSE)
    await ada.book_slot(slot_id)
    await organizer.join(slot_id, await cleo.fetch_user_id())
    entry = (await ben.join(slot_id))["entry"]
    booked, *waiting = await slot_rows(organizer, slot_id)
    assert (booked["name"], booked["waiting_position"]) == ("Ada Löwe", "")
    shown = [
        (row["name"], row["status"], row["waiting_position"], row["created_by"]) for row in waiting
    ]
    assert shown == [("Cleo", "WAITING", "1", "Olga"), ("Ben", "WAITING", "2", "")]
    assert waiting[1]["waiting_since"] == in_berlin(entry["since"])
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    rows = [[cell.value for cell in row] for row in book["Waiting lists"].iter_rows(min_row=2)]
    assert [(row[0], *row[5:7], row[10]) for row in rows] == [
        (COURSE["title"], 1, "Cleo", "Olga"),
        (COURSE["title"], 2, "Ben", None),
    ]


async def test_a_column_of_every_sheet_names_all_resources(users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    resources = await create_resources(organizer, "Halle 7", "Frau Ünal")
    slot_id = await organizer.add_slot(**COURSE, resourceIds=resources)
    await ada.book_slot(slot_id)
    await ben.join(slot_id)
    rows = await slot_rows(organizer, slot_id)
    assert [row["resources"] for row in rows] == ["Halle 7;Frau Ünal"] * 2
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    for sheet in book.worksheets:
        header, row = ([cell.value for cell in cells] for cells in sheet.iter_rows(max_row=2))
        assert row[header.index("Rooms and devices")] == "Halle 7;Frau Ünal", sheet.title


async def test_every_file_says_when_a_course_meets(users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    timetable = {
        "first": "2031-05-05",
        "last": "2031-06-30",
        "holidays": ["2031-06-09"],
        "weekly": [{"weekday": "MONDAY", "startTime": "10:00", "endTime": "11:00"}],
    }
    slot_id = await organizer.add_slot(
        timeZone="Europe/Berlin", timetable=timetable, startTime=None, endTime=None
    )
    await ada.book_slot(slot_id)
    await ben.join(slot_id)
    days = ("05-05", "05-12", "05-19", "05-26", "06-02", "06-16", "06-23", "06-30")
    meetings = [f"2031-{day}T10:00:00+02:00/2031-{day}T11:00:00+02:00" for day in days]
    german = "montags 10:00–11:00, 5. Mai bis 30. Juni 2031, nicht am 9. Juni (Ortszeit Berlin)"  # noqa: RUF001
    for query, title, text in (
        ("", "meetings", ";".join(meetings)), ("?language=de", "Treffen", german)
    ):  # fmt: skip
        rows = csv_rows(await download_export(organizer, f"slots/{slot_id}.csv{query}"))
        assert [row[title] for row in rows] == [text] * 2
        body = await download_export(organizer, f"slots/{slot_id}.xlsx{query}")
        for sheet in load_workbook_bytes(body).worksheets:
            if sheet.title == "Alle":  # has the start only
                continue
            header, cells = list(sheet.iter_rows(max_row=2, values_only=True))
            assert cells[header.index(title.capitalize())] == text, sheet.title
    pdf = PdfReader(BytesIO(await download_export(organizer, f"slots/{slot_id}.pdf")))
    english = "Mondays 10:00–11:00, May 5 to June 30, 2031, not on June 9 (Berlin time)"  # noqa: RUF001
    assert english in pdf.pages[0].extract_text()


async def test_a_row_has_the_groups_that_counted_for_the_booking_or_else_the_current_ones(
    two_apps: Pair, users: RosterUsers
) -> None:
    ada, organizer = users.ada, users.organizer
    limited = await organizer.add_slot(groupLimits=[{"group": "5a", "limit": 1}])
    unlimited = await organizer.add_slot()
    await ada.book_slot(limited)
    await ada.book_slot(unlimited)
    await set_name_and_groups(two_apps[0].environment["SLOTLOCK_MONGO_URL"], ada, "Ada", "6a")
    for slot_id, groups in ((limited, ["5a", "choir"]), (unlimited, ["6a"])):
        (row,) = await slot_rows(organizer, slot_id)
        assert sorted(row["groups"].split(";")) == groups


async def test_a_row_names_the_overridden_limits(users: RosterUsers) -> None:
    ada, organizer = users.ada, users.organizer
    slot_id = await organizer.add_slot()
    await organizer.update_slot(slot_id, startTime="2020-01-01T00:00:00Z")
    await organizer.book_slot(slot_id, userId=await ada.fetch_user_id())
    (row,) = await slot_rows(organizer, slot_id)
    assert (row["overridden_limits"], row["created_by"]) == ("SLOT_STARTED", "Olga")


async def test_an_expired_hold_is_not_on_the_roster(two_apps: Pair, users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    slot_id = await organizer.add_slot(capacity=3)
    await ada.hold(slot_id)
    await ben.book_slot(slot_id)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id, expired_for_s=60)
    (row,) = await slot_rows(organizer, slot_id)
    assert row["name"] == "Ben"
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    assert [cell.value for cell in book["Summary"][2]][6:12] == [3, 1, 0, 0, 0, 2]


async def test_the_bookings_of_a_cancelled_slot_are_cancelled(users: RosterUsers) -> None:
    ada, ben, _, organizer = users
    slot_id = await organizer.add_slot(capacity=3)
    await ada.book_slot(slot_id)
    await ben.hold(slot_id)
    await organizer.cancel_slot(slot_id)
    rows = await slot_rows(organizer, slot_id)
    assert [row["status"] for row in rows] == ["CANCELLED", "CANCELLED"]
    assert [row["held_until"] for row in rows] == ["", ""]
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    assert [cell.value for cell in book["Summary"][2]][5:12] == ["CANCELLED", 3, 0, 0, 2, 0, 0]
    assert [cell.value for cell in book["Summary"][3]][6:12] == [0, 0, 0, 2, 0, 0]


async def test_text_from_users_and_organizers_never_becomes_a_formula(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    # Names of users, and the cells that a CSV file has for them.
    csv_cells = {
        "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@sum": "'@sum", " =1+1": "' =1+1",
        "a;=1+1": "a;'=1+1", "\uff1d1+1": "'\uff1d1+1", "http://a.example": "http://a.example",
        "1": "1", "_x000D_": "_x000D_", "\ufffe": "\ufffe", '"=1"': '"=1"',
        "\U0001f3ca": "\U0001f3ca",
    }  # fmt: skip
    # Excel escapes `_x` and characters that XML cannot hold; openpyxl does not unescape them.
    excel_escapes = {"_x000D_": "_x005F_x000D_", "\ufffe": "_xFFFE_"}
    members, organizer = create_booking_clients(http, len(csv_cells), *two_apps)
    title = "=HYPERLINK(1)"
    slot_id = await organizer.add_slot(title=title, location="+49 30", capacity=len(csv_cells))
    for member, name in zip(members, csv_cells, strict=True):
        await set_name_and_groups(two_apps[0].environment["SLOTLOCK_MONGO_URL"], member, name)
        await member.book_slot(slot_id)
    rows = await slot_rows(organizer, slot_id)
    assert sorted(row["name"] for row in rows) == sorted(csv_cells.values())
    assert {(row["slot"], row["location"]) for row in rows} == {(f"'{title}", "'+49 30")}
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    names = []
    for cells in book.worksheets[2].iter_rows(min_row=2):
        text_cells = (cells[0], cells[4], cells[5])
        assert {(cell.data_type, cell.hyperlink) for cell in text_cells} == {("s", None)}
        assert (cells[0].value, cells[4].value) == (title, "+49 30")
        names.append(cells[5].value)
    assert sorted(names) == sorted(excel_escapes.get(each, each) for each in csv_cells)


async def test_only_organizers_get_rosters(users: RosterUsers) -> None:
    ada, organizer = users.ada, users.organizer
    path = f"exports/slots/{await organizer.add_slot()}.csv"
    for client, status, code in (
        (ada, 403, "FORBIDDEN"),
        (GraphQLTestClient(ada.http, ada.url), 401, "UNAUTHENTICATED"),
        (GraphQLTestClient(ada.http, ada.url, "no.such.token"), 401, "UNAUTHENTICATED"),
    ):
        response = await get_checked(client, path)
        assert (response.status_code, response.json()["code"]) == (status, code)
    response = await organizer.http.post(f"{organizer.url}/{path}", headers=organizer.headers)
    assert (response.status_code, response.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    ["slots/slot_" + "0" * 24 + ".csv", "campaigns/campaign_" + "0" * 24 + ".xlsx",
     "slots/slot_1.csv", "slots/campaign_" + "0" * 24 + ".csv", "slots/.csv", "slots/%00.csv",
     "slots/slot_" + "0" * 24 + ".pdf", "slots/slot_" + "0" * 24, "slots", "", "users/1.csv",
     "slots/slot_" + "0" * 24 + ".csv/", "slots/..%2f..%2fetc.csv", "slots/" + "x" * 2000 + ".csv",
     "slots/%FF.csv", "slots/slot_" + "0" * 24 + "%0A.csv"],
)  # fmt: skip
async def test_an_unknown_path_gets_404(users: RosterUsers, path: str) -> None:
    response = await get_checked(users.organizer, f"exports/{path}")
    assert response.status_code == 404
    assert response.json()["error"]


async def test_two_exports_without_a_change_in_between_are_equal_byte_for_byte(
    two_apps: Pair, users: RosterUsers
) -> None:
    ada, ben, cleo, organizer = users
    campaign_id = await create_campaign(organizer)
    for number in range(3):
        fields = COURSE if number < 2 else {}  # two slots start at the same time
        slot_id = await organizer.add_slot(**fields, campaignId=campaign_id, capacity=5)
        for member in (cleo, ada, ben):
            await member.book_slot(slot_id)
    elsewhere = BookingClient(organizer.http, two_apps[1].url, organizer.token)
    for file_format in ("csv", "xlsx"):
        path = f"campaigns/{campaign_id}.{file_format}"
        first, second, third = [
            await download_export(client, path) for client in (organizer, organizer, elsewhere)
        ]
        assert first == second == third
