"""Refusals of booking a place: it is taken, or the request is not accepted."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.graphql.booking.refusals.limits import LimitRefusal
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import RefusalWithSlot, SlotCancelled, SlotNotFound
from slotlock.graphql.slots.types import Booking, Slot


@strawberry.type(description="The slot has no free place.")
class SlotFull(RefusalWithSlot):
    CODE = RefusalCode.SLOT_FULL
    MESSAGE = "Every place in this slot is taken."


@strawberry.type(description="The user already has an active booking of the slot.")
class AlreadyBooked(Refusal):
    booking: Booking = field(description="The existing booking.")
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.AlreadyBooked, view: ResultView) -> Self:
        """Show the existing booking."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.ALREADY_BOOKED,
            message=view.address(
                outcome.booking.user_id,
                own="You already have a booking in this slot.",
                other="This user already has a booking in this slot.",
                neutral="This user already has a booking in this slot.",
            ),
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
            slot=slot,
        )


@strawberry.type(
    description="Members get places in the slot through the booking queue only: use "
    "`requestBooking`."
)
class QueueOnly(RefusalWithSlot):
    CODE = RefusalCode.QUEUE_ONLY
    MESSAGE = "Places in this slot are given out through the queue only."
    slot: Slot = field(description="The slot that the request named.")


@strawberry.type(
    description="The user had a hold in the slot that ended without a confirmation, so they cannot "
    "hold a place there again yet. They can book without a hold."
)
class HoldCooldown(Refusal):
    until: datetime = field(description="From when the user can hold a place again.")
    slot: Slot = field(description="The slot that the request named.")

    @classmethod
    def from_domain(cls, outcome: refusals.HoldCooldown, view: ResultView) -> Self:
        """Show from when the user can hold a place again."""
        return cls(
            code=RefusalCode.HOLD_COOLDOWN,
            message=view.address(
                None,
                own="You held a place in this slot recently. Please book it, or hold it later.",
                other="This user held a place in this slot recently.",
                neutral="A hold in this slot ended recently. Please book it, or hold it later.",
            ),
            until=outcome.until,
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(description="The booking queue of the slot is full.")
class QueueFull(Refusal):
    slot_id: strawberry.ID = field(description="The id of the slot.")
    retry_after_ms: int = field(description="How long to wait before a retry, in milliseconds.")

    @classmethod
    def from_domain(cls, outcome: refusals.QueueFull, _view: ResultView) -> Self:
        """Show when a retry may succeed."""
        return cls(
            code=RefusalCode.QUEUE_FULL,
            message="Too many people want to book right now. Please try again.",
            slot_id=slot_global_id(outcome.slot_id),
            retry_after_ms=outcome.retry_after_ms,
        )


def present_queue_refusal(
    refusal: refusals.QueueFull | refusals.QueueOnly, view: ResultView
) -> Refusal:
    """Show why a request was not queued, or has to be."""
    match refusal:
        case refusals.QueueFull():
            return QueueFull.from_domain(refusal, view)
        case refusals.QueueOnly():
            return QueueOnly.from_domain(refusal, view)
        case _:
            assert_never(refusal)


BookingRefusal = (
    SlotNotFound
    | SlotFull
    | AlreadyBooked
    | QueueOnly
    | HoldCooldown
    | LimitRefusal
    | SlotCancelled
)
