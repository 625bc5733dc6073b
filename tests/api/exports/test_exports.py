"""Exported rosters: their rows, and who may download them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.exports import (
    RosterUsers,
    create_resources,
    csv_rows,
    download_export,
    get_checked,
    load_workbook_bytes,
    set_name_and_groups,
)

Pair = tuple[AppProcess, AppProcess]
BERLIN = ZoneInfo("Europe/Berlin")
COURSE: Json = {
    "title": "Schwimmen für Anfänger",
    "location": "Bad, Bahn 3",
    "timeZone": "Europe/Berlin",
    "startTime": "2035-07-02T09:00:00+02:00",
    "endTime": "2035-07-02T10:30:00+02:00",
}
COLUMNS = ["slot", "start", "end", "time_zone", "location", "name", "email", "groups", "status",
           "held_until", "created_at", "created_by", "waiting_since",
           "overridden_limits", "attendance", "checked_in_at", "waiting_position",
           "resources"]  # fmt: skip


async def email_of(client: BookingClient) -> str:
    """Return the email address of a user."""
    return str((await client.execute("{ me { email } }"))["email"])


def in_berlin(time: str) -> str:
    """Return a time of a GraphQL response as a CSV file shows it: in Berlin, to the second."""
    return datetime.fromisoformat(time).astimezone(BERLIN).isoformat(timespec="seconds")


async def slot_rows(organizer: BookingClient, slot_id: str) -> list[dict[str, str]]:
    """Download the roster of a slot as CSV."""
    return csv_rows(await download_export(organizer, f"slots/{slot_id}.csv"))


async def test_a_slot_has_a_row_for_each_booking_in_their_order(roster_users: RosterUsers) -> None:
    ada, ben, cleo, organizer = roster_users
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


async def test_users_who_wait_follow_the_bookings_in_the_order_of_the_list(
    roster_users: RosterUsers,
) -> None:
    ada, ben, cleo, organizer = roster_users
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


async def test_the_last_column_of_every_sheet_names_all_resources(
    roster_users: RosterUsers,
) -> None:
    ada, ben, _, organizer = roster_users
    resources = await create_resources(organizer, "Halle 7", "Frau Ünal")
    slot_id = await organizer.add_slot(**COURSE, resourceIds=resources)
    await ada.book_slot(slot_id)
    await ben.join(slot_id)
    rows = await slot_rows(organizer, slot_id)
    assert [row["resources"] for row in rows] == ["Halle 7;Frau Ünal"] * 2
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    for sheet in book.worksheets:
        last_cells = [row[-1].value for row in sheet.iter_rows(max_row=2)]
        assert last_cells == ["Resources", "Halle 7;Frau Ünal"], sheet.title


async def test_a_row_has_the_groups_that_counted_for_the_booking_or_else_the_current_ones(
    two_apps: Pair, roster_users: RosterUsers
) -> None:
    ada, organizer = roster_users.ada, roster_users.organizer
    limited = await organizer.add_slot(groupLimits=[{"group": "5a", "limit": 1}])
    unlimited = await organizer.add_slot()
    await ada.book_slot(limited)
    await ada.book_slot(unlimited)
    await set_name_and_groups(two_apps[0].environment["SLOTLOCK_MONGO_URL"], ada, "Ada", "6a")
    for slot_id, groups in ((limited, ["5a", "choir"]), (unlimited, ["6a"])):
        (row,) = await slot_rows(organizer, slot_id)
        assert sorted(row["groups"].split(";")) == groups


async def test_a_row_names_the_overridden_limits(roster_users: RosterUsers) -> None:
    ada, organizer = roster_users.ada, roster_users.organizer
    slot_id = await organizer.add_slot()
    await organizer.update_slot(slot_id, startTime="2020-01-01T00:00:00Z")
    await organizer.book_slot(slot_id, userId=await ada.fetch_user_id())
    (row,) = await slot_rows(organizer, slot_id)
    assert (row["overridden_limits"], row["created_by"]) == ("SLOT_STARTED", "Olga")


async def test_an_expired_hold_is_not_on_the_roster(
    two_apps: Pair, roster_users: RosterUsers
) -> None:
    ada, ben, _, organizer = roster_users
    slot_id = await organizer.add_slot(capacity=3)
    await ada.hold(slot_id)
    await ben.book_slot(slot_id)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    (row,) = await slot_rows(organizer, slot_id)
    assert row["name"] == "Ben"
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    assert [cell.value for cell in book["Summary"][2]][6:12] == [3, 1, 0, 0, 0, 2]


async def test_the_bookings_of_a_cancelled_slot_are_cancelled(roster_users: RosterUsers) -> None:
    ada, ben, _, organizer = roster_users
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
    assert [row["name"] for row in rows] == list(csv_cells.values())
    assert {(row["slot"], row["location"]) for row in rows} == {(f"'{title}", "'+49 30")}
    book = load_workbook_bytes(await download_export(organizer, f"slots/{slot_id}.xlsx"))
    for name, cells in zip(csv_cells, book.worksheets[2].iter_rows(min_row=2), strict=True):
        text_cells = (cells[0], cells[4], cells[5])
        assert {(cell.data_type, cell.hyperlink) for cell in text_cells} == {("s", None)}
        assert (cells[0].value, cells[4].value) == (title, "+49 30")
        assert cells[5].value == excel_escapes.get(name, name)


async def test_only_organizers_get_rosters(roster_users: RosterUsers) -> None:
    ada, organizer = roster_users.ada, roster_users.organizer
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
async def test_an_unknown_path_gets_404(roster_users: RosterUsers, path: str) -> None:
    response = await get_checked(roster_users.organizer, f"exports/{path}")
    assert response.status_code == 404
    assert response.json()["error"]


async def test_two_exports_without_a_change_in_between_are_equal_byte_for_byte(
    two_apps: Pair, roster_users: RosterUsers
) -> None:
    ada, ben, cleo, organizer = roster_users
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
