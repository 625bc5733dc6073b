"""What becomes of a booking: confirm, extend, cancel, move."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from prometheus_client import Counter

from slotlock.domain.booking import changes
from slotlock.domain.booking.book import BookingRequest
from slotlock.domain.booking.booking import Booking, BookingId, SlotId
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
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.slots.repository import SlotQuery
from slotlock.services.commands.decisions import SlotCommand, SlotStates, on_slot
from slotlock.services.commands.executor import execute
from slotlock.services.commands.idempotency import IdempotencyKey, run_once
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.container import Services

BOOKING_ACTIONS_TOTAL = Counter(
    "slotlock_acts_total", "Answers to acts on bookings by outcome", ["act", "outcome"]
)

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class BookingActionCommand:
    """Which booking an act is about, who asks, how long they wait, and under which key."""

    slot_id: SlotId
    booking_id: BookingId
    caller: Caller
    wait_s: float = 0.0
    key: str | None = None

    def to_idempotency_key(self, *request_parts: str) -> IdempotencyKey | None:
        """The slip of the errand's key, if it has one."""
        return (
            IdempotencyKey.for_request(
                self.caller.user_id, self.key, *request_parts, self.booking_id
            )
            if self.key
            else None
        )


async def confirm(services: Services, command: BookingActionCommand) -> ConfirmOutcome:
    """Make a hold a booking for good."""
    outcome: ConfirmOutcome = await _execute(services, command, "confirm", changes.confirm)
    return outcome


async def extend(services: Services, command: BookingActionCommand) -> ExtendOutcome:
    """Let a hold last longer."""
    outcome: ExtendOutcome = await _execute(services, command, "extend", changes.extend)
    return outcome


async def cancel(services: Services, command: BookingActionCommand) -> CancelOutcome:
    """Give a place back. A booking that was cancelled before is answered as it was then."""
    outcome: CancelOutcome = await _execute(services, command, "cancel", changes.cancel)
    return outcome


async def _execute(
    services: Services,
    command: BookingActionCommand,
    action: str,
    apply: Callable[[Slot, changes.BookingCommand, datetime], tuple[Slot, Any]],
) -> Any:
    slip = command.to_idempotency_key(action)
    ask = changes.BookingCommand(command.booking_id, command.caller)
    missing = BookingNotFound(command.slot_id, command.booking_id)
    request = SlotCommand(
        on_slot(command.slot_id, lambda slot, now: apply(slot, ask, now), missing),
        user_ids=(command.caller.user_id,),
        booking_ids=(command.booking_id,),
        idempotency_key=slip,
    )

    async def run(wait_s: float) -> Any:
        outcome = await execute(services, [command.slot_id], request, wait_s)
        if isinstance(outcome, BookingNotFound):
            return await _already_ended(services, command, action) or outcome
        return outcome

    outcome = await run_once(services, slip, command.slot_id, command.wait_s, run)
    BOOKING_ACTIONS_TOTAL.labels(action, outcome_label(outcome)).inc()
    return outcome


async def _already_ended(
    services: Services, command: BookingActionCommand, action: str
) -> BookingCancelled | HoldExpired | None:
    booking = await services.slots.ended_bookings.find(command.booking_id)
    ask = changes.BookingCommand(command.booking_id, command.caller)
    if booking is None or booking.slot_id != command.slot_id or not ask.may_change(booking):
        return None
    slot = await services.slots.find(
        SlotQuery(command.slot_id, services.now(), [command.caller.user_id])
    )
    if slot is None:
        return None
    if booking.status is BookingStatus.EXPIRED:
        return HoldExpired(booking, slot)
    return BookingCancelled(booking, slot) if action == "cancel" else None


async def move(
    services: Services, command: BookingActionCommand, target_slot_id: SlotId
) -> MoveOutcome:
    """Give a place in one slot back and take one in another, both or neither."""
    slip = command.to_idempotency_key("move", target_slot_id)

    async def run(wait_s: float) -> MoveOutcome:
        booking = await _find_live(services, command)
        if not isinstance(booking, Booking):
            return booking
        request = _move_command(command, target_slot_id, booking, slip)
        outcome = await execute(
            services, sorted({command.slot_id, target_slot_id}), request, wait_s
        )
        # It may have ended since it was looked up.
        return (
            await _find_ended(services, command)
            if isinstance(outcome, BookingNotFound)
            else outcome
        )

    outcome: MoveOutcome = await run_once(services, slip, command.slot_id, command.wait_s, run)
    BOOKING_ACTIONS_TOTAL.labels("move", outcome_label(outcome)).inc()
    return outcome


def _move_command(
    command: BookingActionCommand,
    target_slot_id: SlotId,
    booking: Booking,
    idempotency_key: IdempotencyKey | None,
) -> SlotCommand[MoveOutcome]:
    caller = command.caller
    organised = caller.is_organizer and booking.user_id != caller.user_id
    party = BookingRequest(
        booking.user_id, new_booking_id(), caller.user_id, as_organizer=organised
    )
    ask = changes.BookingCommand(command.booking_id, caller)

    def apply(slots: SlotStates, now: datetime) -> tuple[SlotStates, MoveOutcome]:
        old, new = slots.get(command.slot_id), slots.get(target_slot_id)
        if old is None:
            return slots, BookingNotFound(command.slot_id, command.booking_id)
        if new is None:
            return slots, SlotNotFound(target_slot_id)
        left, taken, outcome = changes.move(old, new, ask, party, now)
        return {**slots, old.id: left, new.id: taken}, outcome

    people = (booking.user_id, caller.user_id)
    return SlotCommand(
        apply, user_ids=people, booking_ids=(command.booking_id,), idempotency_key=idempotency_key
    )


async def _find_live(
    services: Services, command: BookingActionCommand
) -> Booking | BookingNotFound | HoldExpired:
    look = SlotQuery(
        command.slot_id, services.now(), [command.caller.user_id], [command.booking_id]
    )
    slot = await services.slots.find(look)
    booking = slot.booking_by_id(command.booking_id) if slot else None
    if booking is not None and changes.BookingCommand(
        command.booking_id, command.caller
    ).may_change(booking):
        return booking
    return await _find_ended(services, command)


async def _find_ended(
    services: Services, command: BookingActionCommand
) -> BookingNotFound | HoldExpired:
    ended = await _already_ended(services, command, "move")
    return (
        ended
        if isinstance(ended, HoldExpired)
        else BookingNotFound(command.slot_id, command.booking_id)
    )
