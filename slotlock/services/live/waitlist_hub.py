"""Live positions on waiting lists: each subscriber gets the latest position in each slot.

The change stream names the slots that changed. The positions of those who wait for them, and are
subscribed, are read once a second. No booking sends anything for it, however many users wait.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.mongo.slots.reads.waitlists import WaitlistQueries
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.live.fan_out import WAKEUP_BATCH_SIZE, Hub

log = logging.getLogger("slotlock.waitlist_positions")

# Together with the pause of the change stream, this delivers every position within 2 s.
READ_INTERVAL_S = 1.0
READ_BATCH_SIZE = 500
# Slots that started longer ago are not watched.
LOOKBACK = timedelta(days=1)


@value_object
class WaitlistPosition:
    """The position of a user on the waiting list of a slot; None if the user waits no more."""

    slot_id: SlotId
    position: int | None


class WaitlistSubscription:
    """The positions of one user for one reader: at most one pending position per slot."""

    def __init__(self, user_id: UserId) -> None:
        self.user_id = user_id
        self._latest: Mapping[SlotId, int] = {}
        self._pending: dict[SlotId, int | None] = {}
        self._updated = asyncio.Event()

    @property
    def slot_ids(self) -> set[SlotId]:
        """The slots for which the user waited when they were last read."""
        return set(self._latest)

    def publish(self, positions: Mapping[SlotId, int]) -> None:
        """Queue the positions that differ from the latest ones."""
        for slot_id in self._latest.keys() | positions.keys():
            position = positions.get(slot_id)
            if position != self._latest.get(slot_id):
                self._pending[slot_id] = position
                self._updated.set()
        self._latest = positions

    async def positions(self) -> AsyncGenerator[WaitlistPosition, None]:
        """Yield positions without end. Those that a slow reader missed are left out."""
        while True:
            await self._updated.wait()
            while self._pending:
                slot_id = next(iter(self._pending))
                yield WaitlistPosition(slot_id, self._pending.pop(slot_id))
            self._updated.clear()


class WaitlistHub(Hub):
    """The waiting list subscriptions of this process."""

    def __init__(self, waitlists: WaitlistQueries, now: Callable[[], datetime]) -> None:
        self._waitlists = waitlists
        self._now = now
        self._subscriptions: dict[UserId, set[WaitlistSubscription]] = {}
        self._users_by_slot: dict[SlotId, set[UserId]] = {}
        self._changed_users: set[UserId] = set()
        self._changed = asyncio.Event()
        self._change_feed: SharedChangeFeed | None = None

    def start(self, change_feed: SharedChangeFeed) -> None:
        """Start to publish."""
        self._change_feed = change_feed
        change_feed.listen(self._on_changes, self.on_slots_unknown)
        self._repeat(self._read_changed, log, "could not read waiting lists from MongoDB")

    @contextlib.asynccontextmanager
    async def subscribe(self, user_id: UserId) -> AsyncIterator[WaitlistSubscription]:
        """Subscribe to the positions of a user. The present ones come first."""
        subscription = WaitlistSubscription(user_id)
        watching = self._change_feed.watching() if self._change_feed else contextlib.nullcontext()
        self._subscriptions.setdefault(user_id, set()).add(subscription)
        try:
            with watching:
                await self._read([user_id])
                # A change that was reported before this read returned was not for this user yet.
                self._on_changed({user_id})
                yield subscription
        finally:
            self._unsubscribe(subscription)

    def _unsubscribe(self, subscription: WaitlistSubscription) -> None:
        user_id = subscription.user_id
        subscriptions = self._subscriptions[user_id]
        subscriptions.discard(subscription)
        if not subscriptions:
            del self._subscriptions[user_id]
            self._watch(user_id, subscription.slot_ids, set())

    def _on_changes(self, changes: ChangeBatch) -> None:
        """Read the positions of those who wait for these slots, or joined a waiting list."""
        if self._subscriptions:
            waiting = (self._users_by_slot.get(slot_id, ()) for slot_id in changes.slot_versions)
            joined = changes.user_ids & self._subscriptions.keys()
            self._on_changed(joined.union(*waiting))

    def on_slots_unknown(self) -> None:
        """Read the positions of all subscribed users again."""
        self._on_changed(self._subscriptions.keys())

    def _on_changed(self, user_ids: Set[UserId]) -> None:
        if user_ids:
            self._changed_users |= user_ids
            self._changed.set()

    async def _read_changed(self) -> None:
        await self._changed.wait()
        await asyncio.sleep(READ_INTERVAL_S)
        self._changed.clear()
        changed, self._changed_users = self._changed_users, set()
        try:
            await self._read(sorted(changed))
        except BaseException:
            self._on_changed(changed)
            raise

    async def _read(self, user_ids: Sequence[UserId]) -> None:
        """Read and publish the positions of users, a few at a time."""
        since = self._now() - LOOKBACK
        for chunk in chunked(user_ids, READ_BATCH_SIZE):
            found = await self._waitlists.find_positions(chunk, since)
            for batch in chunked(chunk, WAKEUP_BATCH_SIZE):
                for user_id in batch:
                    self._publish(user_id, found[user_id])
                await asyncio.sleep(0)

    def _publish(self, user_id: UserId, positions: Mapping[SlotId, int]) -> None:
        for subscription in self._subscriptions.get(user_id, ()):
            self._watch(user_id, subscription.slot_ids, set(positions))
            subscription.publish(positions)

    def _watch(self, user_id: UserId, before: set[SlotId], after: set[SlotId]) -> None:
        for slot_id in after - before:
            self._users_by_slot.setdefault(slot_id, set()).add(user_id)
        for slot_id in before - after:
            users = self._users_by_slot.get(slot_id, set())
            users.discard(user_id)
            if not users:
                self._users_by_slot.pop(slot_id, None)
