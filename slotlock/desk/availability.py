"""Live availability: a level, not an event. Everyone who watches gets the newest state, in order.

Whoever watches subscribes first, then reads the present state, then is told newer versions only.
A slow reader keeps one state a slot, the latest. A lost announcement is healed by reading again.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice

from prometheus_client import Counter

from slotlock.domain.availability import Availability, availability
from slotlock.domain.bookings import SlotId
from slotlock.domain.settling import seen_at
from slotlock.stores.announcements import Announcements
from slotlock.stores.mongo import is_away
from slotlock.stores.slots import Look, Slots

log = logging.getLogger("slotlock.availability")

# With the time that reading takes this keeps the promise that no news is over 2 s late.
HEAL_EVERY_S = 1.0
LARGEST_READ = 1000

HEALED = Counter(
    "slotlock_availability_healed_total", "States that were read because no announcement came"
)


class Watch:
    """One reader's view of some slots: at most one pending state a slot."""

    def __init__(self, slot_ids: Iterable[SlotId]) -> None:
        self.slot_ids = frozenset(slot_ids)
        self._seen: dict[SlotId, int] = {}
        self._pending: dict[SlotId, Availability] = {}
        self._news = asyncio.Event()

    def tell(self, state: Availability) -> bool:
        """Keep a state for the reader if it is newer than all they were told. Whether it was."""
        if state.version <= self._seen.get(state.slot_id, -1):
            return False
        self._seen[state.slot_id] = state.version
        self._pending[state.slot_id] = state
        self._news.set()
        return True

    @property
    def has_news(self) -> bool:
        """Whether the reader has something to read."""
        return bool(self._pending)

    async def states(self) -> AsyncGenerator[Availability, None]:
        """The states as they come, for ever; what a slow reader missed is left out."""
        while True:
            await self._news.wait()
            while self._pending:
                yield self._pending.pop(next(iter(self._pending)))
            self._news.clear()


class AvailabilityBoard:
    """The notice board of this process: who watches which slot."""

    def __init__(self, slots: Slots, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._watches: dict[SlotId, set[Watch]] = {}
        self._announcements: Announcements | None = None
        self._healer: asyncio.Task[None] | None = None

    def start(self, announcements: Announcements) -> None:
        """Begin to heal, and to hear of what is watched."""
        self._announcements = announcements
        self._healer = asyncio.create_task(self._heal_for_ever())

    async def stop(self) -> None:
        """Stop healing."""
        if self._healer is not None:
            self._healer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._healer

    @property
    def watched(self) -> set[SlotId]:
        """The slots that somebody here watches."""
        return set(self._watches)

    def tell(self, state: Availability) -> int:
        """Pass a state on to those who watch its slot; returns how many had not seen it."""
        return sum(watch.tell(state) for watch in self._watches.get(state.slot_id, ()))

    @contextlib.asynccontextmanager
    async def watching(self, slot_ids: Sequence[SlotId]) -> AsyncIterator[Watch]:
        """A watch on these slots that starts with the present state of each that exists."""
        watch = Watch(slot_ids)
        for slot_id in watch.slot_ids:
            self._watches.setdefault(slot_id, set()).add(watch)
        try:
            if self._announcements is not None:
                await self._announcements.watch(set(watch.slot_ids))
            for state in await self._read(slot_ids):
                watch.tell(state)
            yield watch
        finally:
            await self._leave(watch)

    async def _leave(self, watch: Watch) -> None:
        left = set()
        for slot_id in watch.slot_ids:
            self._watches[slot_id].discard(watch)
            if not self._watches[slot_id]:
                del self._watches[slot_id]
                left.add(slot_id)
        if left and self._announcements is not None:
            await self._announcements.unwatch(left)

    async def _heal_for_ever(self) -> None:
        while True:
            await asyncio.sleep(HEAL_EVERY_S)
            try:
                await self.heal()
            except Exception as error:
                # The truth may be away for a while; the board must outlive that.
                why = None if is_away(error) else error
                log.warning("availability could not be compared with MongoDB", exc_info=why)

    async def heal(self) -> None:
        """Read what is watched, and tell what no announcement told."""
        watched = iter(self.watched)
        while some := list(islice(watched, LARGEST_READ)):
            for state in await self._read(some):
                if self.tell(state):
                    HEALED.inc()

    async def _read(self, slot_ids: Iterable[SlotId]) -> list[Availability]:
        now = self._now()
        found = await asyncio.gather(*(self._slots.look(Look(id_, now)) for id_ in slot_ids))
        return [availability(seen_at(slot, now)) for slot in found if slot is not None]
