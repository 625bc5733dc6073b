"""What comes of booking one place, at once or by a ticket."""

from typing import Annotated

import strawberry
from strawberry import field

from slotlock.domain import outcomes
from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.graphql.types import slots as types
from slotlock.graphql.types.booking_refusals import (
    KeyReused,
    OnBehalfRefusal,
    to_booking_refusal,
    to_on_behalf_refusal,
)
from slotlock.graphql.types.limit_refusals import LimitRefusal
from slotlock.graphql.types.refusals import (
    AlreadyBooked,
    Locked,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
)
from slotlock.graphql.types.slots import Slot


@strawberry.type(description="The place is theirs, for good or as a hold.")
class Booked:
    booking: types.Booking = field(description="The booking that was made.")
    slot: Slot = field(description="The slot right after it.")

    @classmethod
    def from_domain(cls, outcome: outcomes.Booked, viewer: Caller) -> "Booked":
        slot = Slot.from_domain(outcome.slot, viewer)
        return cls(booking=types.Booking.from_domain(outcome.booking, slot, viewer), slot=slot)


BookSlotResult = Annotated[
    Booked
    | Locked
    | SlotNotFound
    | SlotFull
    | AlreadyBooked
    | LimitRefusal
    | SlotCancelled
    | KeyReused
    | OnBehalfRefusal,
    strawberry.union("BookSlotResult", description="What came of booking."),
]


def to_book_slot_result(outcome: outcomes.BookOutcome, viewer: Caller) -> BookSlotResult:
    """An outcome as its caller sees it."""
    match outcome:
        case outcomes.Booked():
            return Booked.from_domain(outcome, viewer)
        case refused.Locked():
            return Locked.from_domain(outcome)
        case refused.KeyReused():
            return KeyReused.from_domain(outcome)
        case refused.NotTeammate() | refused.UserNotFound() | refused.UserBanned():
            return to_on_behalf_refusal(outcome)
        case _:
            return to_booking_refusal(outcome, viewer)
