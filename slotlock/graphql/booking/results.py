"""Results of the mutations that make and change bookings."""

from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.booking import outcomes
from slotlock.graphql.booking.refusals.book import BookingRefusal
from slotlock.graphql.booking.refusals.changes import (
    BookingNotFound,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    NotHeld,
)
from slotlock.graphql.booking.refusals.limits import OtherBookingRefusal, SlotStarted
from slotlock.graphql.booking.refusals.present import BookingCommandRefusal, present_booking_refusal
from slotlock.graphql.core.refusals import KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import Locked, SlotCancelled
from slotlock.graphql.slots.types import Booking, Slot
from slotlock.graphql.users.refusals import OnBehalfRefusal

BookingOutcome = (
    outcomes.Booked | outcomes.BookingConfirmed | outcomes.HoldExtended | outcomes.BookingCancelled
)


@strawberry.type
class BookingResult:
    """The result of a command on one booking; each kind of command has its own type."""

    booking: Booking
    slot: Slot

    @classmethod
    def from_domain(cls, outcome: BookingOutcome, view: ResultView) -> Self:
        """Show the booking in its slot."""
        slot = Slot.for_outcome(outcome, view)
        return cls(booking=Booking.from_domain(outcome.booking, slot, view.viewer), slot=slot)


@strawberry.type(description="The place was booked or held.")
class Booked(BookingResult):
    booking: Booking = field(description="The new booking.")
    slot: Slot = field(description="The slot after the booking.")


@strawberry.type(description="The hold was confirmed. Confirming it again gives the same result.")
class BookingConfirmed(BookingResult):
    booking: Booking = field(description="The confirmed booking.")
    slot: Slot = field(description="The slot after the confirmation.")


@strawberry.type(description="The hold was extended.")
class HoldExtended(BookingResult):
    booking: Booking = field(description="The extended hold.")
    slot: Slot = field(description="The slot after the extension.")


@strawberry.type(
    description="The booking was cancelled. Cancelling it again gives the same result."
)
class BookingCancelled(BookingResult):
    booking: Booking = field(description="The cancelled booking.")
    slot: Slot = field(description="The slot after the cancellation.")


@strawberry.type(description="The booking was moved to the other slot, and its old place is free.")
class BookingMoved:
    booking: Booking = field(description="The new booking in the other slot.")
    old_booking: Booking = field(description="The old booking, which ended with the move.")
    slot: Slot = field(description="The other slot after the move.")

    @classmethod
    def from_domain(cls, outcome: outcomes.BookingMoved, view: ResultView) -> Self:
        """Show both bookings."""
        slot = Slot.for_outcome(outcome, view)
        old_slot = Slot.from_domain(view.slots[outcome.old_booking.slot_id], view.viewer)
        return cls(
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
            old_booking=Booking.from_domain(outcome.old_booking, old_slot, view.viewer),
            slot=slot,
        )


BookSlotResult = Annotated[
    Booked | Locked | BookingRefusal | KeyReused | OnBehalfRefusal,
    strawberry.union("BookSlotResult", description="The new booking, or a refusal."),
]
ConfirmBookingResult = Annotated[
    BookingConfirmed
    | HoldExpired
    | OtherBookingRefusal
    | BookingNotFound
    | SlotCancelled
    | Locked
    | KeyReused,
    strawberry.union("ConfirmBookingResult", description="The confirmed booking, or a refusal."),
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
    strawberry.union("ExtendHoldResult", description="The extended hold, or a refusal."),
]
CancelBookingResult = Annotated[
    BookingCancelled
    | HoldExpired
    | BookingNotFound
    | SlotStarted
    | CutoffPassed
    | Locked
    | KeyReused,
    strawberry.union("CancelBookingResult", description="The cancelled booking, or a refusal."),
]
MoveBookingResult = Annotated[
    BookingMoved
    | HoldExpired
    | BookingNotFound
    | CutoffPassed
    | BookingRefusal
    | Locked
    | KeyReused,
    strawberry.union("MoveBookingResult", description="The moved booking, or a refusal."),
]


def present_book_outcome(
    outcome: outcomes.Booked | BookingCommandRefusal, view: ResultView
) -> Booked | Refusal:
    """Show the outcome of booking one place, which `bookSlot` and tickets share."""
    if isinstance(outcome, outcomes.Booked):
        return Booked.from_domain(outcome, view)
    return present_booking_refusal(outcome, view)
