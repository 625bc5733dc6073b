"""Refusals of joining and leaving a waiting list."""

from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.types import Slot, WaitlistEntry


@strawberry.type(description="The user is already on the waiting list of the slot.")
class AlreadyWaiting(Refusal):
    entry: WaitlistEntry = field(description="The existing entry.")
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.AlreadyWaiting, view: ResultView) -> Self:
        """Show the existing entry."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.ALREADY_WAITING,
            message=view.address(
                outcome.entry.user_id,
                own="You are already on the waiting list of this slot.",
                other="This user is already on the waiting list of this slot.",
                neutral="This user is already on the waiting list of this slot.",
            ),
            entry=WaitlistEntry.from_domain(outcome.entry, slot),
            slot=slot,
        )


@strawberry.type(description="The slot has a free place, so there is no need to wait.")
class SlotNotFull(Refusal):
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.SlotNotFull, view: ResultView) -> Self:
        """Show the slot, and the way in which the viewer can get its free place."""
        viewer, slot = view.viewer, view.slots[outcome.slot_id].slot
        is_bookable = not slot.is_queue_only or (viewer is not None and viewer.is_organizer)
        return cls(
            code=RefusalCode.SLOT_NOT_FULL,
            message="This slot has a free place. Please book it instead."
            if is_bookable
            else "This slot has a free place. Please request it through the queue instead.",
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


@strawberry.type(description="The user is not on the waiting list of the slot.")
class NotWaiting(Refusal):
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotWaiting, view: ResultView) -> Self:
        """Show the slot, whose waiting list has no such user."""
        return cls(
            code=RefusalCode.NOT_WAITING,
            message=view.address(
                None,
                own="You are not on the waiting list of this slot.",
                other="This user is not on the waiting list of this slot.",
                neutral="This user is not on the waiting list of this slot.",
            ),
            slot=Slot.for_outcome(outcome, view),
        )


WaitlistRefusal = (
    refusals.AlreadyWaiting | refusals.SlotNotFull | refusals.WaitlistFull | refusals.NotWaiting
)


def present_waitlist_refusal(refusal: WaitlistRefusal, view: ResultView) -> Refusal:
    """Show why the waiting list did not change."""
    match refusal:
        case refusals.AlreadyWaiting():
            return AlreadyWaiting.from_domain(refusal, view)
        case refusals.SlotNotFull():
            return SlotNotFull.from_domain(refusal, view)
        case refusals.WaitlistFull():
            return WaitlistFull.from_domain(refusal, view)
        case refusals.NotWaiting():
            return NotWaiting.from_domain(refusal, view)
        case _:
            assert_never(refusal)
