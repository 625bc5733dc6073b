"""What others and the clock do to a person's bookings, told to that person as it happens.

A level, not an event: who watches keeps what was last seen of each booking, and whatever is found
different is told. A poke over Redis says when to look; a look each second heals a lost one.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import Booking, BookingId, BookingRef, SlotId
from slotlock.domain.booking.history import HistoryEntry
from slotlock.domain.booking.slot import Slot, SlotStatus, cancellation_entry
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.wakeup import RefreshTimer

# Somebody who does not read misses the oldest of more than so many.
MAX_PENDING_EVENTS = 100


@dataclass(frozen=True, slots=True)
class LiveBookingEvent:
    """One thing that somebody else, or the clock, did to a person's booking."""

    entry: HistoryEntry
    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class _SeenBooking:
    """How much of a booking's record its person was told, and whether its slot was called off."""

    entry_count: int
    slot_cancelled: bool
    slot: Slot


class BookingEventSubscription:
    """One reader's view of their own bookings."""

    def __init__(self, user_id: UserId) -> None:
        self.user_id = user_id
        self.is_active = False
        self._seen_bookings: dict[BookingId, _SeenBooking] = {}
        self._ended_ids: deque[BookingId] = deque(maxlen=MAX_PENDING_EVENTS)
        self._pending: deque[LiveBookingEvent] = deque(maxlen=MAX_PENDING_EVENTS)
        self._updated = asyncio.Event()

    def diff(self, slots: Sequence[Slot]) -> dict[BookingId, Slot]:
        """Take what is live now, tell what is new of it, and return what is live no more."""
        live = {b.id: (b, slot) for slot in slots for b in slot.bookings_of(self.user_id)}
        for booking, slot in live.values():
            before = self._seen_bookings.get(
                booking.id, _SeenBooking(0, slot_cancelled=False, slot=slot)
            )
            self._publish(booking, slot, booking.history[before.entry_count :])
            called_off = slot.status is SlotStatus.CANCELLED
            if called_off and not before.slot_cancelled:
                self._publish(booking, slot, [cancellation_entry(slot)])
            self._seen_bookings[booking.id] = _SeenBooking(len(booking.history), called_off, slot)
        return {id_: seen.slot for id_, seen in self._seen_bookings.items() if id_ not in live}

    def publish_ended(
        self, booking_id: BookingId, ended_booking: Booking | None, slot: Slot
    ) -> None:
        """Tell how a booking ended. A move is told by the booking it moved to."""
        seen = self._seen_bookings.pop(booking_id, None)
        if ended_booking is None or booking_id in self._ended_ids:
            return
        self._ended_ids.append(booking_id)
        if ended_booking.moved_to is None:
            self._publish(
                ended_booking, slot, ended_booking.history[seen.entry_count if seen else 0 :]
            )

    def _publish(self, booking: Booking, slot: Slot, entries: Sequence[HistoryEntry]) -> None:
        if not self.is_active:
            return
        for entry in entries:
            if entry.by != self.user_id:
                self._pending.append(LiveBookingEvent(entry, booking, slot))
                self._updated.set()

    @property
    def slot_ids(self) -> set[SlotId]:
        """The slots in which the reader was last seen to have a booking."""
        return {seen.slot.id for seen in self._seen_bookings.values()}

    async def events(self) -> AsyncGenerator[LiveBookingEvent, None]:
        """What happens, for ever."""
        while True:
            await self._updated.wait()
            while self._pending:
                yield self._pending.popleft()
            self._updated.clear()


log = logging.getLogger("slotlock.personal")

RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 500
# What began longer ago is history, and costs nothing to those who watch.
LOOKBACK = timedelta(days=1)


