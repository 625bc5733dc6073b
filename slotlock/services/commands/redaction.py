"""Redacting outcomes, so that a record contains only what its caller may see."""

from collections.abc import Sequence
from dataclasses import replace

from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.slot_outcome import OutcomeWithSlots
from slotlock.domain.users.user import UserId


def redact_for(outcome: object, user_ids: Sequence[UserId]) -> object:
    """Return the outcome without the bookings and waitlist entries of other users."""
    if not isinstance(outcome, OutcomeWithSlots):
        return outcome
    return outcome.map_slots(lambda slot: _redact_slot(slot, user_ids))


def _redact_slot(slot: Slot, user_ids: Sequence[UserId]) -> Slot:
    # Everyone may see who booked a slot with one place.
    is_public = slot.capacity == 1
    return replace(
        slot,
        bookings=tuple(b for b in slot.bookings if is_public or b.user_id in user_ids),
        waitlist=tuple(w for w in slot.waitlist if w.user_id in user_ids),
        loaded_waitlist=0,
        user_contexts={},
        group_counts={},
        change=EMPTY_CHANGE,
    )
