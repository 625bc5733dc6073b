"""Rules for recording who came to a slot: check-in, no-show, and undoing either.

Attendance is part of the history of a booking, so that it is written together with its author and
its time, and a booking that moves to another slot has none there. In a slot with several meetings
it is that of one meeting, which its start names. Entries without a meeting are about all of them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import (
    Attendance,
    Booking,
    BookingAction,
    BookingStatus,
    HistoryEntry,
    MeetingAttendance,
    SlotId,
)
from slotlock.domain.booking.booking_outcomes import (
    AttendanceRefusal,
    CheckedIn,
    CheckInOutcome,
    CheckInUndone,
    MarkNoShowOutcome,
    NoShowMarked,
    NoShowUndone,
    UndoCheckInOutcome,
    UndoNoShowOutcome,
)
from slotlock.domain.booking.booking_refusals import (
    AlreadyCheckedIn,
    BookingNotFound,
    CheckInNotOpen,
    NotConfirmed,
    SlotCancelled,
    SlotNotStarted,
    WrongSlot,
)
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    Decision,
    accept,
    booking_rule,
    refuse,
)
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

# Early enough for every door, and so late that a code for the next day's slot is refused.
CHECK_IN_OPENS_BEFORE_START = timedelta(hours=12)


def _not_confirmed(booking: Booking) -> NotConfirmed:
    return NotConfirmed(booking.slot_id, booking)


@booking_rule("checkIn", if_ended=_not_confirmed, by_leaders=True)
def check_in(
    state: SlotState,
    _users: UserContexts,
    request: BookingChangeRequest,
    now: datetime,
    *,
    meeting_start: datetime | None = None,
    expected_slot_id: SlotId | None = None,
) -> Decision[CheckInOutcome]:
    """Record that the user came to a meeting. A user who was marked as a no-show came late.

    Without `meeting_start`, it is the meeting of now: the first that is not over and takes
    check-ins, or else the last one before now. `expected_slot_id` is the slot that the caller
    checks in for, if the caller names one.
    """
    booking = _find_confirmed(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if expected_slot_id not in (None, state.id):
        return refuse(WrongSlot(state.id, booking))
    found = _attendance_at(state, booking, meeting_start, _meeting_of_now(state, now))
    if isinstance(found, InvalidInput):
        return refuse(found)
    if found.check_in is not None:
        return refuse(AlreadyCheckedIn(state.id, booking, found.meeting, found.check_in))
    opens_at = found.meeting.start - CHECK_IN_OPENS_BEFORE_START
    if now < opens_at:
        return refuse(CheckInNotOpen(state.id, opens_at))
    start = _start_to_record(state, found.meeting)
    changed = _with_action(booking, BookingAction.CHECKED_IN, request, now, start)
    outcome = CheckedIn(state.id, changed, found.meeting)
    return accept(outcome, state.with_changed_booking(changed))


@booking_rule("undoCheckIn", if_ended=_not_confirmed, by_leaders=True)
def undo_check_in(
    state: SlotState,
    _users: UserContexts,
    request: BookingChangeRequest,
    now: datetime,
    *,
    meeting_start: datetime | None = None,
) -> Decision[UndoCheckInOutcome]:
    """Take a check-in back. A meeting without one stays as it is."""
    booking = _find_confirmed(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    found = _attendance_at(state, booking, meeting_start, _meeting_of_now(state, now))
    if isinstance(found, InvalidInput):
        return refuse(found)
    if found.check_in is None:
        return accept(CheckInUndone(state.id, booking, found.meeting))
    start = _start_to_undo(state, found, meeting_start)
    changed = _with_action(booking, BookingAction.CHECK_IN_UNDONE, request, now, start)
    outcome = CheckInUndone(state.id, changed, found.meeting)
    return accept(outcome, state.with_changed_booking(changed))


@booking_rule("markNoShow", if_ended=_not_confirmed, by_leaders=True)
def mark_no_show(
    state: SlotState,
    _users: UserContexts,
    request: BookingChangeRequest,
    now: datetime,
    *,
    meeting_start: datetime | None = None,
) -> Decision[MarkNoShowOutcome]:
    """Record that the user did not come to a meeting, once it has started.

    Without `meeting_start`, it is the last meeting that has started.
    """
    booking = _find_confirmed(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    found = _attendance_at(state, booking, meeting_start, _last_started_meeting(state, now))
    if isinstance(found, InvalidInput):
        return refuse(found)
    if found.check_in is not None:
        return refuse(AlreadyCheckedIn(state.id, booking, found.meeting, found.check_in))
    if found.attendance is Attendance.NO_SHOW:
        return accept(NoShowMarked(state.id, booking, found.meeting))
    if now < found.meeting.start:
        return refuse(SlotNotStarted(state.id))
    start = _start_to_record(state, found.meeting)
    changed = _with_action(booking, BookingAction.NO_SHOW, request, now, start)
    outcome = NoShowMarked(state.id, changed, found.meeting)
    return accept(outcome, state.with_changed_booking(changed))


@booking_rule("undoNoShow", if_ended=_not_confirmed, by_leaders=True)
def undo_no_show(
    state: SlotState,
    _users: UserContexts,
    request: BookingChangeRequest,
    now: datetime,
    *,
    meeting_start: datetime | None = None,
) -> Decision[UndoNoShowOutcome]:
    """Take a no-show back. A meeting without one stays as it is."""
    booking = _find_confirmed(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    found = _attendance_at(state, booking, meeting_start, _last_started_meeting(state, now))
    if isinstance(found, InvalidInput):
        return refuse(found)
    if found.attendance is not Attendance.NO_SHOW:
        return accept(NoShowUndone(state.id, booking, found.meeting))
    start = _start_to_undo(state, found, meeting_start)
    changed = _with_action(booking, BookingAction.NO_SHOW_UNDONE, request, now, start)
    outcome = NoShowUndone(state.id, changed, found.meeting)
    return accept(outcome, state.with_changed_booking(changed))


def _find_confirmed(state: SlotState, request: BookingChangeRequest) -> Booking | AttendanceRefusal:
    loaded = (*state.bookings, *state.change.ended)
    booking = next((each for each in loaded if each.id == request.booking_id), None)
    if booking is None or not booking.is_led_by(request.caller):
        return BookingNotFound(state.id, request.booking_id)
    if state.slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(state.id)
    if booking.status is not BookingStatus.CONFIRMED:
        return NotConfirmed(state.id, booking)
    return booking


def _meeting_of_now(state: SlotState, now: datetime) -> Meeting:
    meetings = state.slot.all_meetings
    opened = [each for each in meetings if each.start - CHECK_IN_OPENS_BEFORE_START <= now]
    current = [each for each in opened if now < each.end]
    return (current or opened[-1:] or meetings)[0]


def _last_started_meeting(state: SlotState, now: datetime) -> Meeting:
    meetings = state.slot.all_meetings
    return ([each for each in meetings if each.start <= now][-1:] or meetings)[0]


def _attendance_at(
    state: SlotState, booking: Booking, named_start: datetime | None, default: Meeting
) -> MeetingAttendance | InvalidInput:
    """Return the attendance of the meeting with this start; without a start, of the default."""
    meetings: Sequence[Meeting] = (default,)
    if named_start is not None:
        meetings = [each for each in state.slot.all_meetings if each.start == named_start]
    if not meetings:
        problem = ProblemCode.UNKNOWN_MEETING.problem()
        return InvalidInput((FieldProblem("meetingStartTime", problem),))
    return booking.attendance_at(meetings)[0]


def _start_to_record(state: SlotState, meeting: Meeting) -> datetime | None:
    """Return what an entry for the meeting names; None for the only meeting of a slot."""
    return meeting.start if state.slot.meetings else None


def _start_to_undo(
    state: SlotState, found: MeetingAttendance, named_start: datetime | None
) -> datetime | None:
    """Return what an entry names that takes back the one that counts.

    An entry of the time when the slot had a single meeting is about all that it has by now. It is
    taken back for all of them, unless the caller names a meeting.
    """
    if named_start is None and found.entry is not None and found.entry.meeting_start is None:
        return None
    return _start_to_record(state, found.meeting)


def _with_action(
    booking: Booking,
    action: BookingAction,
    request: BookingChangeRequest,
    now: datetime,
    meeting_start: datetime | None,
) -> Booking:
    status, by = BookingStatus.CONFIRMED, request.caller.user_id
    entry = HistoryEntry(now, by, action, status, meeting_start=meeting_start)
    return booking.with_entry(entry)
