"""Telling every process that something changed: Redis pub/sub, lossy by design.

One channel a slot carries its availability; one a person says only that others did something to
their bookings.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import orjson

from slotlock.domain.people import UserId
from slotlock.domain.slots import Availability, SlotId, SlotStatus
from slotlock.stores.listening import Listener
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
        poked: Callable[[UserId], object],
    ) -> None:
        self._line = line
        self._heard = heard
        self._poked = poked
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

    def poke(self, people: Iterable[UserId]) -> None:
        """Tell every process that something was done for these people, unawaited too."""
        for user_id in people:
            self._line.send("PUBLISH", _person_channel(user_id), user_id)

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

    def _hear(self, channel: str, data: bytes) -> None:
        if channel.startswith(PEOPLE):
            self._poked(UserId(data.decode(errors="replace")))
            return
        try:
            slot_id, version, capacity, remaining, status, at = orjson.loads(data)
            state = Availability(
                SlotId(slot_id),
                version,
                capacity,
                remaining,
                SlotStatus(status),
                datetime.fromtimestamp(at, UTC),
            )
        except (ValueError, TypeError):
            log.warning("An announcement that is not ours was ignored: %.200r", data)
            return
        self._heard(state)


def _channel(slot_id: SlotId) -> str:
    return f"slotlock:{{{slot_id}}}:availability"


def _person_channel(user_id: UserId) -> str:
    return f"{PEOPLE}{user_id}"
