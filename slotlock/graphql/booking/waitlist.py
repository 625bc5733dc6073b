"""Mutations that join and leave the waiting list of a slot."""

from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes
from slotlock.graphql.booking.refusals.book import AlreadyBooked
from slotlock.graphql.booking.refusals.limits import LimitRefusal
from slotlock.graphql.booking.refusals.present import present_booking_refusal
from slotlock.graphql.booking.refusals.waitlist import (
    AlreadyWaiting,
    NotWaiting,
    SlotNotFull,
    WaitlistFull,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import DEFAULT_WAIT_MS, WaitMsArgument, to_wait_seconds
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import Locked, SlotCancelled, SlotNotFound
from slotlock.graphql.slots.types import Slot, WaitlistEntry
from slotlock.services.booking import waitlist


@strawberry.type(description="The caller joined the waiting list.")
class WaitlistJoined:
    entry: WaitlistEntry = field(description="The new entry on the waiting list.")
    position: int = field(description="The position of the new entry, starting at 1.")
    slot: Slot = field(description="The slot after the change.")

    @classmethod
    def from_domain(cls, outcome: outcomes.WaitlistJoined, view: ResultView) -> Self:
        """Show the new entry."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            entry=WaitlistEntry.from_domain(outcome.entry, slot),
            position=outcome.position,
            slot=slot,
        )


@strawberry.type(
    description="The caller left the waiting list. The order of the other entries does not change."
)
class WaitlistLeft:
    slot: Slot = field(description="The slot after the change.")

    @classmethod
    def from_domain(cls, outcome: outcomes.WaitlistLeft, view: ResultView) -> Self:
        """Show the slot without the entry."""
        return cls(slot=Slot.for_outcome(outcome, view))


JoinWaitlistResult = Annotated[
    WaitlistJoined
    | AlreadyWaiting
    | AlreadyBooked
    | LimitRefusal
    | SlotNotFull
    | WaitlistFull
    | SlotNotFound
    | SlotCancelled
    | Locked,
    strawberry.union("JoinWaitlistResult", description="The waiting list entry, or a refusal."),
]
LeaveWaitlistResult = Annotated[
    WaitlistLeft | NotWaiting | SlotNotFound | Locked,
    strawberry.union(
        "LeaveWaitlistResult", description="The slot without the entry, or a refusal."
    ),
]

SlotIdArgument = Annotated[strawberry.ID, argument(description="The id of the slot.")]


@strawberry.type
class WaitlistMutations:
    @field(
        description="Join the waiting list of a full slot. Free places go to the users on the list "
        "in the order in which they joined.",
        graphql_type=JoinWaitlistResult,
    )
    async def join_waitlist(
        self, info: Info, slot_id: SlotIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> WaitlistJoined | Refusal:
        caller = info.context.caller
        wait_s = to_wait_seconds(wait_ms)
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        result = await waitlist.join(info.context.services, parsed_id, caller.user_id, wait_s)
        outcome, view = result.outcome, ResultView(caller, result.slots, caller.user_id)
        if isinstance(outcome, outcomes.WaitlistJoined):
            return WaitlistJoined.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)

    @field(
        description="Leave the waiting list of a slot.",
        graphql_type=LeaveWaitlistResult,
    )
    async def leave_waitlist(
        self, info: Info, slot_id: SlotIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> WaitlistLeft | Refusal:
        caller = info.context.caller
        wait_s = to_wait_seconds(wait_ms)
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        result = await waitlist.leave(info.context.services, parsed_id, caller.user_id, wait_s)
        outcome, view = result.outcome, ResultView(caller, result.slots, caller.user_id)
        if isinstance(outcome, outcomes.WaitlistLeft):
            return WaitlistLeft.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)
