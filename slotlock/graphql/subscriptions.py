"""What clients can watch."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import strawberry
from strawberry import argument

from slotlock.desk import reading, tickets
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.events import BookingEvent, SlotAvailability
from slotlock.graphql.types.tickets import Ticket

MAX_WATCHED = 100


@strawberry.type(description="What can be watched.")
class Subscription:
    @strawberry.subscription(
        description="First the present state of each slot, then every newer one. A slow reader is "
        "told the latest and spared what came between."
    )
    async def slot_availability(
        self,
        info: Info,
        slot_ids: Annotated[
            list[strawberry.ID], argument(description="1 to 100 slots, each once.")
        ],
    ) -> AsyncGenerator[SlotAvailability, None]:
        context = info.context
        if not 1 <= len(slot_ids) <= MAX_WATCHED:
            raise RefusedError(Code.BAD_USER_INPUT, f"1 to {MAX_WATCHED} slots can be watched.")
        wanted = {gid: ids.slot_id_of(gid) for gid in slot_ids}
        named = [slot_id for slot_id in wanted.values() if slot_id]
        found = await reading.find_slots(context.desk, named, context.reader)
        if missing := next((gid for gid, slot_id in wanted.items() if slot_id not in found), None):
            raise RefusedError(Code.BAD_USER_INPUT, f"There is no slot {missing[:64]}.")
        async with (
            context.desk.board.watching(named) as watch,
            aclosing(watch.states()) as states,
        ):
            async for state in states:
                yield SlotAvailability.of(state)

    @strawberry.subscription(
        description="What others and the clock do to the caller's bookings, from now on: a place "
        "from the waiting list, a hold that ran out, a cancellation or a move by somebody else."
    )
    async def my_bookings(self, info: Info) -> AsyncGenerator[BookingEvent, None]:
        context = info.context
        caller = context.caller
        async with (
            context.desk.personal.watching(caller.user_id) as watch,
            aclosing(watch.news()) as events,
        ):
            async for news in events:
                yield BookingEvent.of(news, caller)

    @strawberry.subscription(
        description="First where a ticket stands, then every newer place in line, in the end its "
        "outcome, once; then it completes. A slow reader is told the latest."
    )
    async def ticket(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The ticket.")],  # noqa: A002
    ) -> AsyncGenerator[Ticket, None]:
        context = info.context
        caller, ref = context.caller, ids.ticket_of(id)
        if ref is None or await tickets.find_ticket(context.desk, ref, caller) is None:
            raise RefusedError(Code.BAD_USER_INPUT, f"There is no ticket {id[:128]}.")
        async with (
            context.desk.tickets.watching(ref) as watch,
            aclosing(watch.states()) as states,
        ):
            async for state in states:
                yield Ticket.of(state, caller)
