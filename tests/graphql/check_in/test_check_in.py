"""Who came to a slot: check-in, no-show and undoing them, in two processes and in races."""

import asyncio
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import Pair
from tests.support.clients.attendance import (
    CHECK_IN,
    UNDO_CHECK_IN,
    booked_course,
    booked_soon,
    check_in,
    fetch_code,
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
from tests.support.clients.fixtures import Three
from tests.support.transport.simultaneous_requests import MAX_LUCKY_RUNS, send_simultaneously

SCANNERS = 20


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
    assert (await mark_no_show(organizer, booking_id))["code"] == "ALREADY_CHECKED_IN"
    undone = (await organizer.execute(UNDO_CHECK_IN, booking=booking_id))["booking"]
    assert (undone["attendance"], undone["checkedInAt"]) == ("NOT_RECORDED", None)


async def test_a_check_in_names_one_booking(clients: Three) -> None:
    ada, _, organizer = clients
    _, booking_id = await booked_soon(organizer, ada)
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


async def test_each_meeting_of_a_course_has_its_attendance_in_booking_roster_and_statistics(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id, booking_id, starts = await booked_course(
        organizer, ada, -30, -0.5, 30, campaignId=campaign_id, capacity=2
    )
    await mark_no_show(organizer, booking_id, starts[0])
    done = await check_in(organizer, bookingId=booking_id)
    assert done["meeting"] == {"startTime": starts[1]}
    again = await check_in(organizer, bookingId=booking_id, meetingStartTime=starts[1])
    assert again["code"] == "ALREADY_CHECKED_IN"
    early = await check_in(organizer, bookingId=booking_id, meetingStartTime=starts[2])
    assert early["code"] == "CHECK_IN_NOT_OPEN"
    unknown = await check_in(organizer, bookingId=booking_id, meetingStartTime=hours_from_now(5))
    assert unknown["code"] == "INVALID_INPUT"
    other = await organizer.book_slot(slot_id, userId=await ben.fetch_user_id())
    await mark_no_show(organizer, other["booking"]["id"])
    roster = await organizer.execute(
        """query($id: ID!) { slotRoster(slotId: $id) { nodes {
          attendance attendanceByMeeting { attendance meeting { startTime } checkedInBy { id } }
        } } }""",
        id=slot_id,
    )
    statistics = await organizer.execute(
        "query($id: ID!) { campaignStatistics(campaignId: $id) { checkedIn noShows } }",
        id=campaign_id,
    )
    log = await organizer.execute(
        """query($id: ID!) { auditLog(first: 1, filter: {slotId: $id, actions: [CHECKED_IN]}) {
          nodes { meetingStartTime }
        } }""",
        id=slot_id,
    )
    history = await organizer.execute(
        """query($id: ID!) { node(id: $id) {
          ... on Booking { history { action meetingStartTime } }
        } }""",
        id=booking_id,
    )
    of_ada, of_ben = roster["nodes"]
    by = {"id": await organizer.fetch_user_id()}
    assert (of_ada["attendance"], of_ben["attendance"]) == ("CHECKED_IN", "NO_SHOW")
    assert of_ada["attendanceByMeeting"] == [
        {"attendance": attendance, "meeting": {"startTime": start}, "checkedInBy": organizer_shown}
        for start, attendance, organizer_shown in zip(
            starts, ("NO_SHOW", "CHECKED_IN", "NOT_RECORDED"), (None, by, None), strict=True
        )
    ]
    assert statistics == {"checkedIn": 1, "noShows": 1}
    assert log == {"nodes": [{"meetingStartTime": starts[1]}]}
    recorded = [(each["action"], each["meetingStartTime"]) for each in history["history"]]
    assert recorded == [("BOOKED", None), ("NO_SHOW", starts[0]), ("CHECKED_IN", starts[1])]


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


async def scan_at_once(
    apps: Pair, ada: BookingClient, organizer: BookingClient
) -> tuple[Counter[str], list[str]]:
    """Return the results of scanners at both processes, and the history of a booking.

    They check the user in for one meeting of a course.
    """
    slot_id, booking_id, (now, _) = await booked_course(organizer, ada, 1, 30)
    names = {"code": await fetch_code(ada, booking_id), "slotId": slot_id, "waitMs": 20_000}
    # Some name the meeting, and for the others it is the meeting of now.
    inputs = ({**names, "meetingStartTime": now}, names)
    outcomes = await send_simultaneously(
        [
            (apps[n % 2].url, organizer.token or "", CHECK_IN, {"input": inputs[n % 3 % 2]})
            for n in range(SCANNERS)
        ]
    )
    history = (await organizer.fetch_booking(booking_id))["history"]
    results = Counter(str(outcome["__typename"]) for outcome in outcomes)
    return results, [entry["action"] for entry in history]


async def test_of_20_scanners_at_two_processes_exactly_one_checks_in(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    results, history = await scan_at_once(two_apps, ada, organizer)
    assert results == {"CheckedIn": 1, "AlreadyCheckedIn": SCANNERS - 1}
    assert history == ["BOOKED", "CHECKED_IN"]


async def test_control_without_lock_and_version_both_processes_check_in(
    two_apps: Pair, http: httpx.AsyncClient, log_dir: Path
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    environment, guards = two_apps[0].environment, "lock slot-version transaction"
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(app_variant(environment, log_dir / name, without_guards=guards))
            for name in "ab"
        )
        for _ in range(MAX_LUCKY_RUNS):
            results, _ = await scan_at_once((first, second), ada, organizer)
            if results["CheckedIn"] > 1:
                break
    assert results["CheckedIn"] > 1
