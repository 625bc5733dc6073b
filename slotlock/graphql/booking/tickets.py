"""The booking queue: request a booking, cancel the request, and read tickets."""

from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.admission import tickets
from slotlock.graphql.booking.book import (
    BookSlotArgument,
    parse_booked_user_id,
    to_booking_options,
)
from slotlock.graphql.booking.refusals.present import present_booking_refusal
from slotlock.graphql.booking.ticket_types import (
    CancelTicketResult,
    RequestBookingResult,
    Ticket,
    TicketCancelled,
    TicketConnection,
    TicketNotFound,
    TicketNotQueued,
    load_ticket,
    ticket_view,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, First, require_valid_first
from slotlock.graphql.core.cursors import decode_ticket, encode_ticket
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.slots.refusals import SlotNotFound
from slotlock.graphql.users.refusals import UserNotFound
from slotlock.services.admission import enqueue
from slotlock.services.admission.tickets import cancel_ticket, count_tickets, list_tickets

MY_TICKETS_CURSOR = "myTickets"

TicketIdArgument = Annotated[strawberry.ID, argument(description="The id of the ticket.")]


@strawberry.type
class TicketMutations:
    @field(
        description="Add a booking request to the queue of a slot. The server returns a ticket "
        "immediately and processes requests in order of arrival. Requests that cannot succeed now "
        "are refused immediately. A user who already waits for the same place gets the existing "
        "ticket. `waitMs` has no effect.",
        graphql_type=RequestBookingResult,
    )
    async def request_booking(self, info: Info, input: BookSlotArgument) -> Ticket | Refusal:  # noqa: A002
        caller = info.context.caller
        options = to_booking_options(input)
        slot_id = ids.parse_slot_id(input.slot_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        user_id = parse_booked_user_id(input.user_id, caller)
        if user_id is None:
            return UserNotFound.for_id(input.user_id or "")
        result = await enqueue.request_booking(
            info.context.services, caller, slot_id, user_id, options
        )
        if isinstance(result.outcome, tickets.Ticket):
            return Ticket.from_domain(result.outcome, caller)
        return present_booking_refusal(result.outcome, ticket_view(caller, result.slots))

    @field(
        description="Cancel a queued request, so that it never books a place. Requests behind it "
        "move up. A request that was processed already is not undone.",
        graphql_type=CancelTicketResult,
    )
    async def cancel_ticket(
        self, info: Info, ticket_id: TicketIdArgument
    ) -> TicketCancelled | Refusal:
        caller, ref = info.context.caller, ids.parse_ticket_id(ticket_id)
        if ref is None:
            return TicketNotFound.for_id(ticket_id)
        outcome = await cancel_ticket(info.context.services, ref, caller)
        match outcome:
            case tickets.TicketCancelled():
                return TicketCancelled.from_domain(outcome, caller)
            case tickets.TicketNotQueued():
                return TicketNotQueued.from_domain(outcome, caller)
            case tickets.TicketNotFound():
                return TicketNotFound.for_id(ticket_id)


@strawberry.type
class TicketQueries:
    @field(
        description="A ticket of the caller by id, or null if there is none or it is older than 24 "
        "hours."
    )
    async def ticket(
        self,
        info: Info,
        id: TicketIdArgument,  # noqa: A002
    ) -> Ticket | None:
        caller = info.context.caller
        ref = ids.parse_ticket_id(id)
        return await load_ticket(info.context.services, ref, caller) if ref else None

    @field(
        description="The tickets that the caller requested within the last 24 hours, newest first. "
        "While Redis is unavailable they cannot be listed; `ticket` and `nodes` find them by id."
    )
    async def my_tickets(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> TicketConnection:
        caller = info.context.caller
        page_size, last = require_valid_first(first), decode_ticket(MY_TICKETS_CURSOR, after)
        page = await list_tickets(info.context.services, caller, page_size, last)
        items = [
            (encode_ticket(MY_TICKETS_CURSOR, ticket.ref), Ticket.from_domain(ticket, caller))
            for ticket in page.items
        ]
        return TicketConnection.from_items(
            items,
            has_more=page.has_more,
            after=after,
            count=partial(count_tickets, info.context.services, caller),
        )
