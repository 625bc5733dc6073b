"""Changing an existing booking: confirm, extend, cancel."""

from abc import abstractmethod
from datetime import datetime
from typing import ClassVar, TypeVar

from prometheus_client import Counter

from slotlock.domain.booking.booking import Booking, BookingId, BookingStatus, SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState, refuse
from slotlock.domain.booking.outcomes import (
    BookingCancelled,
    CancelOutcome,
    ConfirmOutcome,
    ExtendOutcome,
)
from slotlock.domain.booking.refusals import BookingNotFound, HoldExpired
from slotlock.domain.booking.rules import changes
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.commands import idempotency
from slotlock.services.commands.executor import execute
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.container import Services
from slotlock.services.deadline import Deadline
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import SlotCommand, UnexpectedOutcomeError

BOOKING_ACTIONS_TOTAL = Counter(
    "slotlock_booking_actions_total",
    "Responses to booking actions by outcome",
    ["action", "outcome"],
)

Outcome_co = TypeVar("Outcome_co", covariant=True)


@value_object
class BookingChangeRequest:
    """An existing booking, the caller, how long they wait in seconds, and their idempotency key."""

    slot_id: SlotId
    booking_id: BookingId
    caller: Caller
    wait_s: float = 0.0
    key: str | None = None

    @property
    def booking_command(self) -> changes.BookingCommand:
        """The booking and its caller, for the rules."""
        return changes.BookingCommand(self.booking_id, self.caller)

    def to_idempotency_key(self, *request_parts: str) -> IdempotencyKey | None:
        """Return the caller's key for this request, if the caller sent one."""
        if not self.key:
            return None
        return IdempotencyKey.for_request(
            self.caller.user_id, self.key, *request_parts, self.booking_id
        )


@value_object
class BookingChangeCommand(SlotCommand[Outcome_co]):
    """A change of one existing booking."""

    request: BookingChangeRequest
    idempotency_key: IdempotencyKey | None = None

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.request.slot_id,)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.request.caller.user_id,)

    @property
    def booking_ids(self) -> tuple[BookingId, ...]:
        return (self.request.booking_id,)

    @property
    def not_found(self) -> BookingNotFound:
        """The outcome for a booking that does not exist or belongs to another user."""
        return BookingNotFound(self.request.slot_id, self.request.booking_id)

    @abstractmethod
    def ended_outcome(self, booking: Booking) -> Outcome_co:
        """Return the outcome for a booking that ended earlier."""


class ConfirmBooking(BookingChangeCommand[ConfirmOutcome]):
    """Turn a hold into a confirmed booking."""

    name: ClassVar[str] = "confirm"

    def apply(self, state: LoadedState, now: datetime) -> Decision[ConfirmOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return changes.confirm(slot, state.users, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking) -> ConfirmOutcome:
        return expired_refusal(booking) or self.not_found

    @staticmethod
    def check_outcome(outcome: object) -> ConfirmOutcome:
        if isinstance(outcome, ConfirmOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class ExtendHold(BookingChangeCommand[ExtendOutcome]):
    """Extend the lifetime of a hold."""

    name: ClassVar[str] = "extend"

    def apply(self, state: LoadedState, now: datetime) -> Decision[ExtendOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return changes.extend(slot, state.users, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking) -> ExtendOutcome:
        return expired_refusal(booking) or self.not_found

    @staticmethod
    def check_outcome(outcome: object) -> ExtendOutcome:
        if isinstance(outcome, ExtendOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class CancelBooking(BookingChangeCommand[CancelOutcome]):
    """Cancel a booking. Cancelling a cancelled booking succeeds again."""

    name: ClassVar[str] = "cancel"

    def apply(self, state: LoadedState, now: datetime) -> Decision[CancelOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return changes.cancel(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking) -> CancelOutcome:
        return expired_refusal(booking) or BookingCancelled(booking.slot_id, booking)

    @staticmethod
    def check_outcome(outcome: object) -> CancelOutcome:
        if isinstance(outcome, CancelOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


async def confirm(
    services: Services, request: BookingChangeRequest
) -> CommandResult[ConfirmOutcome]:
    """Turn a hold into a confirmed booking."""
    key = request.to_idempotency_key(ConfirmBooking.name)
    return await change_booking(services, ConfirmBooking(request, key))


async def extend(services: Services, request: BookingChangeRequest) -> CommandResult[ExtendOutcome]:
    """Extend the lifetime of a hold."""
    key = request.to_idempotency_key(ExtendHold.name)
    return await change_booking(services, ExtendHold(request, key))


async def cancel(services: Services, request: BookingChangeRequest) -> CommandResult[CancelOutcome]:
    """Cancel a booking. Cancelling a cancelled booking returns it as it ended."""
    key = request.to_idempotency_key(CancelBooking.name)
    return await change_booking(services, CancelBooking(request, key))


Outcome = TypeVar("Outcome")


async def change_booking(
    services: Services, command: BookingChangeCommand[Outcome]
) -> CommandResult[Outcome]:
    """Execute a change of a booking once per idempotency key, also of one that has ended."""
    request = command.request
    key, deadline = command.idempotency_key, Deadline.after(request.wait_s)
    async with idempotency.guard(services, key, request.slot_id, deadline) as guard:
        result = guard.replay
        if result is None:
            changed = await execute(services, command, deadline.remaining_s)
            if isinstance(changed.outcome, BookingNotFound):
                changed = await _ended_result(services, command) or changed
            result = await guard.finish(changed)
    final = command.check_result(result)
    BOOKING_ACTIONS_TOTAL.labels(command.name, outcome_label(final.outcome)).inc()
    return final


async def _ended_result(
    services: Services, command: BookingChangeCommand[Outcome]
) -> CommandResult[Outcome] | None:
    """Return the result for a booking that has ended; None if there is no such booking."""
    ended = await find_ended(services, command.request)
    if ended is None:
        return None
    booking, slot = ended
    return CommandResult(command.ended_outcome(booking), {slot.id: slot})


async def find_ended(
    services: Services, request: BookingChangeRequest
) -> tuple[Booking, SlotState] | None:
    """Return the ended booking and its slot, if the caller may change the booking."""
    booking = await services.ended_bookings.find(request.booking_id)
    if booking is None or booking.slot_id != request.slot_id:
        return None
    if not request.booking_command.may_change(booking):
        return None
    query = SlotQuery(request.slot_id, services.now(), [request.caller.user_id])
    slot = await services.slots.find(query)
    return None if slot is None else (booking, slot)


def expired_refusal(booking: Booking) -> HoldExpired | None:
    """Return the refusal for an ended booking, if it was a hold that expired."""
    expired = booking.status is BookingStatus.EXPIRED
    return HoldExpired(booking.slot_id, booking) if expired else None
