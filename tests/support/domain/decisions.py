"""Rules applied to slots, for tests that need the slot after a decision as well."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from slotlock.domain.booking.book import BookingRequest, SlotClaim, book_all
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.changes import BookingCommand, MoveResult, move
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.outcomes import AllBooked, NoneBooked
from slotlock.domain.booking.slot import Slot

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")


def decide(
    rule: Callable[Concatenate[Slot, Arguments], Decision[Outcome]],
    slot: Slot,
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> tuple[Slot, Outcome]:
    """Return the slot after a rule was applied to it, and the outcome."""
    decision = rule(slot, *args, **kwargs)
    (after,) = decision.changed_slots or (slot,)
    return after, decision.outcome


def decide_move(
    old_slot: Slot, new_slot: Slot, command: BookingCommand, request: BookingRequest, now: datetime
) -> tuple[Slot, Slot, MoveResult]:
    """Return both slots after a move was applied to them, and the outcome."""
    decision = move(old_slot, new_slot, command, request, now)
    old_after, new_after = decision.changed_slots or (old_slot, new_slot)
    return old_after, new_after, decision.outcome


def decide_all(
    slots: Mapping[SlotId, Slot], claims: Sequence[SlotClaim], now: datetime
) -> tuple[dict[SlotId, Slot], AllBooked | NoneBooked]:
    """Return the slots after several bookings were applied to them, and the outcome."""
    decision = book_all(slots, claims, now)
    return {**slots, **{slot.id: slot for slot in decision.changed_slots}}, decision.outcome
