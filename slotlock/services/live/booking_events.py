"""Live booking events: changes of a user's bookings by other users, and expired holds.

A subscription remembers what it has seen of each booking and publishes the difference. A message
over Redis names a booking that changed. If it is lost, the change stream of MongoDB names the slot,
and a resync finds the change within two seconds.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Mapping,
    Sequence,
)
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import Booking, BookingId, BookingRef, HistoryEntry, SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.changes.stream import Changes
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.ended_bookings import EndedBookingRepository
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.infrastructure.wakeup import RefreshTimer

log = logging.getLogger("slotlock.booking_events")

# A slow reader loses the oldest events beyond this number.
MAX_PENDING_EVENTS = 100
RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 500
# Slots that started longer ago are not watched.
LOOKBACK = timedelta(days=1)


@value_object
class LiveBookingEvent:
    """One history entry of a booking that was not written by its user."""

    entry: HistoryEntry
    booking: Booking
    slot: SlotState


@value_object
class _SeenBooking:
    """How many history entries of a booking were published, and whether its slot was cancelled."""

    entry_count: int
    slot_cancelled: bool
    slot: SlotState


class BookingEventSubscription:
    """The events of one user for one reader. Events are published once it is active."""

    def __init__(self, user_id: UserId) -> None:
        self.user_id = user_id
        self.is_active = False
        self._seen_bookings: dict[BookingId, _SeenBooking] = {}
        self._ended_ids: deque[BookingId] = deque(maxlen=MAX_PENDING_EVENTS)
        self._pending: deque[LiveBookingEvent] = deque(maxlen=MAX_PENDING_EVENTS)
        self._updated = asyncio.Event()

    def diff(self, slots: Sequence[SlotState]) -> dict[BookingId, SlotState]:
        """Publish what is new in these slots. Returns the slots of bookings that are gone."""
        live = {b.id: (b, slot) for slot in slots for b in slot.bookings_of(self.user_id)}
        for booking, slot in live.values():
            before = self._seen_bookings.get(
                booking.id, _SeenBooking(0, slot_cancelled=False, slot=slot)
            )
            self._publish(booking, slot, booking.history[before.entry_count :])
            cancellation = slot.slot.cancellation
            if cancellation is not None and not before.slot_cancelled:
                self._publish(booking, slot, [cancellation.to_history_entry()])
            self._seen_bookings[booking.id] = _SeenBooking(
                len(booking.history), cancellation is not None, slot
            )
        return {id_: seen.slot for id_, seen in self._seen_bookings.items() if id_ not in live}

    def publish_ended(
        self, booking_id: BookingId, ended_booking: Booking | None, slot: SlotState
    ) -> None:
        """Publish how a booking ended. A move is published with the booking that replaces it."""
        seen = self._seen_bookings.pop(booking_id, None)
        if ended_booking is None or booking_id in self._ended_ids:
            return
        self._ended_ids.append(booking_id)
        if ended_booking.moved_to is None:
            entry_count = seen.entry_count if seen else 0
            self._publish(ended_booking, slot, ended_booking.history[entry_count:])

    def _publish(self, booking: Booking, slot: SlotState, entries: Sequence[HistoryEntry]) -> None:
        if not self.is_active:
            return
        for entry in entries:
            if entry.by != self.user_id:
                self._pending.append(LiveBookingEvent(entry, booking, slot))
                self._updated.set()

    @property
    def slot_ids(self) -> set[SlotId]:
        """The slots in which the user had a booking when they were last read."""
        return {seen.slot.id for seen in self._seen_bookings.values()}

    async def events(self) -> AsyncGenerator[LiveBookingEvent, None]:
        """Yield events without end."""
        while True:
            await self._updated.wait()
            while self._pending:
                yield self._pending.popleft()
            self._updated.clear()


class BookingEventHub:
    """The booking event subscriptions of this process."""

    def __init__(
        self,
        slots: SlotRepository,
        ended_bookings: EndedBookingRepository,
        now: Callable[[], datetime],
    ) -> None:
        self._slots = slots
        self._ended_bookings = ended_bookings
        self._now = now
        self._subscriptions: dict[UserId, set[BookingEventSubscription]] = {}
        self._notified: dict[UserId, set[BookingRef]] = {}
        # The slots that changed since the last resync, and the subscribed users with new bookings.
        self._changed_slots: set[SlotId] = set()
        self._changed_users: set[UserId] = set()
        self._refresh_timer = RefreshTimer(RESYNC_INTERVAL_S)
        self._slot_events: SlotEventBus | None = None
        self._change_feed: SharedChangeFeed | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, slot_events: SlotEventBus, change_feed: SharedChangeFeed) -> None:
        """Start to publish."""
        self._slot_events = slot_events
        self._change_feed = change_feed
        change_feed.listen(self._on_changes, self.on_slots_unknown)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop publishing."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def notify(self, user_id: UserId, *booking_refs: BookingRef) -> None:
        """Read the bookings of a user again, and these ones even if they have ended."""
        if user_id in self._subscriptions:
            self._notified.setdefault(user_id, set()).update(booking_refs)
            self._refresh_timer.trigger()

    def _on_changes(self, changes: Changes) -> None:
        """Find the users whose bookings changed, at the next resync."""
        if self._subscriptions:
            self._changed_slots |= changes.slot_versions.keys()
            self._changed_users |= changes.user_ids & self._subscriptions.keys()

    def on_slots_unknown(self) -> None:
        """Read the bookings of all subscribed users again."""
        for user_id in list(self._subscriptions):
            self.notify(user_id)

    @contextlib.asynccontextmanager
    async def subscribe(self, user_id: UserId) -> AsyncIterator[BookingEventSubscription]:
        """Subscribe to the events of a user from now on."""
        subscription = BookingEventSubscription(user_id)
        watching = self._change_feed.watching() if self._change_feed else contextlib.nullcontext()
        self._subscriptions.setdefault(user_id, set()).add(subscription)
        try:
            with watching:
                if self._slot_events is not None:
                    await self._slot_events.subscribe_user(user_id)
                subscription.diff(await self._load_slots([user_id]))
                subscription.is_active = True
                self.notify(user_id)
                yield subscription
        finally:
            await self._unsubscribe(subscription)

    async def _unsubscribe(self, subscription: BookingEventSubscription) -> None:
        subscriptions = self._subscriptions[subscription.user_id]
        subscriptions.discard(subscription)
        if not subscriptions:
            del self._subscriptions[subscription.user_id]
            if self._slot_events is not None:
                await self._slot_events.unsubscribe_user(subscription.user_id)

    async def _run(self) -> None:
        while True:
            if await self._refresh_timer.wait():
                self._resync()
            try:
                await self._publish_notified()
            except Exception as error:  # the hub must outlive an unavailable MongoDB
                log.warning(
                    "could not read booking events from MongoDB",
                    exc_info=None if is_unavailable(error) else error,
                )

    def _resync(self) -> None:
        """Read the bookings of all subscribed users whose slots changed."""
        for user_id in self._changed_users:
            self.notify(user_id)
        changed, self._changed_slots, self._changed_users = self._changed_slots, set(), set()
        if not changed:
            return
        for user_id, subscriptions in self._subscriptions.items():
            if any(subscription.slot_ids & changed for subscription in subscriptions):
                self.notify(user_id)

    async def _publish_notified(self) -> None:
        notified, self._notified = self._notified, {}
        try:
            await self._publish_changes(notified)
        except BaseException:
            for user_id, booking_refs in notified.items():
                self.notify(user_id, *booking_refs)
            raise

    async def _publish_changes(self, notified: Mapping[UserId, set[BookingRef]]) -> None:
        subscribed = sorted(notified.keys() & self._subscriptions.keys())
        for user_ids in chunked(subscribed, READ_BATCH_SIZE):
            # Listed before the read: a subscription that begins meanwhile reads a newer state.
            subscriptions = [
                subscription
                for user_id in user_ids
                for subscription in self._subscriptions.get(user_id, ())
                if subscription.is_active
            ]
            slots = await self._load_slots(user_ids)
            diffs = (
                self._publish_diff(subscription, slots, notified[subscription.user_id])
                for subscription in subscriptions
            )
            await asyncio.gather(*diffs)

    async def _publish_diff(
        self,
        subscription: BookingEventSubscription,
        slots: Sequence[SlotState],
        notified: set[BookingRef],
    ) -> None:
        live = {booking.id for slot in slots for booking in slot.bookings}
        gone = {booking_id: slot.id for booking_id, slot in subscription.diff(slots).items()}
        # A booking that began and ended between two reads is known by its notification only.
        gone |= {ref.booking_id: ref.slot_id for ref in notified if ref.booking_id not in live}
        for booking_id, slot_id in gone.items():
            ended = await self._ended_bookings.find(booking_id)
            slot = await self._slots.find(SlotQuery(slot_id, self._now(), [subscription.user_id]))
            if slot is not None:
                subscription.publish_ended(booking_id, ended, slot)

    async def _load_slots(self, user_ids: Sequence[UserId]) -> list[SlotState]:
        now = self._now()
        return await self._slots.find_by_users(user_ids, now - LOOKBACK, now)
