"""What can come of asking the desk, each expected result named as a fact."""

from dataclasses import dataclass

from slotlock.domain.booking.booking import Booking, WaitlistEntry
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    AlreadyWaiting,
    BookingNotFound,
    BookingRefusal,
    CapacityBelowTaken,
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
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.resources import ResourceTaken


@dataclass(frozen=True, slots=True)
class Booked:
    """The place is theirs, for good or as a hold."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingConfirmed:
    """The hold is a booking for good. Confirming twice gives the same answer."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class HoldExtended:
    """The hold lasts longer."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingCancelled:
    """The place is free again. Cancelling twice gives the same answer."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingMoved:
    """The place in the other slot is theirs, and the one they had is given back."""

    booking: Booking
    slot: Slot
    old_booking: Booking
    old_slot: Slot


@dataclass(frozen=True, slots=True)
class WaitlistJoined:
    """They wait for a place; `position` counts from 1."""

    entry: WaitlistEntry
    position: int
    slot: Slot


@dataclass(frozen=True, slots=True)
class WaitlistLeft:
    """They wait no longer."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotSaved:
    """The slot stands as the organiser wanted it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotsSaved:
    """All the slots stand as the organiser wanted them."""

    saved: tuple[SlotSaved, ...]


@dataclass(frozen=True, slots=True)
class AllBooked:
    """Every place that was asked for, in the order of the claims."""

    booked: tuple[Booked, ...]


@dataclass(frozen=True, slots=True)
class NoneBooked:
    """At least one claim was refused, so nothing was booked; a reason or None for each claim."""

    refusals: tuple[BookingRefusal | OnBehalfRefusal | None, ...]


# Answers that come of a write of the one who asked, and those that may come of an earlier one.
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
EditSlotOutcome = (
    SlotSaved
    | InvalidInput
    | SlotNotFound
    | SlotCancelled
    | CapacityBelowTaken
    | ResourceTaken
    | Locked
)
