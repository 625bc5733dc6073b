"""The outcomes of commands: every expected result is a value with a name."""

from dataclasses import dataclass

from slotlock.domain.booking.booking import Booking, WaitlistEntry
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    AlreadyWaiting,
    BookingNotFound,
    BookingRefusal,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    KeyReused,
    LimitRefusal,
    Locked,
    NotHeld,
    NotWaiting,
    OnBehalfRefusal,
    OtherBookingRefusal,
    SlotCancelled,
    SlotNotFound,
    SlotNotFull,
    SlotStarted,
    WaitlistFull,
)
from slotlock.domain.booking.slot import Slot


@dataclass(frozen=True, slots=True)
class Booked:
    """The slot was booked, or a place in it is held."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingConfirmed:
    """The hold became a confirmed booking. Confirming again has the same outcome."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class HoldExtended:
    """The hold was extended."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingCancelled:
    """The booking was cancelled. Cancelling again has the same outcome."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingMoved:
    """The booking was exchanged for one in the other slot."""

    booking: Booking
    slot: Slot
    old_booking: Booking
    old_slot: Slot


@dataclass(frozen=True, slots=True)
class WaitlistJoined:
    """The user joined the waiting list; `position` counts from 1."""

    entry: WaitlistEntry
    position: int
    slot: Slot


@dataclass(frozen=True, slots=True)
class WaitlistLeft:
    """The user left the waiting list."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class AllBooked:
    """All claims were booked; the bookings are in the order of the claims."""

    booked: tuple[Booked, ...]


@dataclass(frozen=True, slots=True)
class NoneBooked:
    """Nothing was booked, because at least one claim was refused; one refusal or None per claim."""

    refusals: tuple[BookingRefusal | OnBehalfRefusal | None, ...]


# Outcomes that the command itself has written, and those that an earlier command may have written.
BookingWritten = Booked | AllBooked | BookingMoved
BookingAlreadyDone = BookingConfirmed | BookingCancelled | HoldExtended

BookOutcome = Booked | Locked | KeyReused | BookingRefusal | OnBehalfRefusal
BookAllOutcome = AllBooked | NoneBooked | Locked | KeyReused
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
)
LeaveWaitlistOutcome = WaitlistLeft | NotWaiting | SlotNotFound | Locked
