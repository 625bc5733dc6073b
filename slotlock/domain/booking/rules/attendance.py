"""Rules for recording who came to a slot: check-in, no-show, and undoing either.

Attendance is part of the history of a booking, so that it is written together with its author and
its time, and a booking that moves to another slot has none there.
"""

from datetime import datetime, timedelta

from slotlock.domain.booking.booking import (
    Attendance,
    Booking,
    BookingAction,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.booking.decision import Decision, accept, refuse
from slotlock.domain.booking.outcomes import CheckedIn, CheckInUndone, NoShowMarked, NoShowUndone
from slotlock.domain.booking.refusals import (
    AlreadyCheckedIn,
    BookingNotFound,
    CheckInNotOpen,
    NotConfirmed,
    SlotCancelled,
    SlotNotStarted,
    WrongSlot,
)
from slotlock.domain.booking.rules.changes import BookingCommand
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState

# Early enough for every door, and so late that a code for the next day's slot is refused.
CHECK_IN_OPENS_BEFORE_START = timedelta(hours=12)

NoAttendance = BookingNotFound | NotConfirmed | SlotCancelled
CheckInResult = CheckedIn | AlreadyCheckedIn | CheckInNotOpen | WrongSlot | NoAttendance
UndoCheckInResult = CheckInUndone | NoAttendance
MarkNoShowResult = NoShowMarked | AlreadyCheckedIn | SlotNotStarted | NoAttendance
UndoNoShowResult = NoShowUndone | NoAttendance


def check_in(
    state: SlotState,
    command: BookingCommand,
    now: datetime,
    expected_slot_id: SlotId | None = None,
) -> Decision[CheckInResult]:
    """Record that the user came. A user who was marked as a no-show came late.

    `expected_slot_id` is the slot that the caller checks in for, if the caller names one.
    """
    booking = _find_confirmed(state, command)
    if isinstance(booking, BookingNotFound):
        return refuse(booking)
    if expected_slot_id not in (None, state.id):
        return refuse(WrongSlot(state.id))
    if not isinstance(booking, Booking):
        return refuse(booking)
    if booking.attendance is Attendance.CHECKED_IN:
        return refuse(AlreadyCheckedIn(state.id, booking))
    opens_at = state.slot.start - CHECK_IN_OPENS_BEFORE_START
    if now < opens_at:
        return refuse(CheckInNotOpen(state.id, opens_at))
    changed = _with_action(booking, BookingAction.CHECKED_IN, command, now)
    return accept(CheckedIn(state.id, changed), state.with_changed_booking(changed))


def undo_check_in(
    state: SlotState, command: BookingCommand, now: datetime
) -> Decision[UndoCheckInResult]:
    """Take a check-in back. A booking without one stays as it is."""
    booking = _find_confirmed(state, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if booking.attendance is not Attendance.CHECKED_IN:
        return accept(CheckInUndone(state.id, booking))
    changed = _with_action(booking, BookingAction.CHECK_IN_UNDONE, command, now)
    return accept(CheckInUndone(state.id, changed), state.with_changed_booking(changed))


def mark_no_show(
    state: SlotState, command: BookingCommand, now: datetime
) -> Decision[MarkNoShowResult]:
    """Record that the user did not come, once the slot has started."""
    booking = _find_confirmed(state, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if booking.attendance is Attendance.CHECKED_IN:
        return refuse(AlreadyCheckedIn(state.id, booking))
    if booking.attendance is Attendance.NO_SHOW:
        return accept(NoShowMarked(state.id, booking))
    if now < state.slot.start:
        return refuse(SlotNotStarted(state.id))
    changed = _with_action(booking, BookingAction.NO_SHOW, command, now)
    return accept(NoShowMarked(state.id, changed), state.with_changed_booking(changed))


def undo_no_show(
    state: SlotState, command: BookingCommand, now: datetime
) -> Decision[UndoNoShowResult]:
    """Take a no-show back. A booking without one stays as it is."""
    booking = _find_confirmed(state, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if booking.attendance is not Attendance.NO_SHOW:
        return accept(NoShowUndone(state.id, booking))
    changed = _with_action(booking, BookingAction.NO_SHOW_UNDONE, command, now)
    return accept(NoShowUndone(state.id, changed), state.with_changed_booking(changed))


def _find_confirmed(state: SlotState, command: BookingCommand) -> Booking | NoAttendance:
    loaded = (*state.bookings, *state.change.ended)
    booking = next((each for each in loaded if each.id == command.booking_id), None)
    if booking is None or not command.caller.is_organizer:
        return BookingNotFound(state.id, command.booking_id)
    if state.slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(state.id)
    if booking.status is not BookingStatus.CONFIRMED:
        return NotConfirmed(state.id, booking)
    return booking


def _with_action(
    booking: Booking, action: BookingAction, command: BookingCommand, now: datetime
) -> Booking:
    entry = HistoryEntry(now, command.caller.user_id, action, BookingStatus.CONFIRMED)
    return booking.with_entry(entry)
