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

from slotlock.domain.booking.availability import Availability, to_availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.promotion import as_of
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.slot_events import SlotEventBus

log = logging.getLogger("slotlock.availability")

# With the time that reading takes this keeps the promise that no news is over 2 s late.
RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 1000

RESYNCED = Counter(
    "slotlock_availability_resynced_total",
    "Availability states that a resync read because their message was lost",
)


class AvailabilitySubscription:
    """One reader's view of some slots: at most one pending state a slot."""

    def __init__(self, slot_ids: Iterable[SlotId]) -> None:
        self.slot_ids = frozenset(slot_ids)
        self._latest_versions: dict[SlotId, int] = {}
        self._pending: dict[SlotId, Availability] = {}
        self._updated = asyncio.Event()

    def publish(self, state: Availability) -> bool:
        """Keep a state for the reader if it is newer than all they were told. Whether it was."""
        if state.version <= self._latest_versions.get(state.slot_id, -1):
            return False
        self._latest_versions[state.slot_id] = state.version
        self._pending[state.slot_id] = state
        self._updated.set()
        return True

    @property
    def has_pending(self) -> bool:
        """Whether the reader has something to read."""
        return bool(self._pending)

    async def states(self) -> AsyncGenerator[Availability, None]:
        """The states as they come, for ever; what a slow reader missed is left out."""
        while True:
            await self._updated.wait()
            while self._pending:
                yield self._pending.pop(next(iter(self._pending)))
            self._updated.clear()


class AvailabilityHub:
    """The notice board of this process: who watches which slot."""

    def __init__(self, slots: SlotRepository, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._subscriptions: dict[SlotId, set[AvailabilitySubscription]] = {}
        self._slot_events: SlotEventBus | None = None
        self._resync_task: asyncio.Task[None] | None = None

    def start(self, slot_events: SlotEventBus) -> None:
        """Begin to heal, and to hear of what is watched."""
        self._slot_events = slot_events
        self._resync_task = asyncio.create_task(self._resync_forever())

    async def stop(self) -> None:
        """Stop healing."""
        if self._resync_task is not None:
            self._resync_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._resync_task

    @property
    def subscribed_slot_ids(self) -> set[SlotId]:
        """The slots that somebody here watches."""
        return set(self._subscriptions)

    def publish(self, state: Availability) -> int:
        """Pass a state on to those who watch its slot; returns how many had not seen it."""
        return sum(watch.publish(state) for watch in self._subscriptions.get(state.slot_id, ()))

    @contextlib.asynccontextmanager
    async def subscribe(
        self, slot_ids: Sequence[SlotId]
    ) -> AsyncIterator[AvailabilitySubscription]:
        """A watch on these slots that starts with the present state of each that exists."""
        watch = AvailabilitySubscription(slot_ids)
        for slot_id in watch.slot_ids:
            self._subscriptions.setdefault(slot_id, set()).add(watch)
        try:
            if self._slot_events is not None:
                await self._slot_events.subscribe_slots(set(watch.slot_ids))
            for state in await self._load_states(slot_ids):
                watch.publish(state)
            yield watch
        finally:
            await self._unsubscribe(watch)

    async def _unsubscribe(self, subscription: AvailabilitySubscription) -> None:
        left = set()
        for slot_id in subscription.slot_ids:
            self._subscriptions[slot_id].discard(subscription)
            if not self._subscriptions[slot_id]:
                del self._subscriptions[slot_id]
                left.add(slot_id)
        if left and self._slot_events is not None:
            await self._slot_events.unsubscribe_slots(left)

    async def _resync_forever(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_INTERVAL_S)
            try:
                await self.resync()
            except Exception as error:
                # The truth may be away for a while; the board must outlive that.
                why = None if is_unavailable(error) else error
                log.warning("availability could not be compared with MongoDB", exc_info=why)

    async def resync(self) -> None:
        """Read what is watched, and tell what no announcement told."""
        watched = iter(self.subscribed_slot_ids)
        while some := list(islice(watched, READ_BATCH_SIZE)):
            for state in await self._load_states(some):
                if self.publish(state):
                    RESYNCED.inc()

    async def _load_states(self, slot_ids: Iterable[SlotId]) -> list[Availability]:
        now = self._now()
        found = await asyncio.gather(*(self._slots.find(SlotQuery(id_, now)) for id_ in slot_ids))
        return [to_availability(as_of(slot, now)) for slot in found if slot is not None]
