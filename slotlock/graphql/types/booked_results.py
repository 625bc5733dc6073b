"""What came of confirming, extending, cancelling and moving, as clients see it."""

from typing import Annotated, assert_never

import strawberry
from strawberry import field

from slotlock.domain import outcomes
from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.graphql.types.booking_refusals import (
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    KeyReused,
    NotHeld,
    place_refusal,
)
from slotlock.graphql.types.limit_refusals import (
    ChosenRefusal,
    LimitRefusal,
    chosen_refusal,
)
from slotlock.graphql.types.refusals import (
    AlreadyBooked,
    BookingNotFound,
    Locked,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.graphql.types.slots import Booking, Slot


@strawberry.type(description="A hold is a booking for good. Confirming twice gives the same.")
class BookingConfirmed:
    booking: Booking = field(description="The booking, which lasts now.")
    slot: Slot = field(description="The slot right after it.")


@strawberry.type(description="The hold lasts longer.")
class HoldExtended:
    booking: Booking = field(description="The hold.")
    slot: Slot = field(description="The slot right after it.")


@strawberry.type(description="The place is free again. Cancelling twice gives the same answer.")
class BookingCancelled:
    booking: Booking = field(description="The booking that was cancelled.")
    slot: Slot = field(description="The slot right after it.")


@strawberry.type(description="The place in the other slot is theirs, the one they had is free.")
class BookingMoved:
    booking: Booking = field(description="The booking they have now.")
    old_booking: Booking = field(description="The booking they had.")
    slot: Slot = field(description="The slot they moved to, right after it.")


ConfirmBookingResult = Annotated[
    BookingConfirmed
    | HoldExpired
    | ChosenRefusal
    | BookingNotFound
    | SlotCancelled
    | Locked
    | KeyReused,
    strawberry.union("ConfirmBookingResult", description="What came of confirming."),
]
ExtendHoldResult = Annotated[
    HoldExtended
    | HoldLimitReached
    | NotHeld
    | HoldExpired
    | BookingNotFound
    | SlotCancelled
    | Locked
    | KeyReused,
    strawberry.union("ExtendHoldResult", description="What came of extending a hold."),
]
CancelBookingResult = Annotated[
    BookingCancelled
    | HoldExpired
    | BookingNotFound
    | SlotStarted
    | CutoffPassed
    | Locked
    | KeyReused,
    strawberry.union("CancelBookingResult", description="What came of cancelling."),
]
MoveBookingResult = Annotated[
    BookingMoved
    | HoldExpired
    | BookingNotFound
    | CutoffPassed
    | SlotNotFound
    | SlotFull
    | AlreadyBooked
    | LimitRefusal
    | SlotCancelled
    | Locked
    | KeyReused,
    strawberry.union("MoveBookingResult", description="What came of moving."),
]


def confirmed(outcome: outcomes.ConfirmOutcome, gid: str, caller: Caller) -> ConfirmBookingResult:
    """What came of confirming, as the caller is told."""
    match outcome:
        case outcomes.BookingConfirmed():
            slot = Slot.of(outcome.slot, caller)
            return BookingConfirmed(booking=Booking.of(outcome.booking, slot, caller), slot=slot)
        case refused.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case refused.LimitReached() | refused.TimeConflict():
            return chosen_refusal(outcome, caller)
        case refused.BookingNotFound():
            return BookingNotFound.of(gid)
        case refused.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, caller))
        case refused.Locked():
            return Locked.of(outcome)
        case refused.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def extended(outcome: outcomes.ExtendOutcome, gid: str, caller: Caller) -> ExtendHoldResult:
    """What came of extending a hold, as the caller is told."""
    match outcome:
        case outcomes.HoldExtended():
            slot = Slot.of(outcome.slot, caller)
            return HoldExtended(booking=Booking.of(outcome.booking, slot, caller), slot=slot)
        case refused.HoldLimitReached():
            return HoldLimitReached.of(outcome, caller)
        case refused.NotHeld():
            return NotHeld.of(outcome, caller)
        case refused.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case refused.BookingNotFound():
            return BookingNotFound.of(gid)
        case refused.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, caller))
        case refused.Locked():
            return Locked.of(outcome)
        case refused.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def cancelled(outcome: outcomes.CancelOutcome, gid: str, caller: Caller) -> CancelBookingResult:
    """What came of cancelling, as the caller is told."""
    match outcome:
        case outcomes.BookingCancelled():
            slot = Slot.of(outcome.slot, caller)
            return BookingCancelled(booking=Booking.of(outcome.booking, slot, caller), slot=slot)
        case refused.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case refused.BookingNotFound():
            return BookingNotFound.of(gid)
        case refused.SlotStarted():
            return SlotStarted.of(Slot.of(outcome.slot, caller))
        case refused.CutoffPassed():
            return CutoffPassed.of(outcome)
        case refused.Locked():
            return Locked.of(outcome)
        case refused.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def moved(outcome: outcomes.MoveOutcome, gid: str, caller: Caller) -> MoveBookingResult:
    """What came of moving, as the caller is told."""
    match outcome:
        case outcomes.BookingMoved():
            slot = Slot.of(outcome.slot, caller)
            old = Booking.of(outcome.old_booking, Slot.of(outcome.old_slot, caller), caller)
            return BookingMoved(
                booking=Booking.of(outcome.booking, slot, caller), old_booking=old, slot=slot
            )
        case refused.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case refused.BookingNotFound():
            return BookingNotFound.of(gid)
        case refused.CutoffPassed():
            return CutoffPassed.of(outcome)
        case refused.Locked():
            return Locked.of(outcome)
        case refused.KeyReused():
            return KeyReused.of(outcome)
        case _:
            return place_refusal(outcome, caller)
