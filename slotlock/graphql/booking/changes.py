"""Mutations that change a booking: confirm, extend, cancel and move."""

from typing import Annotated, Any

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.refusals.changes import BookingNotFound
from slotlock.graphql.booking.refusals.present import present_booking_refusal
from slotlock.graphql.booking.results import (
    BookingCancelled,
    BookingConfirmed,
    BookingMoved,
    CancelBookingResult,
    ConfirmBookingResult,
    ExtendHoldResult,
    HoldExtended,
    MoveBookingResult,
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
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import SlotNotFound
from slotlock.services.booking import changes
from slotlock.services.booking.changes import BookingChangeRequest
from slotlock.services.booking.move import move

BookingIdArgument = Annotated[strawberry.ID, argument(description="The id of the booking.")]


@strawberry.input(description="The booking to move and its new slot.")
class MoveBookingInput:
    booking_id: strawberry.ID = field(description="The booking to move.")
    slot_id: strawberry.ID = field(description="The slot to move the booking to.")
    wait_ms: int = field(default=DEFAULT_WAIT_MS, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


MoveBookingArgument = Annotated[
    MoveBookingInput, argument(description="The booking and its new slot.")
]


@strawberry.type
class BookingChangeMutations:
    @field(
        description="Confirm a hold before it expires, so that it becomes a booking.",
        graphql_type=ConfirmBookingResult,
    )
    async def confirm_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> BookingConfirmed | Refusal:
        caller = info.context.caller
        command = _to_command(booking_id, caller, wait_ms, idempotency_key)
        if command is None:
            return BookingNotFound.for_id(booking_id)
        result = await changes.confirm(info.context.services, command)
        outcome, view = result.outcome, _view(caller, result)
        if isinstance(outcome, outcomes.BookingConfirmed):
            return BookingConfirmed.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)

    @field(
        description="Extend a hold by the hold time of its slot, starting now. A hold lasts at "
        "most 60 minutes in total. Offers from the waiting list cannot be extended.",
        graphql_type=ExtendHoldResult,
    )
    async def extend_hold(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> HoldExtended | Refusal:
        caller = info.context.caller
        command = _to_command(booking_id, caller, wait_ms, idempotency_key)
        if command is None:
            return BookingNotFound.for_id(booking_id)
        result = await changes.extend(info.context.services, command)
        outcome, view = result.outcome, _view(caller, result)
        if isinstance(outcome, outcomes.HoldExtended):
            return HoldExtended.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)

    @field(
        description="Cancel a booking. Members can cancel their own bookings until the cut-off, "
        "organizers can cancel every booking at any time.",
        graphql_type=CancelBookingResult,
    )
    async def cancel_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> BookingCancelled | Refusal:
        caller = info.context.caller
        command = _to_command(booking_id, caller, wait_ms, idempotency_key)
        if command is None:
            return BookingNotFound.for_id(booking_id)
        result = await changes.cancel(info.context.services, command)
        outcome, view = result.outcome, _view(caller, result)
        if isinstance(outcome, outcomes.BookingCancelled):
            return BookingCancelled.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)

    @field(
        description="Move a booking to another slot. The user has one of the two places at any "
        "time, never both and never none.",
        graphql_type=MoveBookingResult,
    )
    async def move_booking(
        self,
        info: Info,
        input: MoveBookingArgument,  # noqa: A002
    ) -> BookingMoved | Refusal:
        caller = info.context.caller
        command = _to_command(input.booking_id, caller, input.wait_ms, input.idempotency_key)
        if command is None:
            return BookingNotFound.for_id(input.booking_id)
        slot_id = ids.parse_slot_id(input.slot_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        result = await move(info.context.services, command, slot_id)
        outcome, view = result.outcome, _view(caller, result)
        if isinstance(outcome, outcomes.BookingMoved):
            return BookingMoved.from_domain(outcome, view)
        return present_booking_refusal(outcome, view)


def _view(caller: Caller, result: CommandResult[Any]) -> ResultView:
    """Return the view of a change; only organizers change bookings of other users."""
    booked_for = None if caller.is_organizer else caller.user_id
    return ResultView(caller, result.slots, booked_for)


def _to_command(
    booking_global_id: str, caller: Caller, wait_ms: int, key: str | None
) -> BookingChangeRequest | None:
    """Return the command for a booking, or None for a malformed id. Errors: BAD_USER_INPUT."""
    wait_s, key = to_wait_seconds(wait_ms), require_valid_key(key)
    parsed_id = ids.parse_booking_id(booking_global_id)
    return BookingChangeRequest(*parsed_id, caller, wait_s, key) if parsed_id else None
