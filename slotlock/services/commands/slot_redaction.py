"""Redacting the slots that are recorded with an outcome to what the caller may see of them."""

from collections.abc import Sequence
from dataclasses import replace

from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.outcomes import AllBooked
from slotlock.domain.booking.refusals import SlotOutcome
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId


def redacted_slots(
    result: CommandResult[object], user_ids: Sequence[UserId]
) -> tuple[SlotState, ...]:
    """Return the slots that the outcome shows, without the bookings and entries of other users."""
    if not isinstance(result.outcome, SlotOutcome | AllBooked):
        return ()
    shown = dict.fromkeys(result.outcome.shown_slot_ids)
    return tuple(_redact(result.slots[slot_id], user_ids) for slot_id in shown)


def _redact(state: SlotState, user_ids: Sequence[UserId]) -> SlotState:
    # Everyone may see who booked a slot with one place.
    is_public = state.slot.capacity == 1
    return replace(
        state,
        bookings=tuple(b for b in state.bookings if is_public or b.user_id in user_ids),
        waitlist=tuple(w for w in state.waitlist if w.user_id in user_ids),
        loaded_waitlist=0,
        group_counts={},
        change=EMPTY_CHANGE,
    )
