"""Tickets of the booking queue, as the users who requested them see them."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.admission import tickets
from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.refusals.book import BookingRefusal, QueueFull
from slotlock.graphql.booking.results import Booked, BookSlotResult, present_book_outcome
from slotlock.graphql.core.enums import TicketStatus
from slotlock.graphql.core.ids import slot_global_id, ticket_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.refusals import KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.users.refusals import OnBehalfRefusal
from slotlock.services.admission.tickets import find_ticket
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
    asked_at: datetime = field(description="When the request was made.")
    outcome: Booked | Refusal | None = field(
        description="The result of the request once `status` is ANSWERED. It never changes and is "
        "never `Locked`. While the slot is hidden from the user, refusals about the slot read "
        "as `SlotNotFound`.",
        graphql_type=BookSlotResult | None,
    )

    @classmethod
    def from_domain(cls, ticket: tickets.Ticket, viewer: Caller) -> Self:
        """Show a ticket to the user who requested it."""
        result = ticket.result
        outcome = (
            present_book_outcome(result.outcome, ResultView(viewer, result.slots))
            if result
            else None
        )
        return cls(
            id=ticket_global_id(ticket.ref),
            slot_id=slot_global_id(ticket.ref.slot_id),
            status=ticket.status,
            position=ticket.position,
            asked_at=ticket.ref.requested_at,
            outcome=outcome,
        )


RequestBookingResult = Annotated[
    Ticket | QueueFull | BookingRefusal | KeyReused | OnBehalfRefusal,
    strawberry.union("RequestBookingResult", description="The ticket, or a refusal."),
]


async def load_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """Load a ticket if it is the caller's."""
    ticket = await find_ticket(services, ref, caller)
    return Ticket.from_domain(ticket, caller) if ticket else None
