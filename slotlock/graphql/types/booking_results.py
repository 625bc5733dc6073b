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
    PartyRefusal,
    party_refusal,
    place_refusal,
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
    def of(cls, outcome: outcomes.Booked, caller: Caller) -> "Booked":
        slot = Slot.of(outcome.slot, caller)
        return cls(booking=types.Booking.of(outcome.booking, slot, caller), slot=slot)


BookSlotResult = Annotated[
    Booked
    | Locked
    | SlotNotFound
    | SlotFull
    | AlreadyBooked
    | LimitRefusal
    | SlotCancelled
    | KeyReused
    | PartyRefusal,
    strawberry.union("BookSlotResult", description="What came of booking."),
]


def booked(outcome: outcomes.BookOutcome, caller: Caller) -> BookSlotResult:
    """An outcome as its caller sees it."""
    match outcome:
        case outcomes.Booked():
            return Booked.of(outcome, caller)
        case refused.Locked():
            return Locked.of(outcome)
        case refused.KeyReused():
            return KeyReused.of(outcome)
        case refused.NotTeammate() | refused.PersonNotFound() | refused.PersonBanned():
            return party_refusal(outcome)
        case _:
            return place_refusal(outcome, caller)
