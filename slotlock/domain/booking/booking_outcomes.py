"""The outcomes of commands: every expected result is a value with a name."""

from slotlock.domain.booking.booking import Booking, SlotId, WaitlistEntry
from slotlock.domain.booking.booking_refusals import (
    SLOT_OF_BOOKING,
    AlreadyBooked,
    AlreadyCheckedIn,
    AlreadyWaiting,
    BookingNotFound,
    BookingRefusal,
    CheckInNotOpen,
    CutoffPassed,
    DrawOnly,
    HoldExpired,
    HoldLimitReached,
    InvalidCheckInCode,
    KeyReused,
    LimitRefusal,
    Locked,
    NotConfirmed,
    NotHeld,
    NotWaiting,
    OnBehalfRefusal,
    OtherBookingRefusal,
    SeriesRefusal,
    SlotCancelled,
    SlotNotFound,
    SlotNotFull,
    SlotNotStarted,
    SlotOutcome,
    SlotStarted,
    UserBanned,
    UserNotFound,
    WaitlistFull,
    WrongSlot,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.declare import outcome, refusal, shown, shown_slot
from slotlock.domain.shared.validation import InvalidInput

AFTER_CHANGE = "The slot after the change."
CHANGED_BOOKING = "The booking after the change."
ATTENDED_MEETING = "The meeting of the slot whose attendance the booking now shows."


@outcome
class Booked(SlotOutcome):
    """The place was booked or held."""

    booking: Booking = shown("The new booking.")
    slot_id: SlotId = shown_slot("The slot after the booking.")


@outcome
class BookingConfirmed(SlotOutcome):
    """The hold was confirmed. Confirming it again gives the same result."""

    booking: Booking = shown("The confirmed booking.")
    slot_id: SlotId = shown_slot("The slot after the confirmation.")


@outcome
class HoldExtended(SlotOutcome):
    """The hold was extended."""

    booking: Booking = shown("The extended hold.")
    slot_id: SlotId = shown_slot("The slot after the extension.")


@outcome
class BookingCancelled(SlotOutcome):
    """The booking was cancelled. Cancelling it again gives the same result."""

    booking: Booking = shown("The cancelled booking.")
    slot_id: SlotId = shown_slot("The slot after the cancellation.")


@outcome
class BookingMoved(SlotOutcome):
    """The booking was moved to the other slot, and its old place is free."""

    booking: Booking = shown("The new booking in the other slot.")
    old_booking: Booking = shown("The old booking, which ended with the move.")
    slot_id: SlotId = shown_slot("The other slot after the move.")

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return (self.slot_id, self.old_booking.slot_id)


@outcome
class CheckedIn(SlotOutcome):
    """The user of the booking was checked in."""

    booking: Booking = shown(CHANGED_BOOKING)
    slot_id: SlotId = shown_slot(SLOT_OF_BOOKING)
    meeting: Meeting = shown(ATTENDED_MEETING)


@outcome
class CheckInUndone(SlotOutcome):
    """The booking has no check-in. Undoing it again gives the same result."""

    booking: Booking = shown(CHANGED_BOOKING)
    slot_id: SlotId = shown_slot(SLOT_OF_BOOKING)
    meeting: Meeting = shown(ATTENDED_MEETING)


@outcome
class NoShowMarked(SlotOutcome):
    """The booking is marked as a no-show. Marking it again gives the same result."""

    booking: Booking = shown(CHANGED_BOOKING)
    slot_id: SlotId = shown_slot(SLOT_OF_BOOKING)
    meeting: Meeting = shown(ATTENDED_MEETING)


@outcome
class NoShowUndone(SlotOutcome):
    """The booking is not marked as a no-show. Undoing it again gives the same result."""

    booking: Booking = shown(CHANGED_BOOKING)
    slot_id: SlotId = shown_slot(SLOT_OF_BOOKING)
    meeting: Meeting = shown(ATTENDED_MEETING)


@outcome
class WaitlistJoined(SlotOutcome):
    """The user is on the waiting list now."""

    entry: WaitlistEntry = shown("The new entry on the waiting list.")
    position: int = shown("The position of the new entry, starting at 1.")
    slot_id: SlotId = shown_slot(AFTER_CHANGE)


@outcome
class WaitlistLeft(SlotOutcome):
    """The user left the waiting list. The order of the other entries does not change."""

    slot_id: SlotId = shown_slot(AFTER_CHANGE)


@outcome
class AllBooked:
    """Every place was booked or held."""

    # In the order of the claims.
    booked: tuple[Booked, ...]

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return tuple(each.slot_id for each in self.booked)


@refusal(
    name="ClaimsRefused",
    message="Nothing was booked because at least one place is not available.",
)
class NoneBooked:
    """At least one claim was refused, so nothing was booked."""

    # One for each claim, None for one that would have been booked.
    refusals: tuple[BookingRefusal | OnBehalfRefusal | None, ...]


@outcome
class SeriesBooked:
    """At least one slot of the series was booked or held."""

    # One for each slot.
    outcomes: tuple[Booked | BookingRefusal, ...]

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return tuple(each.slot_id for each in self.outcomes if isinstance(each, SlotOutcome))


# Outcomes that the command itself has written, and those that an earlier command may have written.
BookingWritten = Booked | AllBooked | SeriesBooked | BookingMoved
BookingAlreadyDone = BookingConfirmed | BookingCancelled | HoldExtended

BookOutcome = Booked | Locked | BookingRefusal | KeyReused | OnBehalfRefusal
BookAllOutcome = AllBooked | NoneBooked | Locked | KeyReused
BookSeriesOutcome = SeriesBooked | NoneBooked | SeriesRefusal | OnBehalfRefusal | Locked | KeyReused
ConfirmOutcome = (
    BookingConfirmed
    | HoldExpired
    | OtherBookingRefusal
    | BookingNotFound
    | SlotCancelled
    | UserBanned
    | Locked
    | KeyReused
)
ExtendOutcome = (
    HoldExtended
    | HoldLimitReached
    | NotHeld
    | HoldExpired
    | BookingNotFound
    | SlotCancelled
    | UserBanned
    | Locked
    | KeyReused
)
CancelOutcome = (
    BookingCancelled
    | HoldExpired
    | BookingNotFound
    | SlotStarted
    | CutoffPassed
    | Locked
    | KeyReused
)
MoveOutcome = (
    BookingMoved
    | HoldExpired
    | BookingNotFound
    | CutoffPassed
    | BookingRefusal
    | UserBanned
    | Locked
    | KeyReused
)
AttendanceRefusal = NotConfirmed | SlotCancelled | BookingNotFound | InvalidInput | Locked
CheckInOutcome = (
    CheckedIn
    | AlreadyCheckedIn
    | CheckInNotOpen
    | WrongSlot
    | InvalidCheckInCode
    | AttendanceRefusal
)
UndoCheckInOutcome = CheckInUndone | AttendanceRefusal
MarkNoShowOutcome = NoShowMarked | AlreadyCheckedIn | SlotNotStarted | AttendanceRefusal
UndoNoShowOutcome = NoShowUndone | AttendanceRefusal
JoinWaitlistOutcome = (
    WaitlistJoined
    | AlreadyWaiting
    | AlreadyBooked
    | DrawOnly
    | LimitRefusal
    | SlotNotFull
    | WaitlistFull
    | SlotNotFound
    | SlotCancelled
    | Locked
    | UserNotFound
    | UserBanned
)
LeaveWaitlistOutcome = WaitlistLeft | NotWaiting | SlotNotFound | Locked | UserNotFound
