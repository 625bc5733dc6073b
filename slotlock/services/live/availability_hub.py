"""Live availability: each subscriber gets the latest state of a slot, in order of versions.

A subscription starts first and then reads the present state, so no state in between is missed. A
slow reader has one pending state per slot, the latest. If a message is lost, the change stream of
MongoDB says that a slot has a newer version, and the hub reads its state.
"""

import asyncio
import contextlib
import logging
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime
from itertools import islice

from prometheus_client import Counter

from slotlock.domain.booking.availability import Availability, after_deletion, to_availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import SlotStatus
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.live.fan_out import WAKEUP_BATCH_SIZE, FanOutQueue, Hub
from slotlock.services.live.latest_states import LatestStates

log = logging.getLogger("slotlock.availability")

# A message has this time to arrive before the state is read instead. Together with the pause of the
# change stream and the time of a read, this delivers every state within 2 s.
MESSAGE_DELAY_S = 0.3
READ_BATCH_SIZE = 1000
# So many subscriptions learn of a state in one iteration of the event loop, in less than 1 ms.
PUBLISH_BATCH_SIZE = 100

RESYNCED = Counter(
    "slotlock_availability_resynced_total",
    "Availability states that were read because their message was lost",
)


class AvailabilitySubscription(LatestStates[SlotId, Availability]):
    """The states of some slots for one reader: at most one pending state per slot.

    Of a slot that becomes hidden, a reader who does not see hidden slots gets one state that says
    so. Once that applies to all slots, the subscription `is_over` when no state is pending.
    """

    __slots__ = ("_sees_hidden", "slot_ids")

    def __init__(
        self, slot_ids: Iterable[SlotId], wakeups: FanOutQueue, *, sees_hidden: bool = True
    ) -> None:
        super().__init__(wakeups)
        self._sees_hidden = sees_hidden
        self.slot_ids = tuple(dict.fromkeys(slot_ids))

    def publish(self, state: Availability) -> bool:
        """Queue a state unless it is older than one that was queued before. Returns whether."""
        latest = self._latest.get(state.slot_id)
        if latest is not None and state.version <= latest.version:
            return False
        if not self._sees_hidden and (state.is_hidden or self.is_over):
            if latest is not None and latest.is_hidden and state.is_hidden:
                return False
            self._latest[state.slot_id] = state
            states = (self._latest.get(each) for each in self.slot_ids)
            self.is_over = all(each is not None and each.is_hidden for each in states)
        self.put(state.slot_id, state)
        return True


class _SlotSubscriptions:
    """The subscriptions of one slot, the oldest first, and the latest state passed to them.

    A process receives its own states again from Redis. A later subscription reads a state that is
    at least as new, so that what was passed on once is never passed on again.
    """

    __slots__ = ("_passing", "_remaining", "_slices", "latest", "subscriptions", "version")

    def __init__(self, slices: FanOutQueue) -> None:
        self.subscriptions: dict[AvailabilitySubscription, None] = {}
        self.version = -1
        self.latest: Availability | None = None
        # Runs the slices of all slots, one at a time.
        self._slices = slices
        # Those that a round has not reached yet, and the version with which it began.
        self._remaining: Iterator[AvailabilitySubscription] = iter(())
        self._passing: int | None = None

    def publish(self, state: Availability) -> bool:
        """Pass a state to all subscriptions, to a first slice at once. Returns whether it is new.

        If a round is under way, it continues with this state, and another one follows it.
        """
        if state.version <= self.version:
            return False
        self.version, self.latest = state.version, state
        if self._passing is None:
            self._begin_round()
        return True

    def publish_deletion(self, now: datetime) -> None:
        """Pass on that the slot was deleted, unless its latest state says so."""
        if self.latest is not None and self.latest.status is not SlotStatus.CANCELLED:
            self.publish(after_deletion(self.latest, now))

    def _begin_round(self) -> None:
        self._passing, self._remaining = self.version, iter(tuple(self.subscriptions))
        self._pass_slice()

    def _pass_slice(self) -> None:
        count, latest = 0, self.latest
        assert latest is not None  # noqa: S101  (a round passes one on)
        for subscription in islice(self._remaining, PUBLISH_BATCH_SIZE):
            subscription.publish(latest)
            count += 1
        if count == PUBLISH_BATCH_SIZE:
            self._slices.add(self._pass_slice)
        elif self._passing == self.version:
            self._passing = None
        else:
            self._slices.add(self._begin_round)


