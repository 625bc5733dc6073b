"""Rules for deleting slots: only those that nobody has booked or waited for."""

from collections.abc import Collection, Sequence

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.outcomes import SlotHasBookings, SlotsDeleted


def delete_slots(
    slots: Sequence[SlotState], slots_with_history: Collection[SlotId]
) -> SlotsDeleted | SlotHasBookings:
    """Delete all of these slots, or none.

    `slots_with_history` are those in which a booking or a waitlist entry has ended.
    """
    for state in slots:
        if has_history(state, slots_with_history):
            return SlotHasBookings(state.id)
    return SlotsDeleted(tuple(state.id for state in slots))


def has_history(state: SlotState, slots_with_history: Collection[SlotId]) -> bool:
    """Return whether somebody has booked a slot or waited for it, now or earlier."""
    return bool(state.booked_count or state.waitlist_length or state.id in slots_with_history)
