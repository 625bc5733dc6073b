"""Booking a place and giving it back."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.desk import booking as desk
from slotlock.domain import outcomes
from slotlock.domain.people import Caller
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.types import slots as types
from slotlock.graphql.types.refusals import (
    AlreadyBooked,
    BookingNotFound,
    Locked,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.graphql.types.slots import Slot


@strawberry.input(description="What to book.")
class BookSlotInput:
    slot_id: strawberry.ID = field(description="The slot.")


@strawberry.type(description="The place is theirs.")
class Booked:
    booking: types.Booking = field(description="The booking.")
    slot: Slot = field(description="The slot as it is now.")


@strawberry.type(description="The place is free again. Cancelling twice gives the same answer.")
class BookingCancelled:
    booking: types.Booking = field(description="The booking that was cancelled.")
    slot: Slot = field(description="The slot as it is now.")


BookSlotResult = Annotated[
    Booked | Locked | SlotNotFound | SlotFull | AlreadyBooked | SlotStarted | SlotCancelled,
    strawberry.union("BookSlotResult", description="What came of booking."),
]
CancelBookingResult = Annotated[
    BookingCancelled | Locked | BookingNotFound | SlotStarted,
    strawberry.union("CancelBookingResult", description="What came of cancelling."),
]


@strawberry.type
class BookingMutations:
    @field(description="Book a place for the caller. Exactly one person gets each place.")
    async def book_slot(
        self,
        info: Info,
        input: Annotated[BookSlotInput, argument(description="What to book.")],  # noqa: A002
    ) -> BookSlotResult:
        caller = info.context.caller
        slot_id = ids.slot_id_of(input.slot_id)
        if slot_id is None:
            return SlotNotFound.of(input.slot_id)
        return _booked(await desk.book(info.context.desk, slot_id, caller.user_id), caller)

    @field(description="Give a place back: one's own until the slot begins, any for organisers.")
    async def cancel_booking(
        self,
        info: Info,
        booking_id: Annotated[strawberry.ID, argument(description="The booking.")],
    ) -> CancelBookingResult:
        caller = info.context.caller
        found = ids.booking_id_of(booking_id)
        if found is None:
            return BookingNotFound.of(booking_id)
        outcome = await desk.cancel(info.context.desk, *found, caller)
        return _cancelled(outcome, booking_id, caller)


def _booked(outcome: outcomes.BookOutcome, caller: Caller) -> BookSlotResult:
    match outcome:
        case outcomes.Booked():
            slot = Slot.of(outcome.slot, caller)
            return Booked(booking=types.Booking.of(outcome.booking, slot), slot=slot)
        case outcomes.Locked():
            return Locked.of(outcome)
        case outcomes.SlotNotFound():
            return SlotNotFound.of(ids.slot_gid(outcome.slot_id))
        case outcomes.SlotFull():
            return SlotFull.of(Slot.of(outcome.slot, caller))
        case outcomes.AlreadyBooked():
            slot = Slot.of(outcome.slot, caller)
            return AlreadyBooked.of(types.Booking.of(outcome.booking, slot), slot)
        case outcomes.SlotStarted():
            return SlotStarted.of(Slot.of(outcome.slot, caller))
        case outcomes.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, caller))
        case _:
            assert_never(outcome)


def _cancelled(
    outcome: outcomes.CancelOutcome, booking_id: str, caller: Caller
) -> CancelBookingResult:
    match outcome:
        case outcomes.BookingCancelled():
            slot = Slot.of(outcome.slot, caller)
            return BookingCancelled(booking=types.Booking.of(outcome.booking, slot), slot=slot)
        case outcomes.Locked():
            return Locked.of(outcome)
        case outcomes.BookingNotFound():
            return BookingNotFound.of(booking_id)
        case outcomes.SlotStarted():
            return SlotStarted.of(Slot.of(outcome.slot, caller))
        case _:
            assert_never(outcome)
