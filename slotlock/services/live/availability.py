"""Live availability: each subscriber gets the latest state of a slot, in order of versions.

A subscription starts first and then reads the present state, so no state in between is missed. A
slow reader has one pending state per slot, the latest. If a message is lost, a resync reads the
state from MongoDB.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime

from prometheus_client import Counter

from slotlock.domain.booking.availability import Availability, to_availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.slot_events import SlotEventBus

log = logging.getLogger("slotlock.availability")

# Together with the time of a read, this delivers every state within 2 s.
RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 1000

RESYNCED = Counter(
    "slotlock_availability_resynced_total",
    "Availability states that a resync read because their message was lost",
)


class AvailabilitySubscription:
    """The states of some slots for one reader: at most one pending state per slot."""

    def __init__(self, slot_ids: Iterable[SlotId]) -> None:
        self.slot_ids = frozenset(slot_ids)
        self._latest_versions: dict[SlotId, int] = {}
        self._pending: dict[SlotId, Availability] = {}
        self._updated = asyncio.Event()
        self._on_update: Callable[[], None] = self._updated.set

    def publish(self, state: Availability) -> bool:
        """Queue a state unless it is older than one that was queued before. Returns whether."""
        if state.version <= self._latest_versions.get(state.slot_id, -1):
            return False
        had_pending = self.has_pending
        self._latest_versions[state.slot_id] = state.version
        self._pending[state.slot_id] = state
        if not had_pending:
            self._on_update()
        return True

    @property
    def has_pending(self) -> bool:
        """Whether there is a state that was not read yet."""
        return bool(self._pending)

    def take(self) -> Availability:
        """Return the state that waits longest; call it only while one is pending."""
        return self._pending.pop(next(iter(self._pending)))

    def on_update(self, callback: Callable[[], None]) -> None:
        """Call back, instead of waking `states`, when a state is pending after none was."""
        self._on_update = callback
        if self.has_pending:
            callback()

    async def states(self) -> AsyncGenerator[Availability, None]:
        """Yield states without end. States that a slow reader missed are left out."""
        while True:
            await self._updated.wait()
            while self._pending:
                yield self.take()
            self._updated.clear()


class AvailabilityHub:
    """The availability subscriptions of this process."""

    def __init__(self, slots: SlotRepository, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._subscriptions: dict[SlotId, set[AvailabilitySubscription]] = {}
        self._slot_events: SlotEventBus | None = None
        self._resync_task: asyncio.Task[None] | None = None

    def start(self, slot_events: SlotEventBus) -> None:
        """Start to resync, and to receive messages about subscribed slots."""
        self._slot_events = slot_events
        self._resync_task = asyncio.create_task(self._resync_forever())

    async def stop(self) -> None:
        """Stop the resyncs."""
        if self._resync_task is not None:
            self._resync_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._resync_task

    @property
    def subscribed_slot_ids(self) -> set[SlotId]:
        """The slots with a subscription in this process."""
        return set(self._subscriptions)

    def publish(self, state: Availability) -> int:
        """Pass a state to the subscriptions of its slot. Returns for how many it was new."""
        subscriptions = self._subscriptions.get(state.slot_id, ())
        return sum(subscription.publish(state) for subscription in subscriptions)

    @contextlib.asynccontextmanager
    async def subscribe(
        self, slot_ids: Sequence[SlotId]
    ) -> AsyncIterator[AvailabilitySubscription]:
        """Subscribe to slots. The present state of each slot that exists comes first."""
        subscription = AvailabilitySubscription(slot_ids)
        for slot_id in subscription.slot_ids:
            self._subscriptions.setdefault(slot_id, set()).add(subscription)
        try:
            if self._slot_events is not None:
                await self._slot_events.subscribe_slots(set(subscription.slot_ids))
            for state in await self._load_states(slot_ids):
                subscription.publish(state)
            yield subscription
        finally:
            await self._unsubscribe(subscription)

    async def _unsubscribe(self, subscription: AvailabilitySubscription) -> None:
        unused = set()
        for slot_id in subscription.slot_ids:
            self._subscriptions[slot_id].discard(subscription)
            if not self._subscriptions[slot_id]:
                del self._subscriptions[slot_id]
                unused.add(slot_id)
        if unused and self._slot_events is not None:
            await self._slot_events.unsubscribe_slots(unused)

    async def _resync_forever(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_INTERVAL_S)
            try:
                await self.resync()
            except Exception as error:  # the hub must outlive an unavailable MongoDB
                log.warning(
                    "could not resync availability from MongoDB",
                    exc_info=None if is_unavailable(error) else error,
                )

    async def resync(self) -> None:
        """Read all subscribed slots and publish the states whose messages were lost."""
        for slot_ids in chunked(list(self._subscriptions), READ_BATCH_SIZE):
            for state in await self._load_states(slot_ids):
                if self.publish(state):
                    RESYNCED.inc()

    async def _load_states(self, slot_ids: Iterable[SlotId]) -> list[Availability]:
        now = self._now()
        slots = await asyncio.gather(*(self._slots.find(SlotQuery(id_, now)) for id_ in slot_ids))
        return [to_availability(as_of(slot, now)) for slot in slots if slot is not None]
