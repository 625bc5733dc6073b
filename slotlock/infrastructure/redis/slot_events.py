"""Publishes changes of slots, bookings, queues and sessions to every process, by lossy pub/sub.

Five kinds of channels: the availability of a slot, how many requests have left the queue of a slot,
the bookings of a user that others changed, digests of the change stream, and the users whose
sessions or role changed, which each process then reads from MongoDB.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import orjson

from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import Booking, BookingId, BookingRef, SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient
from slotlock.infrastructure.redis.keys import (
    CHANGE_DIGESTS_PREFIX,
    QUEUE_ADVANCED_PREFIX,
    SESSION_EVENTS_CHANNEL,
    USER_PREFIX,
    availability_channel,
    queue_advanced_channel,
    user_channel,
)
from slotlock.infrastructure.redis.subscriber import RedisSubscriber
from slotlock.infrastructure.stored_enums import from_stored

log = logging.getLogger("slotlock.redis")


def availability_message(state: Availability) -> tuple[str, bytes]:
    """Return the channel and the message that publish this state."""
    fields: tuple[object, ...] = (
        state.slot_id,
        state.version,
        state.capacity,
        state.remaining,
        str(state.status),
        state.at.timestamp(),
    )
    if state.is_hidden:
        fields = (*fields, True)
    return availability_channel(state.slot_id), orjson.dumps(fields)


class SlotEventBus:
    """Publishes events and passes those of subscribed slots and users to callbacks."""

    def __init__(
        self,
        client: RedisClient,
        pipeline: AutoPipeline,
        on_availability: Callable[[Availability], object],
        on_booking_changed: Callable[[UserId, BookingRef], object],
        on_queue_advanced: Callable[[SlotId, int], object],
    ) -> None:
        self._pipeline = pipeline
        self._on_availability = on_availability
        self._on_booking_changed = on_booking_changed
        self._on_queue_advanced = on_queue_advanced
        self._on_digest: Callable[[bytes], object] = lambda _: None
        # Set by the streams of this process, which end with their sessions.
        self.on_session_changed: Callable[[UserId], object] = lambda _: None
        self._subscriber = RedisSubscriber(client, self._dispatch, SESSION_EVENTS_CHANNEL)

    def start(self) -> None:
        """Start to receive events."""
        self._subscriber.start()

    async def stop(self) -> None:
        """Stop receiving events."""
        await self._subscriber.stop()

    def publish(self, availability: Availability) -> None:
        """Publish the state of a slot, without waiting. Processes that miss it read it later."""
        self._pipeline.send("PUBLISH", *availability_message(availability))

    def publish_booking_changed(self, bookings: Iterable[Booking]) -> None:
        """Publish that these bookings changed, without waiting."""
        for booking in bookings:
            message = orjson.dumps((booking.user_id, booking.slot_id, booking.id))
            self._pipeline.send("PUBLISH", user_channel(booking.user_id), message)

    def publish_session_changed(self, user_id: UserId) -> None:
        """Publish that sessions of this user ended, or that the role changed, without waiting."""
        self._pipeline.send("PUBLISH", SESSION_EVENTS_CHANNEL, user_id)

    async def subscribe_slots(self, slot_ids: set[SlotId]) -> None:
        """Receive the availability of these slots. No error if Redis is unavailable."""
        await self._subscriber.subscribe(set(map(availability_channel, slot_ids)))

    async def unsubscribe_slots(self, slot_ids: set[SlotId]) -> None:
        """Stop receiving the availability of these slots."""
        await self._subscriber.unsubscribe(set(map(availability_channel, slot_ids)))

    async def subscribe_user(self, user_id: UserId) -> None:
        """Receive changes that others make to the bookings of this user."""
        await self._subscriber.subscribe({user_channel(user_id)})

    async def unsubscribe_user(self, user_id: UserId) -> None:
        """Stop receiving changes to the bookings of this user."""
        await self._subscriber.unsubscribe({user_channel(user_id)})

    async def subscribe_queue(self, slot_id: SlotId) -> None:
        """Receive how many requests have left the queue of this slot, whenever some leave."""
        await self._subscriber.subscribe({queue_advanced_channel(slot_id)})

    async def unsubscribe_queue(self, slot_id: SlotId) -> None:
        """Stop receiving events of this queue."""
        await self._subscriber.unsubscribe({queue_advanced_channel(slot_id)})

    async def subscribe_digests(self, channel: str, on_digest: Callable[[bytes], object]) -> None:
        """Pass the digests of the change stream to this callback."""
        self._on_digest = on_digest
        await self._subscriber.subscribe({channel})

    async def unsubscribe_digests(self, channel: str) -> None:
        """Stop receiving digests of the change stream."""
        await self._subscriber.unsubscribe({channel})

    def _dispatch(self, channel: str, data: bytes) -> None:
        try:
            if channel.startswith(USER_PREFIX):
                user_id, slot_id, booking_id, *_ = orjson.loads(data)
                self._on_booking_changed(
                    UserId(user_id), BookingRef(SlotId(slot_id), BookingId(booking_id))
                )
            elif channel.startswith(QUEUE_ADVANCED_PREFIX):
                slot_id = SlotId(channel.removeprefix(QUEUE_ADVANCED_PREFIX))
                self._on_queue_advanced(slot_id, int(data))
            elif channel.startswith(CHANGE_DIGESTS_PREFIX):
                self._on_digest(data)
            elif channel == SESSION_EVENTS_CHANNEL:
                self.on_session_changed(UserId(data.decode()))
            else:
                self._on_availability(_to_availability(data))
        except (ValueError, TypeError):
            log.warning("ignored an unknown Redis message: %.200r", data)


def _to_availability(data: bytes) -> Availability:
    # A newer version appends its fields.
    slot_id, version, capacity, remaining, status, at, *rest = orjson.loads(data)
    return Availability(
        SlotId(slot_id),
        version,
        capacity,
        remaining,
        from_stored(status, SlotStatus.DRAFT),
        datetime.fromtimestamp(at, UTC),
        rest[:1] == [True],
    )