class BookingEventHub:
    """Who watches their own bookings in this process."""

    def __init__(self, slots: SlotRepository, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._subscriptions: dict[UserId, set[BookingEventSubscription]] = {}
        self._notified: dict[UserId, set[BookingRef]] = {}
        # Of the slots in which those who watch have bookings, as they were at the last heal.
        self._slot_versions: dict[SlotId, int] = {}
        self._refresh_timer = RefreshTimer(RESYNC_INTERVAL_S)
        self._slot_events: SlotEventBus | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, slot_events: SlotEventBus) -> None:
        """Begin to look."""
        self._slot_events = slot_events
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def notify(self, user_id: UserId, *booking_refs: BookingRef) -> None:
        """Something was done to these bookings of this person, or to any."""
        if user_id in self._subscriptions:
            self._notified.setdefault(user_id, set()).update(booking_refs)
            self._refresh_timer.trigger()

    @contextlib.asynccontextmanager
    async def subscribe(self, user_id: UserId) -> AsyncIterator[BookingEventSubscription]:
        """A watch that tells what happens from now on."""
        watch = BookingEventSubscription(user_id)
        self._subscriptions.setdefault(user_id, set()).add(watch)
        try:
            if self._slot_events is not None:
                await self._slot_events.subscribe_user(user_id)
            watch.diff(await self._load_slots([user_id]))
            watch.is_active = True
            self.notify(user_id)
            yield watch
        finally:
            await self._unsubscribe(watch)

    async def _unsubscribe(self, subscription: BookingEventSubscription) -> None:
        watches = self._subscriptions[subscription.user_id]
        watches.discard(subscription)
        if not watches:
            del self._subscriptions[subscription.user_id]
            if self._slot_events is not None:
                await self._slot_events.unsubscribe_user(subscription.user_id)

    async def _run(self) -> None:
        while True:
            if await self._refresh_timer.wait():
                await self._run_step(self._resync)
            await self._run_step(self._publish_notified)

    async def _run_step(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except Exception as error:
            # The truth may be away for a while; the board must outlive that.
            why = None if is_unavailable(error) else error
            log.warning("personal news could not be read from MongoDB", exc_info=why)

    async def _resync(self) -> None:
        for user_id in await self._users_with_changes():
            self.notify(user_id)

    async def _publish_notified(self) -> None:
        poked, self._notified = self._notified, {}
        try:
            await self._publish_changes(poked)
        except BaseException:
            for user_id, bookings in poked.items():
                self.notify(user_id, *bookings)
            raise

    async def _users_with_changes(self) -> set[UserId]:
        """Those who watch and had or have a booking in a slot that was written since last time."""
        everyone, versions = sorted(self._subscriptions), dict[SlotId, int]()
        for some in chunked(everyone, READ_BATCH_SIZE):
            versions |= await self._slots.find_versions_by_users(some, self._now() - LOOKBACK)
        old = self._slot_versions
        changed = {id_ for id_, version in versions.items() if old.get(id_) != version}
        gone = changed | (old.keys() - versions.keys())
        watches = [watch for all_of_one in self._subscriptions.values() for watch in all_of_one]
        people = {watch.user_id for watch in watches if watch.slot_ids & gone}
        if changed:
            for some in chunked(everyone, READ_BATCH_SIZE):
                people |= await self._slots.find_booked_users(sorted(changed), some)
        self._slot_versions = versions
        return people

    async def _publish_changes(self, notified: Mapping[UserId, set[BookingRef]]) -> None:
        for some in chunked(sorted(notified.keys() & self._subscriptions.keys()), READ_BATCH_SIZE):
            # Watches that begin while this reads have a newer state than this.
            watches = [watch for user_id in some for watch in self._active_subscriptions(user_id)]
            slots = await self._load_slots(some)
            looks = (self._publish_diff(watch, slots, notified[watch.user_id]) for watch in watches)
            await asyncio.gather(*looks)

    def _active_subscriptions(self, user_id: UserId) -> Iterator[BookingEventSubscription]:
        return (watch for watch in self._subscriptions.get(user_id, ()) if watch.is_active)

    async def _publish_diff(
        self,
        subscription: BookingEventSubscription,
        slots: Sequence[Slot],
        notified: set[BookingRef],
    ) -> None:
        live = {booking.id for slot in slots for booking in slot.bookings}
        gone = {booking_id: slot.id for booking_id, slot in subscription.diff(slots).items()}
        # What came and went between two looks was named by those who did it.
        gone |= {ref.booking_id: ref.slot_id for ref in notified if ref.booking_id not in live}
        for booking_id, slot_id in gone.items():
            ended = await self._slots.ended_bookings.find(booking_id)
            slot = await self._slots.find(SlotQuery(slot_id, self._now(), [subscription.user_id]))
            if slot is not None:
                subscription.publish_ended(booking_id, ended, slot)

    async def _load_slots(self, user_ids: Sequence[UserId]) -> list[Slot]:
        now = self._now()
        return await self._slots.find_by_users(user_ids, now - LOOKBACK, now)
