"""The outcomes of commands: every expected result is a value with a name."""

from slotlock.domain.booking.booking import Booking, SlotId, WaitlistEntry
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    AlreadyCheckedIn,
    AlreadyWaiting,
    BookingNotFound,
    BookingRefusal,
    CheckInNotOpen,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
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
from slotlock.domain.shared.values import value_object


@value_object
class Booked(SlotOutcome):
    """The slot was booked, or a place in it is held."""

    booking: Booking


@value_object
class BookingConfirmed(SlotOutcome):
    """The hold became a confirmed booking. Confirming again has the same outcome."""

    booking: Booking


@value_object
class HoldExtended(SlotOutcome):
    """The hold was extended."""

    booking: Booking


@value_object
class BookingCancelled(SlotOutcome):
    """The booking was cancelled. Cancelling again has the same outcome."""

    booking: Booking


@value_object
class BookingMoved(SlotOutcome):
    """The booking was exchanged for one in the other slot."""

    booking: Booking
    old_booking: Booking

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return (self.slot_id, self.old_booking.slot_id)


@value_object
class CheckedIn(SlotOutcome):
    """The user of the booking was checked in."""

    booking: Booking


@value_object
class CheckInUndone(SlotOutcome):
    """The booking has no check-in. Undoing it again has the same outcome."""

    booking: Booking


@value_object
class NoShowMarked(SlotOutcome):
    """The booking is a no-show. Marking it again has the same outcome."""

    booking: Booking


@value_object
class NoShowUndone(SlotOutcome):
    """The booking is no no-show. Undoing it again has the same outcome."""

    booking: Booking


@value_object
class WaitlistJoined(SlotOutcome):
    """The user joined the waiting list; `position` counts from 1."""

    entry: WaitlistEntry
    position: int


@value_object
class WaitlistLeft(SlotOutcome):
    """The user left the waiting list."""


@value_object
class AllBooked:
    """All claims were booked; the bookings are in the order of the claims."""

    booked: tuple[Booked, ...]

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return tuple(each.slot_id for each in self.booked)


@value_object
class NoneBooked:
    """Nothing was booked, because at least one claim was refused; one refusal or None per claim."""

    refusals: tuple[BookingRefusal | OnBehalfRefusal | None, ...]


@value_object
class SeriesBooked:
    """At least one slot of a series was booked; one outcome per slot."""

    outcomes: tuple[Booked | BookingRefusal, ...]

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return tuple(each.slot_id for each in self.outcomes if isinstance(each, SlotOutcome))


# Outcomes that the command itself has written, and those that an earlier command may have written.
BookingWritten = Booked | AllBooked | SeriesBooked | BookingMoved
BookingAlreadyDone = BookingConfirmed | BookingCancelled | HoldExtended

BookOutcome = Booked | Locked | KeyReused | BookingRefusal | OnBehalfRefusal
BookAllOutcome = AllBooked | NoneBooked | Locked | KeyReused
BookSeriesOutcome = SeriesBooked | NoneBooked | Locked | KeyReused | OnBehalfRefusal | SeriesRefusal
CancelOutcome = (
    BookingCancelled
    | Locked
    | KeyReused
    | BookingNotFound
    | HoldExpired
    | SlotStarted
    | CutoffPassed
)
ConfirmOutcome = (
    BookingConfirmed
    | Locked
    | KeyReused
    | BookingNotFound
    | HoldExpired
    | OtherBookingRefusal
    | SlotCancelled
)
ExtendOutcome = (
    HoldExtended
    | HoldLimitReached
    | NotHeld
    | Locked
    | KeyReused
    | BookingNotFound
    | HoldExpired
    | SlotCancelled
)
MoveOutcome = (
    BookingMoved
    | Locked
    | KeyReused
    | BookingNotFound
    | HoldExpired
    | CutoffPassed
    | BookingRefusal
)
AttendanceRefusal = NotConfirmed | SlotCancelled | BookingNotFound | Locked
CheckInOutcome = CheckedIn | AlreadyCheckedIn | CheckInNotOpen | WrongSlot | AttendanceRefusal
UndoCheckInOutcome = CheckInUndone | AttendanceRefusal
MarkNoShowOutcome = NoShowMarked | AlreadyCheckedIn | SlotNotStarted | AttendanceRefusal
UndoNoShowOutcome = NoShowUndone | AttendanceRefusal
JoinWaitlistOutcome = (
    WaitlistJoined
    | AlreadyWaiting
    | AlreadyBooked
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
