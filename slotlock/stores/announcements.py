"""Telling every process that something changed: Redis pub/sub, lossy by design.

One channel a slot carries its availability, another how many have left the line in front of it; one
a person names a booking of theirs to which others did something.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import orjson

from slotlock.domain.availability import Availability
from slotlock.domain.bookings import Booking, BookingId, BookingRef, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.slots import SlotStatus
from slotlock.stores.listening import Listener
from slotlock.stores.queue_scripts import MOVED, moved_channel
from slotlock.stores.redis import RedisLine
from slotlock.stores.redis_clients import Client

log = logging.getLogger("slotlock.redis")

IDLE_CHANNEL = "slotlock:idle"
PEOPLE = "slotlock:person:"


def announcement(state: Availability) -> tuple[str, bytes]:
    """The channel and the message that tell of this state."""
    fields = (
        state.slot_id,
        state.version,
        state.capacity,
        state.remaining,
        state.status.value,
        state.at.timestamp(),
    )
    return _channel(state.slot_id), orjson.dumps(fields)


class Announcements:
    """Tells other processes, and hears what they tell of the slots and people watched here."""

    def __init__(
        self,
        client: Client,
        line: RedisLine,
        heard: Callable[[Availability], object],
        poked: Callable[[UserId, BookingRef], object],
        moved: Callable[[SlotId, int], object],
    ) -> None:
        self._line = line
        self._heard = heard
        self._poked = poked
        self._moved = moved
        self._listener = Listener(client, self._hear, IDLE_CHANNEL)

    def start(self) -> None:
        """Begin to listen."""
        self._listener.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._listener.stop()

    def publish(self, news: Availability) -> None:
        """Announce a slot's state to every process, unawaited: whoever misses it heals."""
        self._line.send("PUBLISH", *announcement(news))

    def poke(self, bookings: Iterable[Booking]) -> None:
        """Tell every process that something was done to these bookings, unawaited too."""
        for booking in bookings:
            named = orjson.dumps((booking.user_id, booking.slot_id, booking.id))
            self._line.send("PUBLISH", _person_channel(booking.user_id), named)

    async def watch(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots too. A Redis that is away is not an error: the reader heals."""
        await self._listener.add(set(map(_channel, slot_ids)))

    async def unwatch(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots no more."""
        await self._listener.remove(set(map(_channel, slot_ids)))

    async def watch_person(self, user_id: UserId) -> None:
        """Hear when something is done for this person."""
        await self._listener.add({_person_channel(user_id)})

    async def unwatch_person(self, user_id: UserId) -> None:
        """Hear of this person no more."""
        await self._listener.remove({_person_channel(user_id)})

    async def watch_line(self, slot_id: SlotId) -> None:
        """Hear when people leave the line in front of this slot."""
        await self._listener.add({moved_channel(slot_id)})

    async def unwatch_line(self, slot_id: SlotId) -> None:
        """Hear of this line no more."""
        await self._listener.remove({moved_channel(slot_id)})

    def _hear(self, channel: str, data: bytes) -> None:
        try:
            if channel.startswith(PEOPLE):
                user_id, slot_id, booking_id = orjson.loads(data)
                self._poked(UserId(user_id), BookingRef(SlotId(slot_id), BookingId(booking_id)))
            elif channel.startswith(MOVED):
                self._moved(SlotId(channel.removeprefix(MOVED)), int(data))
            elif channel != IDLE_CHANNEL:
                self._heard(_state(data))
        except (ValueError, TypeError):
            log.warning("An announcement that is not ours was ignored: %.200r", data)


def _state(data: bytes) -> Availability:
    slot_id, version, capacity, remaining, status, at = orjson.loads(data)
    return Availability(
        SlotId(slot_id),
        version,
        capacity,
        remaining,
        SlotStatus(status),
        datetime.fromtimestamp(at, UTC),
    )


def _channel(slot_id: SlotId) -> str:
    return f"slotlock:{{{slot_id}}}:availability"


def _person_channel(user_id: UserId) -> str:
    return f"{PEOPLE}{user_id}"
