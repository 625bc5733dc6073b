"""Moving a booking to another slot."""

from datetime import datetime
from typing import ClassVar

from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState, refuse
from slotlock.domain.booking.outcomes import MoveOutcome
from slotlock.domain.booking.refusals import BookingNotFound, SlotNotFound
from slotlock.domain.booking.rules import changes
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.booking.changes import (
    BOOKING_ACTIONS_TOTAL,
    BookingChangeRequest,
    expired_refusal,
    find_ended,
)
from slotlock.services.commands import idempotency
from slotlock.services.commands.executor import execute
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.container import Services
from slotlock.services.deadline import Deadline
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import SlotCommand, UnexpectedOutcomeError


@value_object
class MoveBooking(SlotCommand[MoveOutcome]):
    """Exchange a booking for one in another slot."""

    name: ClassVar[str] = "move"

    change: BookingChangeRequest
    target_slot_id: SlotId
    new_booking: BookingRequest
    idempotency_key: IdempotencyKey | None = None

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.change.slot_id, self.target_slot_id)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.new_booking.user_id, self.change.caller.user_id)

    @property
    def booking_ids(self) -> tuple[BookingId, ...]:
        return (self.change.booking_id,)

    def apply(self, state: LoadedState, now: datetime) -> Decision[MoveOutcome]:
        old = state.slots.get(self.change.slot_id)
        new = state.slots.get(self.target_slot_id)
        if old is None:
            return refuse(BookingNotFound(self.change.slot_id, self.change.booking_id))
        if new is None:
            return refuse(SlotNotFound(self.target_slot_id))
        command = self.change.booking_command
        return changes.move(old, new, state.users, command, self.new_booking, now)

    @staticmethod
    def check_outcome(outcome: object) -> MoveOutcome:
        if isinstance(outcome, MoveOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


async def move(
    services: Services, request: BookingChangeRequest, target_slot_id: SlotId
) -> CommandResult[MoveOutcome]:
    """Exchange a booking for one in another slot, both changes or neither."""
    key = request.to_idempotency_key(MoveBooking.name, target_slot_id)
    deadline = Deadline.after(request.wait_s)
    async with idempotency.guard(services, key, request.slot_id, deadline) as guard:
        result = guard.replay
        if result is None:
            moved = await _move(services, request, target_slot_id, key, deadline)
            result = await guard.finish(moved)
    outcome = MoveBooking.check_outcome(result.outcome)
    BOOKING_ACTIONS_TOTAL.labels(MoveBooking.name, outcome_label(outcome)).inc()
    return CommandResult(outcome, result.slots)


async def _move(
    services: Services,
    request: BookingChangeRequest,
    target_slot_id: SlotId,
    key: IdempotencyKey | None,
    deadline: Deadline,
) -> CommandResult[MoveOutcome]:
    booking = await _find_live(services, request)
    if booking is None:
        return await _missing(services, request)
    caller, user_id = request.caller, booking.user_id
    as_organizer = caller.is_organizer and user_id != caller.user_id
    new_booking = BookingRequest(
        user_id,
        new_booking_id(),
        caller.user_id,
        as_organizer=as_organizer,
        is_admitted=caller.is_organizer,
    )
    command = MoveBooking(request, target_slot_id, new_booking, key)
    result = await execute(services, command, deadline.remaining_s)
    # The booking may have ended since it was loaded.
    is_missing = isinstance(result.outcome, BookingNotFound)
    return await _missing(services, request) if is_missing else result


async def _find_live(services: Services, request: BookingChangeRequest) -> Booking | None:
    """Return the booking if it is live and the caller may change it."""
    user_ids, booking_ids = [request.caller.user_id], [request.booking_id]
    query = SlotQuery(request.slot_id, services.now(), user_ids, booking_ids)
    slot = await services.slots.find(query)
    booking = slot.booking_by_id(request.booking_id) if slot else None
    may_change = booking is not None and request.booking_command.may_change(booking)
    return booking if may_change else None


async def _missing(services: Services, request: BookingChangeRequest) -> CommandResult[MoveOutcome]:
    if ended := await find_ended(services, request):
        booking, slot = ended
        if expired := expired_refusal(booking):
            return CommandResult(expired, {slot.id: slot})
    return CommandResult(BookingNotFound(request.slot_id, request.booking_id))
