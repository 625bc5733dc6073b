"""Tickets of the booking queue, as the users who requested them see them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.admission import tickets
from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.refusals.book import BookingRefusal, QueueFull
from slotlock.graphql.booking.results import Booked, BookSlotResult, present_book_outcome
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import Connection
from slotlock.graphql.core.enums import TicketStatus
from slotlock.graphql.core.ids import slot_global_id, ticket_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.refusals import KeyReused, Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.types import Slot, load_slot
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
    ref: strawberry.Private[TicketRef]

    @field(
        description="The slot as it is now; null while it is hidden from the user. Next to the "
        "`slot` of refusals, which is never null, select it under an alias."
    )
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.ref.slot_id)

    @classmethod
    def from_domain(cls, ticket: tickets.Ticket, viewer: Caller) -> Self:
        """Show a ticket to the user who requested it."""
        result = ticket.result
        outcome = (
            present_book_outcome(result.outcome, ticket_view(viewer, result.slots))
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
            ref=ticket.ref,
        )


RequestBookingResult = Annotated[
    Ticket | QueueFull | BookingRefusal | KeyReused | OnBehalfRefusal,
    strawberry.union("RequestBookingResult", description="The ticket, or a refusal."),
]


TicketConnection = Connection[Ticket]


@strawberry.type(
    description="The request was cancelled: nothing was booked, and nothing will be. Cancelling it "
    "again gives the same result."
)
class TicketCancelled:
    ticket: Ticket = field(description="The cancelled ticket.")

    @classmethod
    def from_domain(cls, outcome: tickets.TicketCancelled, viewer: Caller) -> Self:
        """Show the cancelled ticket."""
        return cls(ticket=Ticket.from_domain(outcome.ticket, viewer))


@strawberry.type(
    description="The request cannot be cancelled: it has an outcome, or the queue lost it."
)
class TicketNotQueued(Refusal):
    ticket: Ticket = field(
        description="The ticket in its final state. `cancelBooking` cancels what it booked."
    )

    @classmethod
    def from_domain(cls, outcome: tickets.TicketNotQueued, viewer: Caller) -> Self:
        """Show the ticket with its outcome."""
        return cls(
            code=RefusalCode.TICKET_NOT_QUEUED,
            message="This request is no longer in the queue.",
            ticket=Ticket.from_domain(outcome.ticket, viewer),
        )


@strawberry.type(description="The caller has no such ticket, or it is older than 24 hours.")
class TicketNotFound(Refusal):
    ticket_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no ticket of the caller."""
        return cls(
            code=RefusalCode.TICKET_NOT_FOUND,
            message="This ticket does not exist.",
            ticket_id=strawberry.ID(global_id),
        )


CancelTicketResult = Annotated[
    TicketCancelled | TicketNotQueued | TicketNotFound,
    strawberry.union("CancelTicketResult", description="The cancelled ticket, or a refusal."),
]


def ticket_view(viewer: Caller, slots: Mapping[SlotId, SlotState]) -> ResultView:
    """Return the view of a ticket's outcome, which reads the same in every answer.

    Only organizers make requests for others, and a ticket does not say for whom.
    """
    return ResultView(viewer, slots, None if viewer.is_organizer else viewer.user_id)


async def load_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """Load a ticket if it is the caller's."""
    ticket = await find_ticket(services, ref, caller)
    return Ticket.from_domain(ticket, caller) if ticket else None
