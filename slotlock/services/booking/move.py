"""Moving a booking to another slot."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import ClassVar

from slotlock.domain.booking.booking import Booking, BookingId, MadeAs, SlotId
from slotlock.domain.booking.booking_outcomes import BookingMoved, MoveOutcome
from slotlock.domain.booking.booking_refusals import BookingNotFound, SlotNotFound, UserBanned
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    CommandResult,
    Decision,
    LoadedState,
    refuse,
)
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.request_deadline import WaitDeadline
from slotlock.services.booking.book import booking_request
from slotlock.services.booking.booking_changes import (
    BOOKING_ACTIONS_TOTAL,
    find_ended,
    with_account,
    with_manager,
    with_relations,
)
from slotlock.services.booking.permissions import check_booking_permissions
from slotlock.services.commands.executor import execute
from slotlock.services.commands.idempotency import execute_once
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import SlotCommand


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
    def booking_ids(self) -> tuple[BookingId, ...]:  # type: ignore[override]
        return (self.change.booking_id,)

    def apply(self, state: LoadedState, now: datetime) -> Decision[MoveOutcome]:
        old = state.slots.get(self.change.slot_id)
        new = state.slots.get(self.target_slot_id)
        if old is None:
            return refuse(BookingNotFound(self.change.slot_id, self.change.booking_id))
        if new is None:
            return refuse(SlotNotFound(self.target_slot_id))
        return booking_changes.move(old, new, state.users, self.change, self.new_booking, now)


async def move(
    services: Services, request: BookingChangeRequest, target_slot_id: SlotId
) -> CommandResult[MoveOutcome]:
    """Exchange a booking for one in another slot, both changes or neither."""
    key = IdempotencyKey.for_change(request, MoveBooking.name, target_slot_id)
    deadline = WaitDeadline.after(request.wait_s)
    execution = partial(_move, services, request, target_slot_id, key, deadline)
    result = await execute_once(services, key, request.slot_id, deadline, execution)
    outcome = MoveBooking.check_outcome(result.outcome)
    if isinstance(outcome, BookingMoved):
        result = await with_manager(services, request.caller, result, outcome.booking)
    BOOKING_ACTIONS_TOTAL.labels(MoveBooking.name, type(outcome).__name__).inc()
    return CommandResult(outcome, result.slots, result.caller)


async def _move(
    services: Services,
    request: BookingChangeRequest,
    target_slot_id: SlotId,
    key: IdempotencyKey | None,
    deadline: WaitDeadline,
) -> CommandResult[MoveOutcome]:
    booking = await _find_live(services, request)
    if booking is None and (related := await with_relations(services, request)):
        request, booking = related, await _find_live(services, related)
    if booking is None:
        return await _missing(services, request)
    user_id = booking.user_id
    if user_id != request.caller.user_id and user_id not in request.not_banned:
        known = await with_account(services, request, user_id)
        if known is None:
            return CommandResult(UserBanned(user_id), caller=request.caller)
        request = known
    caller = request.caller
    leads = booking.made_as is MadeAs.LEADER and booking.made_by == caller.user_id
    if leads and user_id not in caller.acts_for and not caller.is_organizer:
        claim = (target_slot_id, user_id)
        permissions = await check_booking_permissions(services, caller, [claim])
        if claim in permissions.refusals:  # such as a slot of somebody else
            return CommandResult(SlotNotFound(target_slot_id))
        caller, leads = permissions.caller, claim in permissions.as_leader
    new_booking = booking_request(caller, user_id, hold=False).made_by(caller, leads=leads)
    command = MoveBooking(request, target_slot_id, new_booking, key)
    result = await execute(services, command, deadline.remaining_s)
    # The booking may have ended since it was loaded.
    is_missing = isinstance(result.outcome, BookingNotFound)
    return await _missing(services, request) if is_missing else replace(result, caller=caller)


async def _find_live(services: Services, request: BookingChangeRequest) -> Booking | None:
    """Return the booking if it is live and the caller may change it."""
    user_ids, booking_ids = [request.caller.user_id], [request.booking_id]
    query = SlotQuery(request.slot_id, services.now(), user_ids, booking_ids)
    slot = await services.slots.find(query)
    booking = slot.booking_by_id(request.booking_id) if slot else None
    return booking if booking is not None and booking.is_managed_by(request.caller) else None


async def _missing(services: Services, request: BookingChangeRequest) -> CommandResult[MoveOutcome]:
    if ended := await find_ended(services, request):
        booking, slot = ended
        if expired := booking_changes.expired_refusal(booking):
            return CommandResult(expired, {slot.id: slot}, request.caller)
    return CommandResult(BookingNotFound(request.slot_id, request.booking_id))