class AvailabilityHub(Hub):
    """The availability subscriptions of this process."""

    def __init__(self, slots: SlotRepository, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._subscriptions: dict[SlotId, _SlotSubscriptions] = {}
        self._wakeups = FanOutQueue(WAKEUP_BATCH_SIZE)
        self._slices = FanOutQueue(batch_size=1)
        self._slot_events: SlotEventBus | None = None
        self._change_feed: SharedChangeFeed | None = None
        # The slots with a version that no message has reported yet.
        self._outdated: dict[SlotId, int] = {}
        # How often any slot might have changed, and how many of these times were compared.
        self._gap_count = self._compared_gap_count = 0
        self._found_outdated = asyncio.Event()

    def start(self, slot_events: SlotEventBus, change_feed: SharedChangeFeed) -> None:
        """Start to receive messages about subscribed slots, and to replace those that are lost."""
        self._slot_events = slot_events
        self._change_feed = change_feed
        change_feed.listen(self.on_changes, self.on_slots_unknown)
        self._repeat(self._resync_soon, log, "could not resync availability from MongoDB")

    @property
    def subscribed_slot_ids(self) -> set[SlotId]:
        """The slots with a subscription in this process."""
        return set(self._subscriptions)

    def publish(self, state: Availability) -> bool:
        """Pass a state to the subscriptions of its slot. Returns whether it is new to them."""
        of_slot = self._subscriptions.get(state.slot_id)
        return of_slot is not None and of_slot.publish(state)

    @contextlib.asynccontextmanager
    async def subscribe(
        self, slot_ids: Sequence[SlotId], *, sees_hidden: bool = True
    ) -> AsyncIterator[AvailabilitySubscription]:
        """Subscribe to slots. The present state of each slot that exists comes first."""
        subscription = AvailabilitySubscription((), self._wakeups, sees_hidden=sees_hidden)
        watching = self._change_feed.watching() if self._change_feed else contextlib.nullcontext()
        try:
            with watching:
                self._register(subscription, slot_ids)
                await self._publish_present(subscription, slot_ids)
                yield subscription
        finally:
            await self._unsubscribe(subscription)

    async def extend(
        self, subscriptions: Iterable[AvailabilitySubscription], slot_ids: Sequence[SlotId]
    ) -> None:
        """Subscribe to more slots.

        The latest state that this process knows comes first, so that a crowd of readers of the same
        slots costs MongoDB the reads of one.
        """
        extended = list(subscriptions)
        for subscription in extended:
            self._register(subscription, slot_ids)
        unknown = [
            id_ for id_ in slot_ids if id_ in self._subscriptions and not self._known_state(id_)
        ]
        for chunk in chunked(unknown, READ_BATCH_SIZE):
            await self._publish_present(None, chunk)
        for state in filter(None, map(self._known_state, slot_ids)):
            for subscription in extended:
                subscription.publish(state)

    def _known_state(self, slot_id: SlotId) -> Availability | None:
        of_slot = self._subscriptions.get(slot_id)
        return of_slot.latest if of_slot is not None else None

    def _register(self, subscription: AvailabilitySubscription, slot_ids: Sequence[SlotId]) -> None:
        subscription.slot_ids = tuple(dict.fromkeys((*subscription.slot_ids, *slot_ids)))
        for slot_id in slot_ids:
            of_slot = self._subscriptions.setdefault(slot_id, _SlotSubscriptions(self._slices))
            of_slot.subscriptions[subscription] = None

    async def _publish_present(
        self, subscription: AvailabilitySubscription | None, slot_ids: Sequence[SlotId]
    ) -> None:
        """Read these slots, and publish them to all subscriptions, to this one at once."""
        if self._slot_events is not None:
            await self._slot_events.subscribe_slots(set(slot_ids))
        for state in await self._load_states(slot_ids):
            self.publish(state)
            if subscription is not None:
                subscription.publish(state)

    async def _unsubscribe(self, subscription: AvailabilitySubscription) -> None:
        unused = set()
        for slot_id in subscription.slot_ids:
            of_slot = self._subscriptions[slot_id]
            of_slot.subscriptions.pop(subscription, None)
            if not of_slot.subscriptions:
                del self._subscriptions[slot_id]
                unused.add(slot_id)
        if unused and self._slot_events is not None:
            await self._slot_events.unsubscribe_slots(unused)

    def on_changes(self, changes: ChangeBatch) -> None:
        """Read what is missing of the slots that changed, and pass on which were deleted."""
        self.on_slots_changed(changes.slot_versions)
        self._on_slots_deleted(changes.deleted_slot_ids)

    def on_slots_changed(self, versions: Mapping[SlotId, int]) -> None:
        """Read those of these slots whose message does not arrive soon."""
        for slot_id, version in versions.items():
            if self._is_newer(slot_id, version):
                self._outdated[slot_id] = version
        if self._outdated:
            self._found_outdated.set()

    def _on_slots_deleted(self, slot_ids: Iterable[SlotId]) -> None:
        for slot_id in slot_ids:
            self._outdated.pop(slot_id, None)
            if (of_slot := self._subscriptions.get(slot_id)) is not None:
                of_slot.publish_deletion(self._now())

    def on_slots_unknown(self) -> None:
        """Compare all subscribed slots with MongoDB soon."""
        self._gap_count += 1
        self._found_outdated.set()

    def _is_newer(self, slot_id: SlotId, version: int) -> bool:
        of_slot = self._subscriptions.get(slot_id)
        return of_slot is not None and of_slot.version < version

    async def _resync_soon(self) -> None:
        await self._found_outdated.wait()
        await asyncio.sleep(MESSAGE_DELAY_S)
        self._found_outdated.clear()
        try:
            await self.resync()
        except BaseException:
            self._found_outdated.set()
            raise

    async def resync(self) -> None:
        """Read the outdated slots and publish the states whose messages were lost."""
        gap_count = self._gap_count
        if gap_count > self._compared_gap_count:
            for slot_ids in chunked(list(self._subscriptions), READ_BATCH_SIZE):
                versions = await self._slots.find_versions(slot_ids)
                self.on_slots_changed(versions)
                self._on_slots_deleted(set(slot_ids) - versions.keys())
            self._compared_gap_count = gap_count
        outdated = [id_ for id_, version in self._outdated.items() if self._is_newer(id_, version)]
        for slot_ids in chunked(outdated, READ_BATCH_SIZE):
            states = await self._load_states(slot_ids)
            for state in states:
                if self.publish(state):
                    RESYNCED.inc()
            self._on_slots_deleted(set(slot_ids) - {state.slot_id for state in states})
        # A change that came meanwhile remains.
        self._outdated = {
            id_: version for id_, version in self._outdated.items() if self._is_newer(id_, version)
        }

    async def _load_states(self, slot_ids: Iterable[SlotId]) -> list[Availability]:
        now = self._now()
        slots = await asyncio.gather(*(self._slots.find(SlotQuery(id_, now)) for id_ in slot_ids))
        return [to_availability(as_of(slot, now)) for slot in slots if slot is not None]
