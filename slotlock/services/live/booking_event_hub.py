"""Live booking events: changes of a user's bookings, expired holds, and lost turns.

A subscription remembers what it has seen of each booking and publishes the difference. A message
over Redis names a booking that changed. If it is lost, the change stream of MongoDB names the slot,
and a resync finds the change within two seconds.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from slotlock.domain.audit.audit_log import AuditFilter, NoteAction
from slotlock.domain.audit.audit_notes import merged_schedule_edits
from slotlock.domain.booking.booking import BookingId, BookingRef, SlotId, WaitlistEntryId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.audit.audit_log_queries import AuditLogQueries
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.mongo.slots.ended_bookings import EndedBookingRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.infrastructure.tasks import RefreshTimer
from slotlock.services.live.booking_subscription import (
    BookingEventSubscription,
    UserRows,
    group_by_user,
)
from slotlock.services.live.fan_out import WAKEUP_BATCH_SIZE, Hub

log = logging.getLogger("slotlock.booking_events")

RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 500
# Slots that started longer ago are not watched.
LOOKBACK = timedelta(days=1)
# A booking is read within two seconds, in which a slot has hardly more edits.
MAX_UNSEEN_EDITS = 50


class BookingEventHub(Hub):
    """The booking event subscriptions of this process."""

    def __init__(
        self,
        slots: SlotRepository,
        ended_bookings: EndedBookingRepository,
        audit_log: AuditLogQueries,
        now: Callable[[], datetime],
    ) -> None:
        self._slots = slots
        self._ended_bookings = ended_bookings
        self._audit_log = audit_log
        self._now = now
        self._subscriptions: dict[UserId, set[BookingEventSubscription]] = {}
        self._notified: dict[UserId, set[BookingRef]] = {}
        # The slots that changed since the last resync, and the subscribed users with new bookings.
        self._changed_slots: set[SlotId] = set()
        self._changed_users: set[UserId] = set()
        self._refresh_timer = RefreshTimer(RESYNC_INTERVAL_S)
        self._slot_events: SlotEventBus | None = None
        self._change_feed: SharedChangeFeed | None = None

    def start(self, slot_events: SlotEventBus, change_feed: SharedChangeFeed) -> None:
        """Start to publish."""
        self._slot_events = slot_events
        self._change_feed = change_feed
        change_feed.listen(self._on_changes, self.on_slots_unknown)
        self._repeat(self._publish_soon, log, "could not read booking events from MongoDB")

    def notify(self, user_id: UserId, *booking_refs: BookingRef) -> None:
        """Read the bookings of a user again, and these ones even if they have ended."""
        if user_id in self._subscriptions:
            self._notified.setdefault(user_id, set()).update(booking_refs)
            self._refresh_timer.trigger()

    def _on_changes(self, changes: ChangeBatch) -> None:
        """Find the users whose bookings changed, at the next resync."""
        if self._subscriptions:
            self._changed_slots |= changes.slot_versions.keys()
            self._changed_users |= changes.user_ids & self._subscriptions.keys()

    def on_slots_unknown(self) -> None:
        """Read the bookings of all subscribed users again."""
        for user_id in list(self._subscriptions):
            self.notify(user_id)

    @contextlib.asynccontextmanager
    async def subscribe(
        self, user_id: UserId, *, include_own: bool = False, reader_id: UserId | None = None
    ) -> AsyncIterator[BookingEventSubscription]:
        """Subscribe to the events of a user from now on; if wanted, with what the reader does."""
        own_id = None if include_own else reader_id or user_id
        subscription = BookingEventSubscription(user_id, own_id)
        watching = self._change_feed.watching() if self._change_feed else contextlib.nullcontext()
        self._subscriptions.setdefault(user_id, set()).add(subscription)
        try:
            with watching:
                if self._slot_events is not None:
                    await self._slot_events.subscribe_user(user_id)
                subscription.diff((await self._load_rows([user_id]))[user_id])
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

    async def _publish_soon(self) -> None:
        if await self._refresh_timer.wait():
            self._resync()
        notified, self._notified = self._notified, {}
        try:
            await self._publish_changes(notified)
        except BaseException:
            for user_id, booking_refs in notified.items():
                self.notify(user_id, *booking_refs)
            raise

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
            rows = await self._load_rows(user_ids)
            ended = [
                (subscription, booking_id, slot_id)
                async for subscription in _in_slices(subscriptions)
                for booking_id, slot_id in self._diff(
                    subscription, rows[subscription.user_id], notified[subscription.user_id]
                ).items()
            ]
            await asyncio.gather(*(self._publish_ended(*each) for each in ended))
            for subscription in subscriptions:
                await self._publish_unseen_edits(subscription)

    @staticmethod
    def _diff(
        subscription: BookingEventSubscription, rows: UserRows, notified: set[BookingRef]
    ) -> dict[BookingId, SlotId]:
        """Publish what is new. Returns the slots of bookings and waitlist entries that ended."""
        # A booking that began and ended between two reads is known by its notification only.
        live_ids, ended = rows.booking_ids, subscription.diff(rows)
        refs = (ref for ref in notified if ref.booking_id not in live_ids)
        return ended | {ref.booking_id: ref.slot_id for ref in refs}

    async def _publish_unseen_edits(self, subscription: BookingEventSubscription) -> None:
        """Publish the edits that slots had between a booking and its first read."""
        while subscription.edited_unseen:
            booking, state = subscription.edited_unseen[0]
            revised_at = state.slot.revised_at or state.changed_at
            since_booked = AuditFilter(
                slot_id=state.id,
                actions=frozenset({NoteAction.SLOT_EDITED}),
                since=booking.history[0].at,
                before=revised_at + timedelta(milliseconds=1),
            )
            page = await self._audit_log.page(since_booked, MAX_UNSEEN_EDITS, None, self._now())
            edits = [edit for entry in reversed(page.items) for edit in entry.edits]
            subscription.publish_edits(booking, state, merged_schedule_edits(edits))
            subscription.edited_unseen.popleft()

    async def _publish_ended(
        self, subscription: BookingEventSubscription, booking_id: BookingId, slot_id: SlotId
    ) -> None:
        booking = await self._ended_bookings.find(booking_id)
        if booking is None:  # an entry of a waitlist has the id that its booking would have
            entry_id = WaitlistEntryId(booking_id)
            entry = await self._ended_bookings.find_waitlist_entry(entry_id)
            booking = entry.to_booking() if entry else None
        slot = await self._slots.find(SlotQuery(slot_id, self._now(), [subscription.user_id]))
        if slot is not None:
            subscription.publish_ended(booking_id, booking, slot)

    async def _load_rows(self, user_ids: Sequence[UserId]) -> dict[UserId, UserRows]:
        now = self._now()
        slots = await self._slots.find_by_users(user_ids, now - LOOKBACK, now)
        return group_by_user(slots, user_ids)


async def _in_slices(
    subscriptions: Sequence[BookingEventSubscription],
) -> AsyncIterator[BookingEventSubscription]:
    """Yield subscriptions, and let other tasks run after a few: a slot has up to 1,000 bookers."""
    for batch in chunked(subscriptions, WAKEUP_BATCH_SIZE):
        for subscription in batch:
            yield subscription
        await asyncio.sleep(0)
