"""Asking for a place by way of the admission queue, and looking at one's ticket."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.graphql.booking.book import BookSlotInput
from slotlock.graphql.booking.refusals import UserNotFound
from slotlock.graphql.booking.ticket_types import (
    RequestBookingResult,
    Ticket,
    to_request_booking_result,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_key, to_wait_seconds
from slotlock.graphql.core.refusals import SlotNotFound
from slotlock.graphql.schema.nodes import load_node
from slotlock.services.admission import enqueue
from slotlock.services.booking.book import BookingOptions


@strawberry.type
class TicketMutations:
    @field(
        description="Stand in line for a place: a ticket now, the answer later. What would be "
        "refused now is refused at once. Places go in order of arrival. Whoever stands in line for "
        "the same place already gets the ticket that they have. `waitMs` plays no part."
    )
    async def request_booking(
        self,
        info: Info,
        input: Annotated[BookSlotInput, argument(description="What to book.")],  # noqa: A002
    ) -> RequestBookingResult:
        caller = info.context.caller
        to_wait_seconds(input.wait_ms)
        wish = BookingOptions(input.hold, key=require_valid_key(input.idempotency_key))
        slot_id = ids.parse_slot_id(input.slot_id)
        user_id = caller.user_id if input.user_id is None else ids.parse_user_id(input.user_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        if user_id is None:
            return UserNotFound.for_id(input.user_id or "")
        outcome = await enqueue.request_booking(
            info.context.services, caller, slot_id, user_id, wish
        )
        return to_request_booking_result(outcome, caller)


@strawberry.type
class TicketQueries:
    @field(description="One's own ticket by its id; null when there is none, or none any more.")
    async def ticket(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The ticket.")],  # noqa: A002
    ) -> Ticket | None:
        _ = info.context.caller
        found = await load_node(info.context, id)
        return found if isinstance(found, Ticket) else None
