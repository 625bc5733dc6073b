"""Who came to a slot: check-in, no-show and undoing them, in two processes."""

import asyncio
from contextlib import suppress

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.attendance import (
    CHECK_IN,
    MARK_NO_SHOW,
    UNDO_CHECK_IN,
    UNDO_NO_SHOW,
    booked_soon,
    check_in,
    mark_no_show,
    missed,
)
from tests.support.clients.booking_client import (
    WATCH_MY_BOOKINGS,
    BookingClient,
    create_booking_clients,
)
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now, open_websocket
from tests.support.clients.exports import csv_rows, download_export

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


async def test_a_check_in_is_in_the_booking_and_its_history_and_a_second_one_names_the_first(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    slot_id, booking_id = await booked_soon(organizer, ada)
    by = {"id": await organizer.fetch_user_id()}
    done = await check_in(organizer, bookingId=booking_id, slotId=slot_id)
    assert (done["__typename"], done["slot"]["id"]) == ("CheckedIn", slot_id)
    booking = done["booking"]
    assert (booking["attendance"], booking["checkedInBy"]) == ("CHECKED_IN", by)
    assert booking["history"][-1] == {"action": "CHECKED_IN", "by": by}
    again = await check_in(organizer, bookingId=booking_id)
    assert (again["__typename"], again["code"]) == ("AlreadyCheckedIn", "ALREADY_CHECKED_IN")
    assert (again["checkedInAt"], again["checkedInBy"]) == (booking["checkedInAt"], by)
    own = await ada.execute(
        "query($id: ID!) { slot(id: $id) { myBooking { attendance checkedInAt } } }", id=slot_id
    )
    expected = {"attendance": "CHECKED_IN", "checkedInAt": booking["checkedInAt"]}
    assert own["myBooking"] == expected


async def test_an_undone_check_in_can_be_repeated_and_undoing_twice_is_harmless(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    _, booking_id = await booked_soon(organizer, ada)
    await check_in(organizer, bookingId=booking_id)
    for _ in range(2):
        undone = await organizer.execute(UNDO_CHECK_IN, booking=booking_id)
        assert undone["__typename"] == "CheckInUndone"
        assert undone["booking"]["attendance"] == "NOT_RECORDED"
        assert undone["booking"]["checkedInAt"] is None
    actions = [entry["action"] for entry in undone["booking"]["history"]]
    assert actions == ["BOOKED", "CHECKED_IN", "CHECK_IN_UNDONE"]
    assert (await check_in(organizer, bookingId=booking_id))["__typename"] == "CheckedIn"


async def test_a_no_show_is_marked_after_the_start_only_and_a_late_user_is_checked_in(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    slot_id, booking_id = await booked_soon(organizer, ada)
    assert (await mark_no_show(organizer, booking_id))["code"] == "SLOT_NOT_STARTED"
    await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    marked = await mark_no_show(organizer, booking_id)
    assert marked == await mark_no_show(organizer, booking_id)
    assert marked["booking"]["attendance"] == "NO_SHOW"
    late = await check_in(organizer, bookingId=booking_id)
    assert late["booking"]["attendance"] == "CHECKED_IN"
    assert (await mark_no_show(organizer, booking_id))["code"] == "ALREADY_CHECKED_IN"
    unchanged = await organizer.execute(UNDO_NO_SHOW, booking=booking_id)
    assert unchanged["booking"]["attendance"] == "CHECKED_IN"


async def test_holds_and_bookings_that_ended_or_are_too_early_cannot_be_checked_in(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    slot_id, booking_id = await booked_soon(organizer, ada, capacity=2)
    hold = await ben.hold(slot_id)
    assert (await check_in(organizer, bookingId=hold["id"]))["code"] == "NOT_CONFIRMED"
    await ada.cancel_booking(booking_id)
    refused = await check_in(organizer, bookingId=booking_id)
    assert (refused["code"], refused["booking"]["status"]) == ("NOT_CONFIRMED", "CANCELLED")
    later = await organizer.add_slot(startTime=hours_from_now(13), endTime=hours_from_now(14))
    early_id = (await ada.book_slot(later))["booking"]["id"]
    assert (await check_in(organizer, bookingId=early_id))["code"] == "CHECK_IN_NOT_OPEN"
    await organizer.cancel_slot(later)
    assert (await check_in(organizer, bookingId=early_id))["code"] == "SLOT_CANCELLED"
    assert (await check_in(organizer, bookingId="x"))["code"] == "BOOKING_NOT_FOUND"


async def test_only_organizers_record_attendance_and_name_one_booking(clients: Three) -> None:
    ada, _, organizer = clients
    _, booking_id = await booked_soon(organizer, ada)
    assert await ada.error_code(CHECK_IN, input={"bookingId": booking_id}) == "FORBIDDEN"
    for document in (UNDO_CHECK_IN, MARK_NO_SHOW, UNDO_NO_SHOW):
        assert await ada.error_code(document, booking=booking_id) == "FORBIDDEN"
    for fields in ({}, {"bookingId": booking_id, "code": "x"}):
        assert await organizer.error_code(CHECK_IN, input=fields) == "BAD_USER_INPUT"


async def test_the_roster_its_export_and_the_statistics_show_who_came(clients: Three) -> None:
    ada, ben, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id, came = await booked_soon(organizer, ada, capacity=5, campaignId=campaign_id)
    missed_id = (await ben.book_slot(slot_id))["booking"]["id"]
    await check_in(organizer, bookingId=came)
    await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    await mark_no_show(organizer, missed_id)
    roster = await organizer.execute(
        "query($id: ID!) { slotRoster(slotId: $id) { nodes { attendance checkedInAt } } }",
        id=slot_id,
    )
    assert [each["attendance"] for each in roster["nodes"]] == ["CHECKED_IN", "NO_SHOW"]
    rows = csv_rows(await download_export(organizer, f"slots/{slot_id}.csv"))
    assert [row["attendance"] for row in rows] == ["CHECKED_IN", "NO_SHOW"]
    assert [bool(row["checked_in_at"]) for row in rows] == [True, False]
    statistics = await organizer.execute(
        """query($id: ID!) { campaignStatistics(campaignId: $id) {
          checkedIn noShows slots { nodes { checkedIn noShows } }
        } }""",
        id=campaign_id,
    )
    counts = {"checkedIn": 1, "noShows": 1}
    assert statistics == {**counts, "slots": {"nodes": [counts]}}


async def test_the_audit_log_names_the_organizer_of_each_change(clients: Three) -> None:
    ada, _, organizer = clients
    await missed(organizer, ada)
    log = await organizer.execute(
        """query($user: ID!) { auditLog(first: 1, filter: {userId: $user}) {
          nodes { action by { id } }
        } }""",
        user=await ada.fetch_user_id(),
    )
    by = {"id": await organizer.fetch_user_id()}
    assert log["nodes"] == [{"action": "NO_SHOW", "by": by}]


async def test_my_bookings_reports_a_check_in_to_its_user_at_another_process(
    clients: Three, two_apps: Pair
) -> None:
    ada, _, organizer = clients
    _, booking_id = await booked_soon(organizer, ada)
    async with open_websocket(two_apps[1], ada.token) as watching:
        await watching.subscribe("1", WATCH_MY_BOOKINGS)
        event: Json = {"action": None}
        while event["action"] != "CHECKED_IN":
            # Nothing confirms that a subscription has started, except an event.
            await organizer.execute(UNDO_CHECK_IN, booking=booking_id)
            await check_in(organizer, bookingId=booking_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(3):
                    event = await watching.next_result()
    assert event["by"] == {"id": await organizer.fetch_user_id()}
    assert event["booking"]["id"] == booking_id
