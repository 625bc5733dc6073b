"""What others and the clock do to a person's bookings, told to that person as it happens.

A level, not an event: who watches keeps what was last seen of each booking, and whatever is found
different is told. A poke over Redis says when to look; a look each second heals a lost one.
"""

import asyncio
import contextlib
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime, timedelta

from slotlock.desk.personal_watch import BookingEventSubscription
from slotlock.domain.bookings import BookingRef, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot
from slotlock.stores.announcements import SlotEventBus
from slotlock.stores.batches import chunked
from slotlock.stores.mongo import is_unavailable
from slotlock.stores.slots import SlotQuery, SlotRepository
from slotlock.stores.waking import RefreshTimer

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
