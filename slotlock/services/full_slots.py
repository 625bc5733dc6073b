"""The slots that were full when this process last saw them.

A command for such a slot will probably be refused, and a refusal needs no lock. This is a hint: it
says whether to look at the slot before asking for its lock, and never what the outcome is.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.lru_cache import LRUCache

MAX_FULL_SLOTS, MAX_CHARACTERS = 10_000, 1_000_000
# A place may become free in another process. Looking at the slot first would cost a read then.
TRUSTED_FOR = timedelta(seconds=1)


class FullSlots:
    """The ids of slots, each for one second; at most 10,000, and the oldest are dropped."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._seen_at = LRUCache[datetime](MAX_FULL_SLOTS, MAX_CHARACTERS)

    def __contains__(self, slot_id: SlotId) -> bool:
        seen_at = self._seen_at.get(slot_id)
        return seen_at is not None and self._now() - seen_at < TRUSTED_FOR

    def observe(self, slots: Iterable[SlotState]) -> None:
        """Remember which of these slots are full."""
        now = self._now()
        for state in slots:
            if state.is_booked:
                self._seen_at.put(state.id, now)
            else:
                self._seen_at.discard(state.id)
