"""Subscriptions: live availability, booking events, waiting list positions and tickets."""

from collections.abc import AsyncGenerator, AsyncIterable, Set
from contextlib import aclosing
from typing import Annotated, Any

import strawberry
from strawberry import argument

from slotlock.graphql.booking.tickets import Ticket
from slotlock.graphql.campaigns.campaign_changes import (
    UNSHARED_FIELDS,
    CampaignChange,
    CampaignChanges,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import ReadForArgument
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.node import names_below
from slotlock.graphql.reports.campaign_report_queries import require_campaign_id
from slotlock.graphql.reports.campaign_statistics import CampaignStatistics
from slotlock.graphql.shared_events import SharedEvents
from slotlock.graphql.slots.availability_events import (
    SLOT_FIELD,
    BookingEvent,
    CampaignAvailability,
    SlotAvailability,
    SlotsAvailability,
    WaitlistEntryEvent,
)
from slotlock.services.admission import tickets
from slotlock.services.campaigns import campaigns

SlotIdsArgument = Annotated[
    list[strawberry.ID], argument(description="The ids of 1 to 100 slots. Repeated ids count once.")
]
CampaignIdArgument = Annotated[strawberry.ID, argument(description="The id of the campaign.")]
IncludeOwnArgument = Annotated[
    bool,
    argument(description="Whether changes that the caller makes are included, for other devices."),
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
        return _shared_unless({SLOT_FIELD}, info, SlotsAvailability(info.context, slot_ids))

    @strawberry.subscription(
        description="The availability of the slots of a campaign: first the current state of each "
        "slot, then every newer state. Slots that are created or published later are included. "
        "Organizers also receive drafts. At most 1000 slots, the first by start; those that ended "
        "more than a day ago are left out. A slow client receives the latest state and misses "
        "those in between."
    )
    def campaign_availability(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> AsyncIterable[SlotAvailability]:
        return _shared_unless({SLOT_FIELD}, info, CampaignAvailability(info.context, campaign_id))

    @strawberry.subscription(
        description="The campaigns that the caller sees: first those that have not closed, at most "
        "100 by opening time, then every campaign that is created, published, edited, opened, "
        "closed, hidden or deleted. A slow client receives the latest state of each."
    )
    def campaign_changes(self, info: Info) -> AsyncIterable[CampaignChange]:
        return _shared_unless(UNSHARED_FIELDS, info, CampaignChanges(info.context))

    @strawberry.subscription(
        description="The statistics of a campaign: first the current ones, then those after each "
        "change, at most one a second, and fewer if a campaign has very many bookings. They have "
        "no time series. Organizers only.",
        graphql_type=CampaignStatistics,
    )
    async def campaign_statistics(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> AsyncGenerator[object, None]:
        caller, services = info.context.require_organizer(), info.context.services
        parsed_id = require_campaign_id(campaign_id)
        campaign = await campaigns.find(services, parsed_id, caller)
        if campaign is None:
            raise bad_input("campaignId", "There is no such campaign.")
        async with (
            services.live_statistics.subscribe(campaign) as subscription,
            aclosing(subscription) as states,
        ):
            async for state in states:
                yield state

    @strawberry.subscription(
        description="Changes to the caller's bookings, by default only those that the caller did "
        "not make: bookings and offers from the waiting list, expired holds, and changes by other "
        "users. Also a new time, place or staff of a booked slot, and waiting list entries that "
        "ended without a place. With a `userId`, it ends when the caller is no guardian any more."
    )
    async def my_bookings(
        self,
        info: Info,
        include_own: IncludeOwnArgument = False,
        user_id: ReadForArgument = None,
    ) -> AsyncGenerator[BookingEvent, None]:
        context = info.context
        caller = context.caller if user_id is None else await context.caller_for(user_id)
        async with (
            context.services.booking_events.subscribe(
                caller.user_id, include_own=include_own, reader_id=caller.actor_id
            ) as subscription,
            aclosing(subscription.events()) as events,
        ):
            async for event in events:
                if await context.has_lost(caller):
                    return
                yield BookingEvent.from_domain(event, caller)

    @strawberry.subscription(
        description="The caller's positions on waiting lists: first the current position in each "
        "slot that the caller waits for, then every new one, also after joining another list. A "
        "slow client receives the latest position of each. With a `userId`, it ends when the "
        "caller is no guardian any more."
    )
    async def my_waitlist_entries(
        self, info: Info, user_id: ReadForArgument = None
    ) -> AsyncGenerator[WaitlistEntryEvent, None]:
        context = info.context
        caller = context.caller if user_id is None else await context.caller_for(user_id)
        async with (
            context.services.waitlist_positions.subscribe(caller.user_id) as subscription,
            aclosing(subscription.positions()) as positions,
        ):
            async for position in positions:
                if await context.has_lost(caller):
                    return
                yield WaitlistEntryEvent.from_domain(position, caller)

    @strawberry.subscription(
        description="The progress of a ticket: its current state, every new position in the queue, "
        "and its outcome, which completes the subscription. A slow client receives the latest "
        "state only."
    )
    async def ticket(self, info: Info, id: TicketIdArgument) -> AsyncGenerator[Ticket, None]:
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


def _shared_unless(fields: Set[str], info: Info, events: SharedEvents[Any]) -> AsyncIterable[Any]:
    """Return the events for subscribers with shared responses, unless they select these fields.

    Their values depend on the viewer, or are read from MongoDB.
    """
    raw_info = info._raw_info
    if not fields.isdisjoint(names_below(raw_info.field_nodes, raw_info.fragments)):
        return aiter(events)  # executed for each subscriber
    return events
