"""What came of confirming, extending, cancelling and moving, as clients see it."""

from typing import Annotated, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import outcomes, refusals
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.limit_refusals import (
    LimitRefusal,
    OtherBookingRefusal,
    to_other_booking_refusal,
)
from slotlock.graphql.booking.refusals import (
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    KeyReused,
    NotHeld,
    OnBehalfRefusal,
    to_booking_refusal,
    to_on_behalf_refusal,
)
from slotlock.graphql.core.refusals import (
    AlreadyBooked,
    BookingNotFound,
    Locked,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.graphql.slots import types
from slotlock.graphql.slots.types import Booking, Slot


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
    | OtherBookingRefusal
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


def to_confirm_result(
    outcome: outcomes.ConfirmOutcome, booking_global_id: str, viewer: Caller
) -> ConfirmBookingResult:
    """What came of confirming, as the caller is told."""
    match outcome:
        case outcomes.BookingConfirmed():
            slot = Slot.from_domain(outcome.slot, viewer)
            return BookingConfirmed(
                booking=Booking.from_domain(outcome.booking, slot, viewer), slot=slot
            )
        case refusals.HoldExpired():
            return HoldExpired.from_domain(outcome, viewer)
        case refusals.LimitReached() | refusals.TimeConflict():
            return to_other_booking_refusal(outcome, viewer)
        case refusals.BookingNotFound():
            return BookingNotFound.for_id(booking_global_id)
        case refusals.SlotCancelled():
            return SlotCancelled.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case refusals.KeyReused():
            return KeyReused.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_extend_result(
    outcome: outcomes.ExtendOutcome, booking_global_id: str, viewer: Caller
) -> ExtendHoldResult:
    """What came of extending a hold, as the caller is told."""
    match outcome:
        case outcomes.HoldExtended():
            slot = Slot.from_domain(outcome.slot, viewer)
            return HoldExtended(
                booking=Booking.from_domain(outcome.booking, slot, viewer), slot=slot
            )
        case refusals.HoldLimitReached():
            return HoldLimitReached.from_domain(outcome, viewer)
        case refusals.NotHeld():
            return NotHeld.from_domain(outcome, viewer)
        case refusals.HoldExpired():
            return HoldExpired.from_domain(outcome, viewer)
        case refusals.BookingNotFound():
            return BookingNotFound.for_id(booking_global_id)
        case refusals.SlotCancelled():
            return SlotCancelled.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case refusals.KeyReused():
            return KeyReused.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_cancel_result(
    outcome: outcomes.CancelOutcome, booking_global_id: str, viewer: Caller
) -> CancelBookingResult:
    """What came of cancelling, as the caller is told."""
    match outcome:
        case outcomes.BookingCancelled():
            slot = Slot.from_domain(outcome.slot, viewer)
            return BookingCancelled(
                booking=Booking.from_domain(outcome.booking, slot, viewer), slot=slot
            )
        case refusals.HoldExpired():
            return HoldExpired.from_domain(outcome, viewer)
        case refusals.BookingNotFound():
            return BookingNotFound.for_id(booking_global_id)
        case refusals.SlotStarted():
            return SlotStarted.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.CutoffPassed():
            return CutoffPassed.from_domain(outcome)
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case refusals.KeyReused():
            return KeyReused.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_move_result(
    outcome: outcomes.MoveOutcome, booking_global_id: str, viewer: Caller
) -> MoveBookingResult:
    """What came of moving, as the caller is told."""
    match outcome:
        case outcomes.BookingMoved():
            slot = Slot.from_domain(outcome.slot, viewer)
            old = Booking.from_domain(
                outcome.old_booking, Slot.from_domain(outcome.old_slot, viewer), viewer
            )
            return BookingMoved(
                booking=Booking.from_domain(outcome.booking, slot, viewer),
                old_booking=old,
                slot=slot,
            )
        case refusals.HoldExpired():
            return HoldExpired.from_domain(outcome, viewer)
        case refusals.BookingNotFound():
            return BookingNotFound.for_id(booking_global_id)
        case refusals.CutoffPassed():
            return CutoffPassed.from_domain(outcome)
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case refusals.KeyReused():
            return KeyReused.from_domain(outcome)
        case _:
            return to_booking_refusal(outcome, viewer)


@strawberry.type(description="The place is theirs, for good or as a hold.")
class Booked:
    booking: types.Booking = field(description="The booking that was made.")
    slot: Slot = field(description="The slot right after it.")

    @classmethod
    def from_domain(cls, outcome: outcomes.Booked, viewer: Caller) -> "Booked":
        slot = Slot.from_domain(outcome.slot, viewer)
        return cls(booking=types.Booking.from_domain(outcome.booking, slot, viewer), slot=slot)


BookSlotResult = Annotated[
    Booked
    | Locked
    | SlotNotFound
    | SlotFull
    | AlreadyBooked
    | LimitRefusal
    | SlotCancelled
    | KeyReused
    | OnBehalfRefusal,
    strawberry.union("BookSlotResult", description="What came of booking."),
]


def to_book_slot_result(outcome: outcomes.BookOutcome, viewer: Caller) -> BookSlotResult:
    """An outcome as its caller sees it."""
    match outcome:
        case outcomes.Booked():
            return Booked.from_domain(outcome, viewer)
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case refusals.KeyReused():
            return KeyReused.from_domain(outcome)
        case refusals.NotTeammate() | refusals.UserNotFound() | refusals.UserBanned():
            return to_on_behalf_refusal(outcome)
        case _:
            return to_booking_refusal(outcome, viewer)
