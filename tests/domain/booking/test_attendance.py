"""Attendance is what the history of a booking says last, and a move starts without one."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import Attendance
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.outcomes import BookingMoved, CheckedIn, NoShowMarked
from slotlock.domain.booking.refusals import BookingNotFound, CheckInNotOpen, SlotNotStarted
from slotlock.domain.booking.rules.attendance import (
    CHECK_IN_OPENS_BEFORE_START,
    check_in,
    mark_no_show,
    undo_no_show,
)
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    INSTANT,
    book_place,
    booking_command,
    booking_request,
    build_slot,
    with_facts,
)
from tests.support.domain.decisions import decide, decide_move

SLOT, BOOKING = book_place(build_slot(), booking_request("ada"))
START, OPENS_AT = SLOT.slot.start, SLOT.slot.start - CHECK_IN_OPENS_BEFORE_START
COMMAND = booking_command(BOOKING, "olga", Role.ORGANIZER)


def attendance_in(state: SlotState) -> Attendance:
    """Return the attendance of the only booking."""
    (booking,) = state.bookings
    return booking.attendance


def test_check_in_opens_12_hours_before_the_start() -> None:
    _, refused = decide(check_in, SLOT, COMMAND, OPENS_AT - INSTANT)
    assert refused == CheckInNotOpen(SLOT.id, OPENS_AT)
    after, outcome = decide(check_in, SLOT, COMMAND, OPENS_AT)
    assert isinstance(outcome, CheckedIn)
    assert attendance_in(after) is Attendance.CHECKED_IN
    assert outcome.booking.check_in is outcome.booking.history[-1]


def test_a_no_show_is_one_from_the_start_of_the_slot_on() -> None:
    _, refused = decide(mark_no_show, SLOT, COMMAND, START - INSTANT)
    assert refused == SlotNotStarted(SLOT.id)
    after, outcome = decide(mark_no_show, SLOT, COMMAND, START)
    assert isinstance(outcome, NoShowMarked)
    undone, _ = decide(undo_no_show, after, COMMAND, START)
    assert (attendance_in(after), attendance_in(undone)) == (
        Attendance.NO_SHOW,
        Attendance.NOT_RECORDED,
    )


def test_attendance_leaves_the_places_as_they_are() -> None:
    after, _ = decide(check_in, SLOT, COMMAND, START)
    assert (after.remaining, after.booked_count) == (SLOT.remaining, SLOT.booked_count)


@pytest.mark.parametrize("rule", [check_in, mark_no_show, undo_no_show])
def test_a_member_cannot_record_attendance(rule: Callable[..., Decision[object]]) -> None:
    command = booking_command(BOOKING, "ada")
    after, refused = decide(rule, SLOT, command, START)
    assert (after, refused) == (SLOT, BookingNotFound(SLOT.id, BOOKING.id))


def test_a_moved_booking_has_no_attendance() -> None:
    checked_in, _ = decide(check_in, SLOT, COMMAND, OPENS_AT)
    other = with_facts(build_slot(), id="other", start=START + timedelta(days=1))
    request = booking_request("ada", organizer="olga")
    _, _, moved = decide_move(checked_in, other, COMMAND, request, OPENS_AT)
    assert isinstance(moved, BookingMoved)
    assert moved.booking.attendance is Attendance.NOT_RECORDED
    assert moved.old_booking.attendance is Attendance.CHECKED_IN
