"""What clients can watch."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import strawberry
from strawberry import argument

from slotlock.graphql.booking.ticket_types import Ticket
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.slots.events import BookingEvent, SlotAvailability
from slotlock.services.admission import tickets
from slotlock.services.slots import queries

MAX_WATCHED_SLOTS = 100


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
        if not 1 <= len(slot_ids) <= MAX_WATCHED_SLOTS:
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT, f"1 to {MAX_WATCHED_SLOTS} slots can be watched."
            )
        wanted = {gid: ids.parse_slot_id(gid) for gid in slot_ids}
        named = [slot_id for slot_id in wanted.values() if slot_id]
        found = await queries.find_slots(context.services, named, context.viewer)
        if missing := next((gid for gid, slot_id in wanted.items() if slot_id not in found), None):
            raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, f"There is no slot {missing[:64]}.")
        async with (
            context.services.availability.subscribe(named) as watch,
            aclosing(watch.states()) as states,
        ):
            async for state in states:
                yield SlotAvailability.from_domain(state)

    @strawberry.subscription(
        description="What others and the clock do to the caller's bookings, from now on: a place "
        "from the waiting list, a hold that ran out, a cancellation or a move by somebody else."
    )
    async def my_bookings(self, info: Info) -> AsyncGenerator[BookingEvent, None]:
        context = info.context
        caller = context.caller
        async with (
            context.services.booking_events.subscribe(caller.user_id) as watch,
            aclosing(watch.events()) as events,
        ):
            async for news in events:
                yield BookingEvent.from_domain(news, caller)

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
        caller, ref = context.caller, ids.parse_ticket_id(id)
        if ref is None or await tickets.find_ticket(context.services, ref, caller) is None:
            raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, f"There is no ticket {id[:128]}.")
        async with (
            context.services.ticket_updates.subscribe(ref) as watch,
            aclosing(watch.states()) as states,
        ):
            async for state in states:
                yield Ticket.from_domain(state, caller)
