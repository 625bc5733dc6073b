"""Telling every process that a slot changed: Redis pub/sub, one channel a slot, lossy by design."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime

import orjson
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from slotlock.domain.slots import Availability, SlotId, SlotStatus
from slotlock.stores.redis import RedisLine
from slotlock.stores.redis_clients import Client, open_pubsub

log = logging.getLogger("slotlock.redis")

# Keeps one subscription alive on the connection, so that it can be read before any slot is watched.
IDLE_CHANNEL = "slotlock:idle"
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
    """Tells other processes, and hears what they tell of the slots that somebody here watches."""

    def __init__(
        self, client: Client, line: RedisLine, heard: Callable[[Availability], object]
    ) -> None:
        self._client = client
        self._line = line
        self._heard = heard
        self._watched: set[SlotId] = set()
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

    async def watch(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots too. A Redis that is away is not an error: the reader heals."""
        new = slot_ids - self._watched
        self._watched |= new
        if new and self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.subscribe(*map(_channel, new))

    async def unwatch(self, slot_ids: set[SlotId]) -> None:
        """Hear of these slots no more."""
        old = slot_ids & self._watched
        self._watched -= old
        if old and self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.unsubscribe(*map(_channel, old))

    async def _listen(self) -> None:
        while not self._stopping:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._listen_once()
            await asyncio.sleep(RECONNECT_AFTER_S)

    async def _listen_once(self) -> None:
        async with await open_pubsub(self._client) as pubsub:
            await pubsub.subscribe(IDLE_CHANNEL, *map(_channel, self._watched))
            self._pubsub = pubsub
            try:
                while not self._stopping:
                    message = await pubsub.get_message(timeout=None)
                    if message is not None:
                        self._hear(message["data"])
            finally:
                self._pubsub = None

    def _hear(self, data: bytes) -> None:
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
