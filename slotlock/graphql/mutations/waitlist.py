"""Joining and leaving the waiting list of a slot."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.desk import waitlist as desk
from slotlock.domain import outcomes
from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.graphql import ids
from slotlock.graphql.arguments import PATIENT_MS, WaitMs, checked_wait
from slotlock.graphql.context import Info
from slotlock.graphql.types.booking_refusals import (
    AlreadyWaiting,
    NotWaiting,
    PlacesLeft,
    WaitlistFull,
)
from slotlock.graphql.types.limit_refusals import LimitRefusal, limit_refusal
from slotlock.graphql.types.refusals import (
    AlreadyBooked,
    Locked,
    SlotCancelled,
    SlotNotFound,
)
from slotlock.graphql.types.slots import Booking, Slot, WaitlistEntry


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
    | PlacesLeft
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
        self, info: Info, slot_id: SlotIdArgument, wait_ms: WaitMs = PATIENT_MS
    ) -> JoinWaitlistResult:
        caller = info.context.caller
        wait_s, found = checked_wait(wait_ms), ids.slot_id_of(slot_id)
        if found is None:
            return SlotNotFound.of(slot_id)
        outcome = await desk.join(info.context.desk, found, caller.user_id, wait_s)
        return _joined(outcome, caller)

    @field(description="Wait no longer.")
    async def leave_waitlist(
        self, info: Info, slot_id: SlotIdArgument, wait_ms: WaitMs = PATIENT_MS
    ) -> LeaveWaitlistResult:
        caller = info.context.caller
        wait_s, found = checked_wait(wait_ms), ids.slot_id_of(slot_id)
        if found is None:
            return SlotNotFound.of(slot_id)
        outcome = await desk.leave(info.context.desk, found, caller.user_id, wait_s)
        return _left(outcome, caller)


def _joined(outcome: outcomes.JoinOutcome, caller: Caller) -> JoinWaitlistResult:
    match outcome:
        case outcomes.WaitlistJoined():
            slot = Slot.of(outcome.slot, caller)
            entry = WaitlistEntry.of(outcome.waiting, slot)
            return WaitlistJoined(entry=entry, position=outcome.position, slot=slot)
        case refused.AlreadyWaiting():
            return AlreadyWaiting.of(outcome, caller)
        case refused.AlreadyBooked():
            slot = Slot.of(outcome.slot, caller)
            return AlreadyBooked.of(Booking.of(outcome.booking, slot, caller), slot)
        case refused.PlacesLeft():
            return PlacesLeft.of(Slot.of(outcome.slot, caller))
        case refused.WaitlistFull():
            return WaitlistFull.of(Slot.of(outcome.slot, caller))
        case refused.SlotNotFound():
            return SlotNotFound.of(ids.slot_gid(outcome.slot_id))
        case refused.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, caller))
        case refused.Locked():
            return Locked.of(outcome)
        case _:
            return limit_refusal(outcome, caller)


def _left(outcome: outcomes.LeaveOutcome, caller: Caller) -> LeaveWaitlistResult:
    match outcome:
        case outcomes.WaitlistLeft():
            return WaitlistLeft(slot=Slot.of(outcome.slot, caller))
        case refused.NotWaiting():
            return NotWaiting.of(Slot.of(outcome.slot, caller))
        case refused.SlotNotFound():
            return SlotNotFound.of(ids.slot_gid(outcome.slot_id))
        case refused.Locked():
            return Locked.of(outcome)
        case _:
            assert_never(outcome)
