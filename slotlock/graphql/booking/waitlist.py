"""The waiting list of a slot: join it, leave it, and list it as an organizer or a leader."""

from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking_refusals import SlotNotFound, UserNotFound
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.booking.booking_results import JOIN_WAITLIST, LEAVE_WAITLIST
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import DEFAULT_WAIT_MS, WaitMsArgument, to_wait_seconds
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, First, page_start
from slotlock.graphql.core.cursors import BY_TIME, ListCursors
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.core.outcomes import ResultView, refuse_id
from slotlock.graphql.slots.slot_queries import WaitlistEntryConnection
from slotlock.graphql.slots.slot_types import Slot, WaitlistEntry
from slotlock.services.booking import waitlist
from slotlock.services.booking.permissions import with_dependents

SlotIdArgument = Annotated[strawberry.ID, argument(description="The id of the slot.")]
UserIdArgument = Annotated[
    strawberry.ID | None,
    argument(
        description="The user who waits; the caller by default. Only for the user's guardians and "
        "organizers."
    ),
]


@strawberry.type
class WaitlistMutations:
    @JOIN_WAITLIST.mutation(
        "Join the waiting list of a full slot. Free places go to the users on the list "
        "in the order in which they joined. Organizers can put other users on the list, and "
        "guardians those for whom they act, who must be allowed to book."
    )
    async def join_waitlist(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        user_id: UserIdArgument = None,
    ) -> object:
        caller, wait_s = info.context.caller, to_wait_seconds(wait_ms)
        if (parsed_id := ids.parse_slot_id(slot_id)) is None:
            return refuse_id(SlotNotFound, slot_id)
        caller, waiting_id = await _parse_waiting_user(info, user_id)
        if waiting_id is None:
            return refuse_id(UserNotFound, user_id or "")
        by = None if waiting_id == caller.user_id else caller.user_id
        result = await waitlist.join(
            info.context.services, parsed_id, waiting_id, wait_s, waitlisted_by=by
        )
        return JOIN_WAITLIST.present(result.outcome, ResultView(caller, result.slots, waiting_id))

    @LEAVE_WAITLIST.mutation(
        "Leave the waiting list of a slot, or take another user off it as a guardian or as an "
        "organizer."
    )
    async def leave_waitlist(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        user_id: UserIdArgument = None,
    ) -> object:
        caller, wait_s = info.context.caller, to_wait_seconds(wait_ms)
        if (parsed_id := ids.parse_slot_id(slot_id)) is None:
            return refuse_id(SlotNotFound, slot_id)
        caller, waiting_id = await _parse_waiting_user(info, user_id)
        if waiting_id is None:
            return refuse_id(UserNotFound, user_id or "")
        result = await waitlist.leave(
            info.context.services, parsed_id, waiting_id, wait_s, removed_by=caller.user_id
        )
        return LEAVE_WAITLIST.present(result.outcome, ResultView(caller, result.slots, waiting_id))


async def _parse_waiting_user(
    info: Info, user_id: strawberry.ID | None
) -> tuple[Caller, UserId | None]:
    """Return the caller, and the user who waits, None for a malformed id. Errors: FORBIDDEN."""
    caller = info.context.caller
    if user_id is None:
        return caller, caller.user_id
    parsed_id = ids.parse_user_id(user_id)
    if parsed_id != caller.user_id and not caller.is_organizer:
        caller = await with_dependents(info.context.services, caller)
        if parsed_id not in caller.acts_for:
            message = "Only organizers may do this, and the guardians of the user."
            raise GraphQLRequestError(ErrorCode.FORBIDDEN, message)
    return caller, parsed_id


SLOT_WAITLIST = ListCursors("slotWaitlist", BY_TIME, lambda entry: Position(entry.since, entry.id))


@strawberry.type
class WaitlistQueries:
    @field(
        description="The waiting list of a slot in the order in which places are given out. Users "
        "with an offer are not on it: `slotRoster` has their holds. Only organizers and leaders of "
        "the slot can read it."
    )
    async def slot_waitlist(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> WaitlistEntryConnection | None:
        parsed_id = ids.parse_slot_id(slot_id)
        leader = await info.context.require_leader(parsed_id)
        start = page_start(SLOT_WAITLIST, first, after)
        found = parsed_id and await waitlist.page(info.context.services, parsed_id, *start)
        if not found:
            return None
        slot = Slot(found.slot, leader)
        nodes = [
            WaitlistEntry(entry, slot, index)
            for index, entry in enumerate(found.entries, found.first_position)
        ]
        page = Page(found.entries, found.has_more)
        count = partial(_count, found.length)
        return WaitlistEntryConnection(page, nodes, SLOT_WAITLIST, after, count)


async def _count(length: int) -> int:
    return length
