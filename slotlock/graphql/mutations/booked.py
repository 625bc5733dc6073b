"""What becomes of a booking: confirmed, extended, cancelled, moved."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.desk import booked as desk
from slotlock.desk.booked import Errand
from slotlock.domain.people import Caller
from slotlock.graphql import ids
from slotlock.graphql.arguments import (
    KEY,
    PATIENT_MS,
    WAIT,
    Key,
    WaitMs,
    checked_key,
    checked_wait,
)
from slotlock.graphql.context import Info
from slotlock.graphql.types.booked_results import (
    CancelBookingResult,
    ConfirmBookingResult,
    ExtendHoldResult,
    MoveBookingResult,
    cancelled,
    confirmed,
    extended,
    moved,
)
from slotlock.graphql.types.refusals import (
    BookingNotFound,
    SlotNotFound,
)

BookingIdArgument = Annotated[strawberry.ID, argument(description="The booking.")]


@strawberry.input(description="Which booking to move, and where.")
class MoveBookingInput:
    booking_id: strawberry.ID = field(description="The booking.")
    slot_id: strawberry.ID = field(description="The slot to move it to.")
    wait_ms: int = field(default=PATIENT_MS, description=WAIT)
    idempotency_key: str | None = field(default=None, description=KEY)


@strawberry.type
class BookedMutations:
    @field(description="Make a hold a booking for good, while it lasts.")
    async def confirm_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMs = PATIENT_MS,
        idempotency_key: Key = None,
    ) -> ConfirmBookingResult:
        caller = info.context.caller
        errand = _errand(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.of(booking_id)
        return confirmed(await desk.confirm(info.context.desk, errand), booking_id, caller)

    @field(
        description="Let a hold last as long as one that begins now, at most 60 minutes in all. "
        "An offer from the waiting list is not extended."
    )
    async def extend_hold(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMs = PATIENT_MS,
        idempotency_key: Key = None,
    ) -> ExtendHoldResult:
        caller = info.context.caller
        errand = _errand(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.of(booking_id)
        return extended(await desk.extend(info.context.desk, errand), booking_id, caller)

    @field(description="Give a place back: one's own until the cut-off, any for organisers.")
    async def cancel_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMs = PATIENT_MS,
        idempotency_key: Key = None,
    ) -> CancelBookingResult:
        caller = info.context.caller
        errand = _errand(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.of(booking_id)
        return cancelled(await desk.cancel(info.context.desk, errand), booking_id, caller)

    @field(description="Exchange a place for one in another slot: never two, never none.")
    async def move_booking(
        self,
        info: Info,
        input: Annotated[MoveBookingInput, argument(description="What and where.")],  # noqa: A002
    ) -> MoveBookingResult:
        caller = info.context.caller
        errand = _errand(input.booking_id, caller, input.wait_ms, input.idempotency_key)
        slot_id = ids.slot_id_of(input.slot_id)
        if errand is None:
            return BookingNotFound.of(input.booking_id)
        if slot_id is None:
            return SlotNotFound.of(input.slot_id)
        outcome = await desk.move(info.context.desk, errand, slot_id)
        return moved(outcome, input.booking_id, caller)


def _errand(booking_gid: str, caller: Caller, wait_ms: int, key: str | None) -> Errand | None:
    found = ids.booking_id_of(booking_gid)
    wait_s, key = checked_wait(wait_ms), checked_key(key)
    return Errand(*found, caller, wait_s, key) if found else None
