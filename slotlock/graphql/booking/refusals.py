"""Refusals of bookings, holds, waiting lists and the booking queue."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.graphql.booking.limit_refusals import (
    Closed,
    GroupFull,
    LimitReached,
    NotEligible,
    NotYetOpen,
    TimeConflict,
)
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import SlotRefusal, present_slot_refusal
from slotlock.graphql.slots.types import Booking, Slot, WaitlistEntry
from slotlock.graphql.users.refusals import present_user_refusal


@strawberry.type(description="The idempotency key was sent before with other arguments.")
class KeyReused(Refusal):
    idempotency_key: str = field(
        description="The key that was sent. Empty in the outcome of a ticket, which stores only "
        "the hash of the key."
    )

    @classmethod
    def from_domain(cls, outcome: refusals.KeyReused, _view: ResultView) -> Self:
        """Show the key to the client that sent it."""
        return cls(
            code=RefusalCode.KEY_REUSED,
            message="This idempotency key was already used for another request.",
            idempotency_key=outcome.key,
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


@strawberry.type(description="The caller is already on the waiting list of the slot.")
class AlreadyWaiting(Refusal):
    entry: WaitlistEntry = field(description="The existing entry.")
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.AlreadyWaiting, view: ResultView) -> Self:
        """Show the existing entry."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.ALREADY_WAITING,
            message="You are already on the waiting list of this slot.",
            entry=WaitlistEntry.from_domain(outcome.entry, slot),
            slot=slot,
        )


@strawberry.type(description="The slot has a free place, so there is no need to wait.")
class SlotNotFull(Refusal):
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.SlotNotFull, view: ResultView) -> Self:
        """Show the slot with its free places."""
        return cls(
            code=RefusalCode.SLOT_NOT_FULL,
            message="This slot has a free place. Please book it instead.",
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(description="The waiting list is full, or the slot has none.")
class WaitlistFull(Refusal):
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.WaitlistFull, view: ResultView) -> Self:
        """Show the slot with the length of its waiting list."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.WAITLIST_FULL,
            message="The waiting list is full."
            if slot.waitlist_capacity
            else "This slot has no waiting list.",
            slot=slot,
        )


@strawberry.type(description="The caller is not on the waiting list of the slot.")
class NotWaiting(Refusal):
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotWaiting, view: ResultView) -> Self:
        """Show the slot."""
        return cls(
            code=RefusalCode.NOT_WAITING,
            message="You are not on the waiting list of this slot.",
            slot=Slot.for_outcome(outcome, view),
        )


BookingRefusal = (
    refusals.BookingRefusal
    | refusals.OnBehalfRefusal
    | refusals.KeyReused
    | refusals.QueueFull
    | refusals.HoldExpired
    | refusals.HoldLimitReached
    | refusals.NotHeld
    | refusals.CutoffPassed
    | refusals.AlreadyWaiting
    | refusals.SlotNotFull
    | refusals.WaitlistFull
    | refusals.NotWaiting
    | SlotRefusal
)


def present_booking_refusal(refusal: BookingRefusal, view: ResultView) -> Refusal:  # noqa: C901
    """Show why a booking, a hold or a waiting list entry was not made or changed."""
    match refusal:
        case refusals.NotYetOpen():
            return NotYetOpen.from_domain(refusal, view)
        case refusals.Closed():
            return Closed.from_domain(refusal, view)
        case refusals.NotEligible():
            return NotEligible.from_domain(refusal, view)
        case refusals.GroupFull():
            return GroupFull.from_domain(refusal, view)
        case refusals.LimitReached():
            return LimitReached.from_domain(refusal, view)
        case refusals.TimeConflict():
            return TimeConflict.from_domain(refusal, view)
        case refusals.KeyReused():
            return KeyReused.from_domain(refusal, view)
        case refusals.QueueFull():
            return QueueFull.from_domain(refusal, view)
        case refusals.HoldExpired():
            return HoldExpired.from_domain(refusal, view)
        case refusals.HoldLimitReached():
            return HoldLimitReached.from_domain(refusal, view)
        case refusals.NotHeld():
            return NotHeld.from_domain(refusal, view)
        case refusals.CutoffPassed():
            return CutoffPassed.from_domain(refusal, view)
        case refusals.AlreadyWaiting():
            return AlreadyWaiting.from_domain(refusal, view)
        case refusals.SlotNotFull():
            return SlotNotFull.from_domain(refusal, view)
        case refusals.WaitlistFull():
            return WaitlistFull.from_domain(refusal, view)
        case refusals.NotWaiting():
            return NotWaiting.from_domain(refusal, view)
        case refusals.NotTeammate() | refusals.UserNotFound() | refusals.UserBanned():
            return present_user_refusal(refusal, view)
        case _:
            return present_slot_refusal(refusal, view)
