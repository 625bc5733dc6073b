"""Tickets of the admission queue, and why there is none."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals, tickets
from slotlock.domain.booking.tickets import TicketStatus
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.limit_refusals import LimitRefusal
from slotlock.graphql.booking.refusals import (
    KeyReused,
    OnBehalfRefusal,
    to_booking_refusal,
    to_on_behalf_refusal,
)
from slotlock.graphql.booking.results import BookSlotResult, to_book_slot_result
from slotlock.graphql.core.ids import slot_global_id, ticket_global_id
from slotlock.graphql.core.refusals import (
    AlreadyBooked,
    Refusal,
    RefusalCode,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
)
from slotlock.graphql.users.types import Node


@strawberry.type(
    description="A place in the line in front of a slot. Seen by who asked for it, for 24 hours."
)
class Ticket(Node):
    slot_id: strawberry.ID = field(description="The slot.")
    status: TicketStatus = field(description="Where it is on its way.")
    position: int | None = field(
        description="Its place in line, from 1; null once it has left the line, and while the line "
        "cannot be asked."
    )
    asked_at: datetime = field(description="When it was asked for.")
    outcome: BookSlotResult | None = field(
        description="What came of it, once `status` is ANSWERED; never `Locked`. It is the same "
        "however often it is asked for."
    )

    @classmethod
    def from_domain(cls, ticket: tickets.Ticket, viewer: Caller) -> Self:
        return cls(
            id=ticket_global_id(ticket.ref),
            slot_id=slot_global_id(ticket.ref.slot_id),
            status=ticket.status,
            position=ticket.position,
            asked_at=ticket.ref.requested_at,
            outcome=to_book_slot_result(ticket.outcome, viewer) if ticket.outcome else None,
        )


@strawberry.type(description="As many stand in line as may.")
class QueueFull(Refusal):
    slot_id: strawberry.ID = field(description="The slot.")
    retry_after_ms: int = field(description="Asking again is worth it after this many ms.")

    @classmethod
    def from_domain(cls, outcome: refusals.QueueFull) -> Self:
        return cls(
            code=RefusalCode.QUEUE_FULL,
            message="Too many people are in line right now. Please try again.",
            slot_id=slot_global_id(outcome.slot_id),
            retry_after_ms=outcome.retry_after_ms,
        )


RequestBookingResult = Annotated[
    Ticket
    | QueueFull
    | SlotNotFound
    | SlotFull
    | AlreadyBooked
    | LimitRefusal
    | SlotCancelled
    | KeyReused
    | OnBehalfRefusal,
    strawberry.union("RequestBookingResult", description="What came of asking for a ticket."),
]


def to_request_booking_result(
    outcome: tickets.RequestBookingOutcome, viewer: Caller
) -> RequestBookingResult:
    """An outcome as its caller sees it."""
    match outcome:
        case tickets.Ticket():
            return Ticket.from_domain(outcome, viewer)
        case refusals.QueueFull():
            return QueueFull.from_domain(outcome)
        case refusals.KeyReused():
            return KeyReused.from_domain(outcome)
        case refusals.NotTeammate() | refusals.UserNotFound() | refusals.UserBanned():
            return to_on_behalf_refusal(outcome)
        case _:
            return to_booking_refusal(outcome, viewer)
