"""Mutations that join and leave the waiting list of a slot."""

from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes
from slotlock.domain.users.user import UserId
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
from slotlock.graphql.users.refusals import UserBanned, UserNotFound
from slotlock.services.booking import waitlist


@strawberry.type(description="The user is on the waiting list now.")
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
    description="The user left the waiting list. The order of the other entries does not change."
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
    | Locked
    | UserNotFound
    | UserBanned,
    strawberry.union("JoinWaitlistResult", description="The waiting list entry, or a refusal."),
]
LeaveWaitlistResult = Annotated[
    WaitlistLeft | NotWaiting | SlotNotFound | Locked | UserNotFound,
    strawberry.union(
        "LeaveWaitlistResult", description="The slot without the entry, or a refusal."
    ),
]

SlotIdArgument = Annotated[strawberry.ID, argument(description="The id of the slot.")]
UserIdArgument = Annotated[
    strawberry.ID | None,
    argument(description="The user who waits; the caller by default. Only for organizers."),
]


@strawberry.type
class WaitlistMutations:
    @field(
        description="Join the waiting list of a full slot. Free places go to the users on the list "
        "in the order in which they joined. Organizers can put other users on the list, who must "
        "be allowed to book.",
        graphql_type=JoinWaitlistResult,
    )
    async def join_waitlist(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        user_id: UserIdArgument = None,
    ) -> WaitlistJoined | Refusal:
        caller = info.context.caller
        wait_s = to_wait_seconds(wait_ms)
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        waiting_id = _parse_waiting_user(info, user_id)
        if waiting_id is None:
            return UserNotFound.for_id(user_id or "")
        by = None if waiting_id == caller.user_id else caller.user_id
        result = await waitlist.join(
            info.context.services, parsed_id, waiting_id, wait_s, waitlisted_by=by
        )
        outcome, view = result.outcome, ResultView(caller, result.slots, waiting_id)
        if isinstance(outcome, outcomes.WaitlistJoined):
            return WaitlistJoined.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)

    @field(
        description="Leave the waiting list of a slot, or take another user off it as an "
        "organizer.",
        graphql_type=LeaveWaitlistResult,
    )
    async def leave_waitlist(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        user_id: UserIdArgument = None,
    ) -> WaitlistLeft | Refusal:
        caller = info.context.caller
        wait_s = to_wait_seconds(wait_ms)
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        waiting_id = _parse_waiting_user(info, user_id)
        if waiting_id is None:
            return UserNotFound.for_id(user_id or "")
        result = await waitlist.leave(
            info.context.services, parsed_id, waiting_id, wait_s, removed_by=caller.user_id
        )
        outcome, view = result.outcome, ResultView(caller, result.slots, waiting_id)
        if isinstance(outcome, outcomes.WaitlistLeft):
            return WaitlistLeft.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)


def _parse_waiting_user(info: Info, user_id: strawberry.ID | None) -> UserId | None:
    """Return the user who waits, None for a malformed id. Errors: FORBIDDEN."""
    caller = info.context.caller
    if user_id is None:
        return caller.user_id
    parsed_id = ids.parse_user_id(user_id)
    if parsed_id != caller.user_id:
        info.context.require_organizer()
    return parsed_id
