"""Telling every process that something changed: Redis pub/sub, lossy by design.

One channel a slot carries its availability, another how many have left the line in front of it; one
a person names a booking of theirs to which others did something.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import orjson

from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import Booking, BookingId, BookingRef, SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.admission.scripts import (
    QUEUE_ADVANCED_PREFIX,
    queue_advanced_channel,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient
from slotlock.infrastructure.redis.subscriber import RedisSubscriber

log = logging.getLogger("slotlock.redis")

IDLE_CHANNEL = "slotlock:idle"
USER_CHANNEL_PREFIX = "slotlock:person:"


def availability_message(state: Availability) -> tuple[str, bytes]:
    """The channel and the message that tell of this state."""
    fields = (
        state.slot_id,
        state.version,
        state.capacity,
        state.remaining,
        state.status.value,
        state.at.timestamp(),
    )
    return _availability_channel(state.slot_id), orjson.dumps(fields)


class SlotEventBus:
    """Tells other processes, and hears what they tell of the slots and people watched here."""

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
        self._subscriber = RedisSubscriber(client, self._dispatch, IDLE_CHANNEL)

    def start(self) -> None:
        """Begin to listen."""
        self._subscriber.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._subscriber.stop()

    def publish(self, availability: Availability) -> None:
        """Announce a slot's state to every process, unawaited: whoever misses it heals."""
        self._pipeline.send("PUBLISH", *availability_message(availability))

    def publish_booking_changed(self, bookings: Iterable[Booking]) -> None:
        """Tell every process that something was done to these bookings, unawaited too."""
        for booking in bookings:
            named = orjson.dumps((booking.user_id, booking.slot_id, booking.id))
            self._pipeline.send("PUBLISH", _user_channel(booking.user_id), named)

    async def subscribe_slots(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots too. A Redis that is away is not an error: the reader heals."""
        await self._subscriber.subscribe(set(map(_availability_channel, slot_ids)))

    async def unsubscribe_slots(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots no more."""
        await self._subscriber.unsubscribe(set(map(_availability_channel, slot_ids)))

    async def subscribe_user(self, user_id: UserId) -> None:
        """Hear when something is done for this person."""
        await self._subscriber.subscribe({_user_channel(user_id)})

    async def unsubscribe_user(self, user_id: UserId) -> None:
        """Hear of this person no more."""
        await self._subscriber.unsubscribe({_user_channel(user_id)})

    async def subscribe_queue(self, slot_id: SlotId) -> None:
        """Hear when people leave the line in front of this slot."""
        await self._subscriber.subscribe({queue_advanced_channel(slot_id)})

    async def unsubscribe_queue(self, slot_id: SlotId) -> None:
        """Hear of this line no more."""
        await self._subscriber.unsubscribe({queue_advanced_channel(slot_id)})

    def _dispatch(self, channel: str, data: bytes) -> None:
        try:
            if channel.startswith(USER_CHANNEL_PREFIX):
                user_id, slot_id, booking_id = orjson.loads(data)
                self._on_booking_changed(
                    UserId(user_id), BookingRef(SlotId(slot_id), BookingId(booking_id))
                )
            elif channel.startswith(QUEUE_ADVANCED_PREFIX):
                self._on_queue_advanced(
                    SlotId(channel.removeprefix(QUEUE_ADVANCED_PREFIX)), int(data)
                )
            elif channel != IDLE_CHANNEL:
                self._on_availability(_to_availability(data))
        except (ValueError, TypeError):
            log.warning("An announcement that is not ours was ignored: %.200r", data)


def _to_availability(data: bytes) -> Availability:
    slot_id, version, capacity, remaining, status, at = orjson.loads(data)
    return Availability(
        SlotId(slot_id),
        version,
        capacity,
        remaining,
        SlotStatus(status),
        datetime.fromtimestamp(at, UTC),
    )


def _availability_channel(slot_id: SlotId) -> str:
    return f"slotlock:{{{slot_id}}}:availability"


def _user_channel(user_id: UserId) -> str:
    return f"{USER_CHANNEL_PREFIX}{user_id}"
