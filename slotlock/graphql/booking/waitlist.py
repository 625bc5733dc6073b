"""Joining and leaving the waiting list of a slot."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes, refusals
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.limit_refusals import LimitRefusal, to_limit_refusal
from slotlock.graphql.booking.refusals import AlreadyWaiting, NotWaiting, SlotNotFull, WaitlistFull
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import DEFAULT_WAIT_MS, WaitMsArgument, to_wait_seconds
from slotlock.graphql.core.refusals import AlreadyBooked, Locked, SlotCancelled, SlotNotFound
from slotlock.graphql.slots.types import Booking, Slot, WaitlistEntry
from slotlock.services.booking import waitlist


@strawberry.type(description="They wait for a place, and get one in their turn.")
class WaitlistJoined:
    entry: WaitlistEntry = field(description="Their turn in line.")
    position: int = field(description="Their place in line when they joined, from 1.")
    slot: Slot = field(description="The slot right after it.")


@strawberry.type(description="They wait no longer. Everybody else keeps their turn.")
class WaitlistLeft:
    slot: Slot = field(description="The slot right after it.")


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
    strawberry.union("JoinWaitlistResult", description="What came of joining."),
]
LeaveWaitlistResult = Annotated[
    WaitlistLeft | NotWaiting | SlotNotFound | Locked,
    strawberry.union("LeaveWaitlistResult", description="What came of leaving."),
]

SlotIdArgument = Annotated[strawberry.ID, argument(description="The slot.")]


@strawberry.type
class WaitlistMutations:
    @field(description="Wait for a place in a slot that is full: first come, first served.")
    async def join_waitlist(
        self, info: Info, slot_id: SlotIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> JoinWaitlistResult:
        caller = info.context.caller
        wait_s, found = to_wait_seconds(wait_ms), ids.parse_slot_id(slot_id)
        if found is None:
            return SlotNotFound.for_id(slot_id)
        outcome = await waitlist.join(info.context.services, found, caller.user_id, wait_s)
        return _to_join_waitlist_result(outcome, caller)

    @field(description="Wait no longer.")
    async def leave_waitlist(
        self, info: Info, slot_id: SlotIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> LeaveWaitlistResult:
        caller = info.context.caller
        wait_s, found = to_wait_seconds(wait_ms), ids.parse_slot_id(slot_id)
        if found is None:
            return SlotNotFound.for_id(slot_id)
        outcome = await waitlist.leave(info.context.services, found, caller.user_id, wait_s)
        return _to_leave_waitlist_result(outcome, caller)


def _to_join_waitlist_result(
    outcome: outcomes.JoinWaitlistOutcome, viewer: Caller
) -> JoinWaitlistResult:
    match outcome:
        case outcomes.WaitlistJoined():
            slot = Slot.from_domain(outcome.slot, viewer)
            entry = WaitlistEntry.from_domain(outcome.entry, slot)
            return WaitlistJoined(entry=entry, position=outcome.position, slot=slot)
        case refusals.AlreadyWaiting():
            return AlreadyWaiting.from_domain(outcome, viewer)
        case refusals.AlreadyBooked():
            slot = Slot.from_domain(outcome.slot, viewer)
            return AlreadyBooked.from_domain(
                Booking.from_domain(outcome.booking, slot, viewer), slot
            )
        case refusals.SlotNotFull():
            return SlotNotFull.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.WaitlistFull():
            return WaitlistFull.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.SlotNotFound():
            return SlotNotFound.for_id(ids.slot_global_id(outcome.slot_id))
        case refusals.SlotCancelled():
            return SlotCancelled.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case _:
            return to_limit_refusal(outcome, viewer)


def _to_leave_waitlist_result(
    outcome: outcomes.LeaveWaitlistOutcome, viewer: Caller
) -> LeaveWaitlistResult:
    match outcome:
        case outcomes.WaitlistLeft():
            return WaitlistLeft(slot=Slot.from_domain(outcome.slot, viewer))
        case refusals.NotWaiting():
            return NotWaiting.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.SlotNotFound():
            return SlotNotFound.for_id(ids.slot_global_id(outcome.slot_id))
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case _:
            assert_never(outcome)
