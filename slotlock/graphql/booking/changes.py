"""What becomes of a booking: confirmed, extended, cancelled, moved."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.results import (
    CancelBookingResult,
    ConfirmBookingResult,
    ExtendHoldResult,
    MoveBookingResult,
    to_cancel_result,
    to_confirm_result,
    to_extend_result,
    to_move_result,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    DEFAULT_WAIT_MS,
    KEY_DESCRIPTION,
    WAIT_DESCRIPTION,
    IdempotencyKeyArgument,
    WaitMsArgument,
    require_valid_key,
    to_wait_seconds,
)
from slotlock.graphql.core.refusals import BookingNotFound, SlotNotFound
from slotlock.services.booking import changes
from slotlock.services.booking.changes import BookingChangeRequest

BookingIdArgument = Annotated[strawberry.ID, argument(description="The booking.")]


@strawberry.input(description="Which booking to move, and where.")
class MoveBookingInput:
    booking_id: strawberry.ID = field(description="The booking.")
    slot_id: strawberry.ID = field(description="The slot to move it to.")
    wait_ms: int = field(default=DEFAULT_WAIT_MS, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.type
class BookingChangeMutations:
    @field(description="Make a hold a booking for good, while it lasts.")
    async def confirm_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> ConfirmBookingResult:
        caller = info.context.caller
        errand = _command(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.for_id(booking_id)
        return to_confirm_result(
            await changes.confirm(info.context.services, errand), booking_id, caller
        )

    @field(
        description="Let a hold last as long as one that begins now, at most 60 minutes in all. "
        "An offer from the waiting list is not extended."
    )
    async def extend_hold(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> ExtendHoldResult:
        caller = info.context.caller
        errand = _command(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.for_id(booking_id)
        return to_extend_result(
            await changes.extend(info.context.services, errand), booking_id, caller
        )

    @field(description="Give a place back: one's own until the cut-off, any for organisers.")
    async def cancel_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> CancelBookingResult:
        caller = info.context.caller
        errand = _command(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.for_id(booking_id)
        return to_cancel_result(
            await changes.cancel(info.context.services, errand), booking_id, caller
        )

    @field(description="Exchange a place for one in another slot: never two, never none.")
    async def move_booking(
        self,
        info: Info,
        input: Annotated[MoveBookingInput, argument(description="What and where.")],  # noqa: A002
    ) -> MoveBookingResult:
        caller = info.context.caller
        errand = _command(input.booking_id, caller, input.wait_ms, input.idempotency_key)
        slot_id = ids.parse_slot_id(input.slot_id)
        if errand is None:
            return BookingNotFound.for_id(input.booking_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        outcome = await changes.move(info.context.services, errand, slot_id)
        return to_move_result(outcome, input.booking_id, caller)


def _command(
    booking_global_id: str, caller: Caller, wait_ms: int, key: str | None
) -> BookingChangeRequest | None:
    found = ids.parse_booking_id(booking_global_id)
    wait_s, key = to_wait_seconds(wait_ms), require_valid_key(key)
    return BookingChangeRequest(*found, caller, wait_s, key) if found else None
