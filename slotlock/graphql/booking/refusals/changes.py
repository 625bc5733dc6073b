"""Refusals of changes to an existing booking: confirm, extend, cancel and move."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.graphql.core.ids import booking_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.types import Booking, Slot


@strawberry.type(
    description="The booking does not exist, has ended, or belongs to a user for whom the caller "
    "may not act."
)
class BookingNotFound(Refusal):
    booking_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no booking."""
        return cls(
            code=RefusalCode.BOOKING_NOT_FOUND,
            message="This booking does not exist or has ended.",
            booking_id=strawberry.ID(global_id),
        )

    @classmethod
    def from_domain(cls, outcome: refusals.BookingNotFound, _view: ResultView) -> Self:
        """Show that the viewer can change no booking of the id."""
        return cls.for_id(booking_global_id(outcome.slot_id, outcome.booking_id))


@strawberry.type(description="The hold expired and its place became free.")
class HoldExpired(Refusal):
    booking: Booking = field(description="The expired hold.")
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.HoldExpired, view: ResultView) -> Self:
        """Show the expired hold."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.HOLD_EXPIRED,
            message="This hold has expired, and its place is free again.",
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
            slot=slot,
        )


@strawberry.type(description="The hold cannot be extended any further.")
class HoldLimitReached(Refusal):
    booking: Booking = field(description="The unchanged hold.")

    @classmethod
    def from_domain(cls, outcome: refusals.HoldLimitReached, view: ResultView) -> Self:
        """Show the unchanged hold."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.HOLD_LIMIT_REACHED,
            message="This hold cannot be extended any further.",
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
        )


@strawberry.type(description="The booking is confirmed and does not expire.")
class NotHeld(Refusal):
    booking: Booking = field(description="The confirmed booking.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotHeld, view: ResultView) -> Self:
        """Show the confirmed booking."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.NOT_HELD,
            message="This booking is already confirmed and does not expire.",
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
        )


@strawberry.type(
    description="Members can no longer cancel or move the booking. Organizers still can."
)
class CutoffPassed(Refusal):
    cutoff: datetime = field(description="When the cut-off was.")

    @classmethod
    def from_domain(cls, outcome: refusals.CutoffPassed, _view: ResultView) -> Self:
        """Show when the cut-off was."""
        return cls(
            code=RefusalCode.CUTOFF_PASSED,
            message="You can no longer cancel or move this booking. Please contact an organizer.",
            cutoff=outcome.cutoff,
        )


ChangeRefusal = (
    refusals.BookingNotFound
    | refusals.HoldExpired
    | refusals.HoldLimitReached
    | refusals.NotHeld
    | refusals.CutoffPassed
)


def present_change_refusal(refusal: ChangeRefusal, view: ResultView) -> Refusal:
    """Show why an existing booking was not changed."""
    match refusal:
        case refusals.BookingNotFound():
            return BookingNotFound.from_domain(refusal, view)
        case refusals.HoldExpired():
            return HoldExpired.from_domain(refusal, view)
        case refusals.HoldLimitReached():
            return HoldLimitReached.from_domain(refusal, view)
        case refusals.NotHeld():
            return NotHeld.from_domain(refusal, view)
        case refusals.CutoffPassed():
            return CutoffPassed.from_domain(refusal, view)
        case _:
            assert_never(refusal)
