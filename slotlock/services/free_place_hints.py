"""The slots that were full, or had many free places, when this process last saw them.

A command for a full slot will probably be refused, and a refusal needs no lock. Simultaneous
callers need not share many places. Both are hints: neither says what the outcome is.
"""

from collections.abc import Callable, Iterable
from time import monotonic

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.bounded_cache import BoundedCache

MAX_SLOTS, MAX_CHARACTERS = 10_000, 1_000_000
# A place may become free in another process. Looking at the slot first would cost a read then.
TRUSTED_FOR_S = 1.0
# Fewer free places are not remembered.
MANY_PLACES = 50
# Simultaneous callers of other processes are not known. With so many places for each of this one,
# those of three others get places too.
PLACES_PER_CALLER = 4


class FreePlaceHints:
    """What is known of slots, each for one second; at most 10,000, and the oldest are dropped."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        # When a slot was seen, and how many free places it had then.
        self._seen = BoundedCache[tuple[float, int]](MAX_SLOTS, MAX_CHARACTERS)

    def burst_quota(self, slot_id: SlotId) -> int:
        """Return how many simultaneous callers a batch may have in any case; 0 if unknown."""
        return (self.remaining(slot_id) or 0) // PLACES_PER_CALLER

    def remaining(self, slot_id: SlotId) -> int | None:
        """Return how many free places a slot had, 0 if it was full; None if unknown."""
        seen = self._seen.get(slot_id)
        if seen is None or self._clock() - seen[0] >= TRUSTED_FOR_S:
            return None
        return seen[1]

    def observe(self, slots: Iterable[SlotState]) -> None:
        """Remember which of these slots are full, and which have many free places."""
        now = self._clock()
        for state in slots:
            remaining = state.slot.capacity - state.booked_count
            if remaining <= 0 or remaining >= MANY_PLACES:
                self._seen.put(state.slot.id, (now, max(remaining, 0)))
            else:
                self._seen.discard(state.slot.id)
