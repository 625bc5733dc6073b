"""Attendance of the meetings of a slot: which meeting counts, and what corrections leave."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.booking import (
    Attendance,
    Booking,
    BookingAction,
    BookingStatus,
    HistoryEntry,
)
from slotlock.domain.booking.booking_outcomes import (
    CheckedIn,
    CheckInUndone,
    NoShowMarked,
    NoShowUndone,
)
from slotlock.domain.booking.booking_refusals import (
    AlreadyCheckedIn,
    BookingNotFound,
    CheckInNotOpen,
    NotConfirmed,
    SlotCancelled,
    SlotNotStarted,
)
from slotlock.domain.booking.decision import BookingChangeRequest, BookingRule
from slotlock.domain.booking.rules.attendance import (
    check_in,
    mark_no_show,
    undo_check_in,
    undo_no_show,
)
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    HOUR,
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    change_request,
    with_facts,
)
from tests.support.domain.decisions import decide

WEEK = timedelta(days=7)
# Two meetings on the first day, and one in each of the two weeks after it.
STARTS = [NOW + WEEK, NOW + WEEK + 3 * HOUR, NOW + 2 * WEEK, NOW + 3 * WEEK]
MEETINGS = tuple(Meeting(start, start + HOUR) for start in STARTS)
CAME, MISSED, OPEN = Attendance.CHECKED_IN, Attendance.NO_SHOW, Attendance.NOT_RECORDED


def booked_course() -> tuple[SlotState, BookingChangeRequest]:
    """Return a course with a booking, and the request of an organizer to change it."""
    course = build_slot(start=STARTS[0], end=MEETINGS[-1].end, meetings=MEETINGS)
    state, (booking,) = book_users(course, "ada")
    return state, change_request(booking, "eve", Role.ORGANIZER)


def of_meetings(state: SlotState) -> list[Attendance]:
    """Return the attendance of the only booking at each meeting."""
    return [each.attendance for each in state.bookings[0].attendance_at(state.slot.all_meetings)]


@pytest.mark.parametrize(
    ("now", "checked_in", "missed"),
    [
        (STARTS[0] - 13 * HOUR, None, None),
        (STARTS[0] - 12 * HOUR, 0, None),
        (STARTS[0], 0, 0),
        (STARTS[0] + HOUR, 1, 0),  # the first is over, the second not
        (STARTS[1] + HOUR, 1, 1),  # nothing follows within 12 hours
        (STARTS[2] - 12 * HOUR, 2, 1),
        (STARTS[3] + 30 * WEEK, 3, 3),
    ],
)
def test_without_a_name_it_is_the_meeting_of_now(
    now: datetime, checked_in: int | None, missed: int | None
) -> None:
    state, command = booked_course()
    _, came = decide(check_in, state, command, now)
    _, did_not_come = decide(mark_no_show, state, command, now)
    if checked_in is None:
        assert came == CheckInNotOpen(state.id, STARTS[0] - 12 * HOUR)
    else:
        assert isinstance(came, CheckedIn)
        assert came.meeting == MEETINGS[checked_in]
    if missed is None:
        assert isinstance(did_not_come, SlotNotStarted)
    else:
        assert isinstance(did_not_come, NoShowMarked)
        assert did_not_come.meeting == MEETINGS[missed]


def test_only_organizers_and_leaders_of_the_slot_record_the_attendance() -> None:
    state, request = booked_course()
    member = replace(request.caller, role=Role.MEMBER)
    for leads, found in ((), False), (("elsewhere",), False), ((state.id,), True):
        leader = replace(request, caller=replace(member, leads=frozenset(leads)))
        for rule in (check_in, undo_check_in, mark_no_show, undo_no_show):
            _, outcome = decide(rule, state, leader, NOW)
            assert isinstance(outcome, BookingNotFound) is not found, rule.name


def test_each_meeting_has_an_attendance_of_its_own() -> None:
    state, command = booked_course()
    now = STARTS[2]
    state, _ = decide(check_in, state, command, now, meeting_start=STARTS[0])
    state, _ = decide(mark_no_show, state, command, now, meeting_start=STARTS[1])
    state, last = decide(check_in, state, command, now)
    assert of_meetings(state) == [CAME, MISSED, CAME, OPEN]
    assert isinstance(last, CheckedIn)
    assert last.booking.attendance is CAME
    _, again = decide(check_in, state, command, now + HOUR, meeting_start=STARTS[0])
    assert isinstance(again, AlreadyCheckedIn)
    assert (again.meeting, again.checked_in_at) == (MEETINGS[0], now)
    _, refused = decide(mark_no_show, state, command, now)
    assert isinstance(refused, AlreadyCheckedIn)
    state, undone = decide(undo_check_in, state, command, now)
    assert isinstance(undone, CheckInUndone)
    assert of_meetings(state) == [CAME, MISSED, OPEN, OPEN]
    state, undone = decide(undo_check_in, state, command, now, meeting_start=STARTS[0])
    assert isinstance(undone, CheckInUndone)
    assert undone.booking.attendance is MISSED  # came to none, and missed one
    state, taken_back = decide(undo_no_show, state, command, now, meeting_start=STARTS[1])
    assert isinstance(taken_back, NoShowUndone)
    assert taken_back.booking.attendance is OPEN


def test_a_meeting_of_the_future_is_refused_and_a_time_without_a_meeting_is_invalid() -> None:
    state, command = booked_course()
    early = CheckInNotOpen(state.id, STARTS[3] - 12 * HOUR)
    assert decide(check_in, state, command, STARTS[0], meeting_start=STARTS[3])[1] == early
    _, missed = decide(mark_no_show, state, command, STARTS[0], meeting_start=STARTS[1])
    assert isinstance(missed, SlotNotStarted)
    for change in (check_in, undo_check_in, mark_no_show, undo_no_show):
        _, refused = decide(change, state, command, STARTS[0], meeting_start=STARTS[0] + HOUR)
        assert isinstance(refused, InvalidInput)
        assert refused.problems[0].field == "meetingStartTime"


def test_a_change_that_is_undone_twice_is_one_entry_and_can_be_repeated() -> None:
    state, command = booked_course()
    for record, undo in ((check_in, undo_check_in), (mark_no_show, undo_no_show)):
        state, done = decide(record, state, command, STARTS[0])
        state, _ = decide(undo, state, command, STARTS[0])
        again, _ = decide(undo, state, command, STARTS[0])
        assert again == state
        assert of_meetings(state) == [OPEN] * 4
        assert type(decide(record, state, command, STARTS[0])[1]) is type(done)


def test_a_late_user_is_checked_in_and_marking_a_no_show_twice_changes_nothing() -> None:
    state, command = booked_course()
    state, marked = decide(mark_no_show, state, command, STARTS[0])
    assert decide(mark_no_show, state, command, STARTS[0]) == (state, marked)
    state, _ = decide(check_in, state, command, STARTS[0])
    assert of_meetings(state)[0] is CAME
    assert isinstance(decide(mark_no_show, state, command, STARTS[0])[1], AlreadyCheckedIn)
    assert decide(undo_no_show, state, command, STARTS[0])[0] == state


@pytest.mark.parametrize("change", [check_in, undo_check_in, mark_no_show, undo_no_show])
def test_holds_ended_bookings_and_cancelled_slots_have_no_attendance(
    change: BookingRule[..., object],
) -> None:
    state, (booking,) = book_users(build_slot(2), "ada")
    held, hold = book_place(state, booking_request("ben", hold=True))
    request = change_request(hold, "eve", Role.ORGANIZER)
    assert decide(change, held, request, NOW) == (held, NotConfirmed(state.id, hold))
    command = change_request(booking, "eve", Role.ORGANIZER)
    cancelled, _ = decide(cancel, state, command, NOW)
    refused = NotConfirmed(state.id, cancelled.change.ended[0])
    assert decide(change, cancelled, command, NOW) == (cancelled, refused)
    assert change.ended_outcome(cancelled.change.ended[0]) == refused
    off = with_facts(state, status=SlotStatus.CANCELLED)
    assert decide(change, off, command, NOW) == (off, SlotCancelled(off.id))


def recorded_before_meetings(booking: Booking, action: BookingAction) -> Booking:
    """Return the booking with an entry of the time when its slot had one meeting."""
    return booking.with_entry(HistoryEntry(STARTS[0], None, action, BookingStatus.CONFIRMED))


def test_an_entry_without_a_meeting_is_about_all_of_them_until_one_is_corrected() -> None:
    state, command = booked_course()
    recorded = recorded_before_meetings(state.bookings[0], BookingAction.CHECKED_IN)
    state = replace(state, bookings=(recorded,))
    assert recorded.attendance is CAME
    assert of_meetings(state) == [CAME] * 4
    assert isinstance(decide(check_in, state, command, STARTS[1])[1], AlreadyCheckedIn)
    corrected, _ = decide(undo_check_in, state, command, STARTS[1], meeting_start=STARTS[1])
    assert of_meetings(corrected) == [CAME, OPEN, CAME, CAME]
    undone, _ = decide(undo_check_in, state, command, STARTS[1])
    assert of_meetings(undone) == [OPEN] * 4
    assert undone.bookings[0].attendance is OPEN


def test_the_only_meeting_of_a_slot_can_be_named_and_its_entry_does_not_name_it() -> None:
    state, (booking,) = book_users(build_slot(), "ada")
    command = change_request(booking, "eve", Role.ORGANIZER)
    moved_later = state.slot.start + HOUR
    start = state.slot.start
    state, done = decide(check_in, state, command, start, meeting_start=start)
    assert isinstance(done, CheckedIn)
    assert done.booking.history[-1].meeting_start is None
    moved = replace(state, slot=replace(state.slot, start=moved_later))
    assert of_meetings(moved) == [CAME]
