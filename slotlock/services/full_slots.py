"""The slots that were full when this process last saw them.

A command for such a slot will probably be refused, and a refusal needs no lock. This is a hint: it
says whether to look at the slot before asking for its lock, and never what the outcome is.
"""

from collections.abc import Iterable

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState

MAX_FULL_SLOTS = 10_000


class FullSlots:
    """The ids of slots, at most 10,000; those that were added first are dropped."""

    def __init__(self) -> None:
        self._slot_ids: dict[SlotId, None] = {}

    def __contains__(self, slot_id: SlotId) -> bool:
        return slot_id in self._slot_ids

    def observe(self, slots: Iterable[SlotState]) -> None:
        """Remember which of these slots are full."""
        for state in slots:
            if not state.is_booked:
                self._slot_ids.pop(state.id, None)
            elif state.id not in self._slot_ids:
                self._slot_ids[state.id] = None
                if len(self._slot_ids) > MAX_FULL_SLOTS:
                    del self._slot_ids[next(iter(self._slot_ids))]
