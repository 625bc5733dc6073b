"""Changing an existing booking: confirm, extend, cancel, move."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, TypeVar

from prometheus_client import Counter

from slotlock.domain.booking import changes
from slotlock.domain.booking.book import BookingRequest
from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.decision import Decision, refuse
from slotlock.domain.booking.history import BookingStatus
from slotlock.domain.booking.outcomes import (
    BookingCancelled,
    CancelOutcome,
    ConfirmOutcome,
    ExtendOutcome,
    MoveOutcome,
)
from slotlock.domain.booking.refusals import BookingNotFound, HoldExpired, SlotNotFound
from slotlock.domain.booking.slot import Slot
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.ids import new_booking_id
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    def ended_outcome(self, booking: Booking, slot: Slot) -> Outcome_co:
        """Return the outcome for a booking that ended earlier."""


class ConfirmBooking(BookingChangeCommand[ConfirmOutcome]):
    """Turn a hold into a confirmed booking."""

    name: ClassVar[str] = "confirm"

    def apply(self, slots: Mapping[SlotId, Slot], now: datetime) -> Decision[ConfirmOutcome]:
        slot = slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return changes.confirm(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking, slot: Slot) -> ConfirmOutcome:
        return _expired(booking, slot) or self.not_found

    @staticmethod
    def check_outcome(outcome: object) -> ConfirmOutcome:
        if isinstance(outcome, ConfirmOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class ExtendHold(BookingChangeCommand[ExtendOutcome]):
    """Extend the lifetime of a hold."""

    name: ClassVar[str] = "extend"

    def apply(self, slots: Mapping[SlotId, Slot], now: datetime) -> Decision[ExtendOutcome]:
        slot = slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return changes.extend(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking, slot: Slot) -> ExtendOutcome:
        return _expired(booking, slot) or self.not_found

    @staticmethod
    def check_outcome(outcome: object) -> ExtendOutcome:
        if isinstance(outcome, ExtendOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class CancelBooking(BookingChangeCommand[CancelOutcome]):
    """Cancel a booking. Cancelling a cancelled booking succeeds again."""

    name: ClassVar[str] = "cancel"

    def apply(self, slots: Mapping[SlotId, Slot], now: datetime) -> Decision[CancelOutcome]:
        slot = slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return changes.cancel(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking, slot: Slot) -> CancelOutcome:
        return _expired(booking, slot) or BookingCancelled(slot, booking)

    @staticmethod
    def check_outcome(outcome: object) -> CancelOutcome:
        if isinstance(outcome, CancelOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


@dataclass(frozen=True, slots=True)
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

    def apply(self, slots: Mapping[SlotId, Slot], now: datetime) -> Decision[MoveOutcome]:
        old, new = slots.get(self.change.slot_id), slots.get(self.target_slot_id)
        if old is None:
            return refuse(BookingNotFound(self.change.slot_id, self.change.booking_id))
        if new is None:
            return refuse(SlotNotFound(self.target_slot_id))
        return changes.move(old, new, self.change.booking_command, self.new_booking, now)

    @staticmethod
    def check_outcome(outcome: object) -> MoveOutcome:
        if isinstance(outcome, MoveOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


async def confirm(services: Services, request: BookingChangeRequest) -> ConfirmOutcome:
    """Turn a hold into a confirmed booking."""
    return await _change(
        services, ConfirmBooking(request, request.to_idempotency_key(ConfirmBooking.name))
    )


async def extend(services: Services, request: BookingChangeRequest) -> ExtendOutcome:
    """Extend the lifetime of a hold."""
    key = request.to_idempotency_key(ExtendHold.name)
    return await _change(services, ExtendHold(request, key))


async def cancel(services: Services, request: BookingChangeRequest) -> CancelOutcome:
    """Cancel a booking. Cancelling a cancelled booking returns it as it ended."""
    return await _change(
        services, CancelBooking(request, request.to_idempotency_key(CancelBooking.name))
    )


Outcome = TypeVar("Outcome")


async def _change(services: Services, command: BookingChangeCommand[Outcome]) -> Outcome:
    request = command.request
    key, deadline = command.idempotency_key, Deadline.after(request.wait_s)
    async with idempotency.guard(services, key, request.slot_id, deadline) as guard:
        outcome = guard.replay
        if outcome is None:
            outcome = await guard.finish(await _change_once(services, command, deadline))
    final = command.check_outcome(outcome)
    BOOKING_ACTIONS_TOTAL.labels(command.name, outcome_label(final)).inc()
    return final


async def _change_once(
    services: Services, command: BookingChangeCommand[Outcome], deadline: Deadline
) -> Outcome:
    outcome = await execute(services, command, deadline.remaining_s)
    if not isinstance(outcome, BookingNotFound):
        return outcome
    ended = await _find_ended(services, command.request)
    return outcome if ended is None else command.ended_outcome(*ended)


async def move(
    services: Services, request: BookingChangeRequest, target_slot_id: SlotId
) -> MoveOutcome:
    """Exchange a booking for one in another slot, both changes or neither."""
    key = request.to_idempotency_key(MoveBooking.name, target_slot_id)
    deadline = Deadline.after(request.wait_s)
    async with idempotency.guard(services, key, request.slot_id, deadline) as guard:
        outcome = guard.replay
        if outcome is None:
            moved = await _move_once(services, request, target_slot_id, key, deadline)
            outcome = await guard.finish(moved)
    final = MoveBooking.check_outcome(outcome)
    BOOKING_ACTIONS_TOTAL.labels(MoveBooking.name, outcome_label(final)).inc()
    return final


async def _move_once(
    services: Services,
    request: BookingChangeRequest,
    target_slot_id: SlotId,
    key: IdempotencyKey | None,
    deadline: Deadline,
) -> MoveOutcome:
    booking = await _find_live(services, request)
    if booking is None:
        return await _missing(services, request)
    caller, user_id = request.caller, booking.user_id
    as_organizer = caller.is_organizer and user_id != caller.user_id
    new_booking = BookingRequest(
        user_id, new_booking_id(), caller.user_id, as_organizer=as_organizer
    )
    command = MoveBooking(request, target_slot_id, new_booking, key)
    outcome = await execute(services, command, deadline.remaining_s)
    # The booking may have ended since it was loaded.
    if isinstance(outcome, BookingNotFound):
        return await _missing(services, request)
    return outcome


async def _find_live(services: Services, request: BookingChangeRequest) -> Booking | None:
    """Return the booking if it is live and the caller may change it."""
    user_ids, booking_ids = [request.caller.user_id], [request.booking_id]
    query = SlotQuery(request.slot_id, services.now(), user_ids, booking_ids)
    slot = await services.slots.find(query)
    booking = slot.booking_by_id(request.booking_id) if slot else None
    may_change = booking is not None and request.booking_command.may_change(booking)
    return booking if may_change else None


async def _missing(
    services: Services, request: BookingChangeRequest
) -> BookingNotFound | HoldExpired:
    ended = await _find_ended(services, request)
    expired = None if ended is None else _expired(*ended)
    return expired or BookingNotFound(request.slot_id, request.booking_id)


async def _find_ended(
    services: Services, request: BookingChangeRequest
) -> tuple[Booking, Slot] | None:
    """Return the ended booking and its slot, if the caller may change the booking."""
    booking = await services.ended_bookings.find(request.booking_id)
    if booking is None or booking.slot_id != request.slot_id:
        return None
    if not request.booking_command.may_change(booking):
        return None
    query = SlotQuery(request.slot_id, services.now(), [request.caller.user_id])
    slot = await services.slots.find(query)
    return None if slot is None else (booking, slot)


def _expired(booking: Booking, slot: Slot) -> HoldExpired | None:
    return HoldExpired(slot, booking) if booking.status is BookingStatus.EXPIRED else None
