"""Subscriptions: live availability, booking events, waiting list positions and tickets."""

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import Annotated

import strawberry
from strawberry import argument

from slotlock.graphql.booking.ticket_types import Ticket
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.node import names_below
from slotlock.graphql.slots.availability_events import SLOT_FIELD, AvailabilityEvents
from slotlock.graphql.slots.events import BookingEvent, SlotAvailability, WaitlistEntryEvent
from slotlock.services.admission import tickets

SlotIdsArgument = Annotated[
    list[strawberry.ID], argument(description="The ids of 1 to 100 slots. Repeated ids count once.")
]
TicketIdArgument = Annotated[strawberry.ID, argument(description="The id of the ticket.")]


@strawberry.type(description="The root of all subscriptions.")
class Subscription:
    @strawberry.subscription(
        description="The availability of slots: first the current state of each slot, then every "
        "newer state. A slow client receives the latest state and misses those in between."
    )
    def slot_availability(
        self, info: Info, slot_ids: SlotIdsArgument
    ) -> AsyncIterable[SlotAvailability]:
        events = AvailabilityEvents(info.context, slot_ids)
        raw_info = info._raw_info
        if SLOT_FIELD in names_below(raw_info.field_nodes, raw_info.fragments):
            return aiter(events)  # executed for each subscriber: viewers see different things
        return events

    @strawberry.subscription(
        description="Changes to the caller's bookings that the caller did not make: bookings and "
        "offers from the waiting list, expired holds, and changes by other users. Also a new time "
        "or place of a booked slot, and waiting list entries that ended without a place."
    )
    async def my_bookings(self, info: Info) -> AsyncGenerator[BookingEvent, None]:
        context = info.context
        caller = context.caller
        async with (
            context.services.booking_events.subscribe(caller.user_id) as subscription,
            aclosing(subscription.events()) as events,
        ):
            async for event in events:
                yield BookingEvent.from_domain(event, caller)

    @strawberry.subscription(
        description="The caller's positions on waiting lists: first the current position in each "
        "slot that the caller waits for, then every new one, also after joining another list. A "
        "slow client receives the latest position of each."
    )
    async def my_waitlist_entries(self, info: Info) -> AsyncGenerator[WaitlistEntryEvent, None]:
        context = info.context
        user_id = context.caller.user_id
        async with (
            context.services.waitlist_positions.subscribe(user_id) as subscription,
            aclosing(subscription.positions()) as positions,
        ):
            async for position in positions:
                yield WaitlistEntryEvent.from_domain(position)

    @strawberry.subscription(
        description="The progress of a ticket: its current state, every new position in the queue, "
        "and its outcome, which completes the subscription. A slow client receives the latest "
        "state only."
    )
    async def ticket(self, info: Info, id: TicketIdArgument) -> AsyncGenerator[Ticket, None]:  # noqa: A002
        context = info.context
        caller, ref = context.caller, ids.parse_ticket_id(id)
        if ref is None or await tickets.find_ticket(context.services, ref, caller) is None:
            raise bad_input("id", "There is no such ticket.")
        async with (
            context.services.ticket_updates.subscribe(ref) as subscription,
            aclosing(subscription.states()) as states,
        ):
            async for state in states:
                yield Ticket.from_domain(state, caller)
