"""Telling every process that something changed: Redis pub/sub, lossy by design.

One channel a slot carries its availability; one a person says only that others did something to
their bookings.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import orjson
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from slotlock.domain.people import UserId
from slotlock.domain.slots import Availability, SlotId, SlotStatus
from slotlock.stores.redis import RedisLine
from slotlock.stores.redis_clients import Client, open_pubsub

log = logging.getLogger("slotlock.redis")

# Keeps one subscription alive on the connection, so that it can be read before any slot is watched.
IDLE_CHANNEL = "slotlock:idle"
PEOPLE = b"slotlock:person:"
RECONNECT_AFTER_S = 0.5
STOP_WITHIN_S = 2.0


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
        self._client = client
        self._line = line
        self._heard = heard
        self._poked = poked
        self._channels: set[str] = set()
        self._pubsub: PubSub | None = None
        self._listener: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to listen, for as long as the loop runs or until `stop`."""
        self._listener = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        """Stop listening and close the connection."""
        self._stopping = True
        if self._listener is not None:
            self._listener.cancel()
            # The client can swallow a cancellation while it connects; then the loop ends by itself.
            await asyncio.wait([self._listener], timeout=STOP_WITHIN_S)

    def publish(self, news: Availability) -> None:
        """Announce a slot's state to every process, unawaited: whoever misses it heals."""
        self._line.send("PUBLISH", *announcement(news))

    def poke(self, people: Iterable[UserId]) -> None:
        """Tell every process that something was done for these people, unawaited too."""
        for user_id in people:
            self._line.send("PUBLISH", _person_channel(user_id), user_id)

    async def watch(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots too. A Redis that is away is not an error: the reader heals."""
        await self._subscribe(set(map(_channel, slot_ids)))

    async def unwatch(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots no more."""
        await self._unsubscribe(set(map(_channel, slot_ids)))

    async def watch_person(self, user_id: UserId) -> None:
        """Hear when something is done for this person."""
        await self._subscribe({_person_channel(user_id)})

    async def unwatch_person(self, user_id: UserId) -> None:
        """Hear of this person no more."""
        await self._unsubscribe({_person_channel(user_id)})

    async def _subscribe(self, channels: set[str]) -> None:
        new = channels - self._channels
        self._channels |= new
        if new and self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.subscribe(*new)

    async def _unsubscribe(self, channels: set[str]) -> None:
        old = channels & self._channels
        self._channels -= old
        if old and self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.unsubscribe(*old)

    async def _listen(self) -> None:
        while not self._stopping:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._listen_once()
            await asyncio.sleep(RECONNECT_AFTER_S)

    async def _listen_once(self) -> None:
        async with await open_pubsub(self._client) as pubsub:
            await pubsub.subscribe(IDLE_CHANNEL, *self._channels)
            self._pubsub = pubsub
            try:
                while not self._stopping:
                    message = await pubsub.get_message(timeout=None)
                    if message is not None:
                        self._hear(message["channel"], message["data"])
            finally:
                self._pubsub = None

    def _hear(self, channel: bytes, data: bytes) -> None:
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
    return f"{PEOPLE.decode()}{user_id}"
