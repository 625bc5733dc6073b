"""The booking queue: tickets as their users see them, and the requests that lead to them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.admission import tickets
from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import SlotNotFound, UserNotFound
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.book import (
    BookSlotArgument,
    parse_booked_user_id,
    to_booking_options,
)
from slotlock.graphql.booking.booking_results import BOOK_SLOT
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_TICKET, ListCursors
from slotlock.graphql.core.enums import TicketStatus
from slotlock.graphql.core.ids import slot_global_id, ticket_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.outcomes import (
    Result,
    ResultView,
    refuse_id,
    register_type,
    register_value,
)
from slotlock.graphql.slots.slot_types import Slot, load_slot
from slotlock.services.admission import enqueue
from slotlock.services.admission.tickets import (
    cancel_ticket,
    count_tickets,
    find_ticket,
    list_tickets,
)
from slotlock.services.container import Services


@strawberry.type(
    description="A request in the booking queue of a slot. Only the user who made the request sees "
    "the ticket, for 24 hours."
)
class Ticket(Node):
    slot_id: strawberry.ID = field(description="The id of the slot.")
    status: TicketStatus = field(description="The progress of the request.")
    position: int | None = field(
        description="The position in the queue, starting at 1; null once the request has left the "
        "queue, and while the queue is unavailable."
    )
    asked_at: datetime = field(
        description="When the request was made.", deprecation_reason="Use `requestedAt`."
    )
    requested_at: datetime = field(description="When the request was made.")
    outcome: object = field(
        description="The result of the request once `status` is ANSWERED. It never changes and is "
        "never `Locked`. While the slot is hidden from the user, refusals about the slot read "
        "as `SlotNotFound`.",
        graphql_type=BOOK_SLOT.type | None,
    )
    ref: strawberry.Private[TicketRef]

    @field(
        description="The slot as it is now; null while it is hidden from the user. Next to the "
        "`slot` of refusals, which is never null, select it under an alias."
    )
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.ref.slot_id)

    @classmethod
    def from_domain(cls, ticket: tickets.Ticket, viewer: Caller) -> Self:
        return cls.in_view(ticket, ticket_view(viewer))

    @classmethod
    def in_view(cls, ticket: tickets.Ticket, view: ResultView) -> Self:
        """Show a ticket to the viewer of a result."""
        outcome = None
        if result := ticket.result:
            viewer = view.viewer
            if viewer and ticket.acts_for:
                viewer = replace(viewer, acts_for=ticket.acts_for)
            booked_for = view.booked_for if ticket.is_own else None
            shown = ResultView(viewer, result.slots, booked_for)
            outcome = BOOK_SLOT.present(result.outcome, shown)
        return cls(
            id=ticket_global_id(ticket.ref),
            slot_id=slot_global_id(ticket.ref.slot_id),
            status=ticket.status,
            position=ticket.position,
            asked_at=ticket.ref.requested_at,
            requested_at=ticket.ref.requested_at,
            outcome=outcome,
            ref=ticket.ref,
        )


TicketConnection = Connection[Ticket]


register_type(tickets.Ticket, Ticket, Ticket.in_view)
register_value(TicketRef, strawberry.ID, lambda ref, _outcome, _view: ticket_global_id(ref))

REQUEST_BOOKING = Result[tickets.RequestBookingOutcome](
    "RequestBookingResult", "The ticket, or a refusal."
)
CANCEL_TICKET = Result[tickets.CancelTicketOutcome](
    "CancelTicketResult", "The cancelled ticket, or a refusal."
)


def ticket_view(
    viewer: Caller, slots: Mapping[SlotId, SlotState] | None = None, *, is_own: bool = True
) -> ResultView:
    """Return the view of a ticket's outcome, which reads the same in every answer.

    A ticket does not say for which other user it is.
    """
    is_own = is_own and not viewer.is_organizer
    return ResultView(viewer, slots or {}, viewer.user_id if is_own else None)


async def load_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """Load a ticket if it is the caller's."""
    ticket = await find_ticket(services, ref, caller)
    return Ticket.from_domain(ticket, caller) if ticket else None


MY_TICKETS = ListCursors("myTickets", BY_TICKET, lambda ticket: ticket.ref)

TicketIdArgument = Annotated[strawberry.ID, argument(description="The id of the ticket.")]


@strawberry.type
class TicketMutations:
    @REQUEST_BOOKING.mutation(
        "Add a booking request to the queue of a slot. The server returns a ticket "
        "immediately and processes requests in order of arrival. Requests that cannot succeed now "
        "are refused immediately. A user who already waits for the same place gets the existing "
        "ticket. `waitMs` has no effect."
    )
    async def request_booking(self, info: Info, input: BookSlotArgument) -> object:
        caller = info.context.caller
        options = to_booking_options(input)
        if (slot_id := ids.parse_slot_id(input.slot_id)) is None:
            return refuse_id(SlotNotFound, input.slot_id)
        if (user_id := parse_booked_user_id(input.user_id, caller)) is None:
            return refuse_id(UserNotFound, input.user_id or "")
        result = await enqueue.request_booking(
            info.context.services, caller, slot_id, user_id, options
        )
        view = ticket_view(caller, result.slots, is_own=user_id == caller.user_id)
        if result.caller and user_id in result.caller.acts_for:  # refused at once
            view = ResultView(result.caller, result.slots, user_id)
        return REQUEST_BOOKING.present(result.outcome, view)

    @CANCEL_TICKET.mutation(
        "Cancel a queued request, so that it never books a place. Requests behind it "
        "move up. A request that was processed already is not undone."
    )
    async def cancel_ticket(self, info: Info, ticket_id: TicketIdArgument) -> object:
        caller, ref = info.context.caller, ids.parse_ticket_id(ticket_id)
        if ref is None:
            return refuse_id(tickets.TicketNotFound, ticket_id)
        outcome = await cancel_ticket(info.context.services, ref, caller)
        return CANCEL_TICKET.present(outcome, ticket_view(caller))


@strawberry.type
class TicketQueries:
    @field(
        description="A ticket of the caller by id, or null if there is none or it is older than 24 "
        "hours."
    )
    async def ticket(self, info: Info, id: TicketIdArgument) -> Ticket | None:
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
        start = page_start(MY_TICKETS, first, after)
        page = await list_tickets(info.context.services, caller, *start)
        return TicketConnection.of_page(
            page,
            lambda ticket: Ticket.from_domain(ticket, caller),
            MY_TICKETS,
            after,
            partial(count_tickets, info.context.services, caller),
        )
