"""Hears that a lock was handed to somebody in this process, on a connection of its own."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from redis.exceptions import RedisError

from slotlock.stores.redis_clients import Client, open_pubsub

log = logging.getLogger("slotlock.redis")

RECONNECT_AFTER_S = 0.5
STOP_WITHIN_S = 2.0


class Wakes:
    """Listens on one channel. What is lost while it does not is healed by whoever waits."""

    def __init__(self, client: Client, channel: str, heard: Callable[[bytes], object]) -> None:
        self._client = client
        self._channel = channel
        self._heard = heard
        self._stopping = False
        self._listener: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    async def start(self, within_s: float) -> None:
        """Begin to listen; a Redis that is away is tried again until `stop`."""
        self._listener = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._listening.wait(), within_s)

    async def stop(self) -> None:
        """Stop listening and close the connection."""
        self._stopping = True
        if self._listener is not None:
            self._listener.cancel()
            # The client can swallow a cancellation while it connects; then the loop ends by itself.
            await asyncio.wait([self._listener], timeout=STOP_WITHIN_S)

    async def _listen(self) -> None:
        while not self._stopping:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._listen_once()
            await asyncio.sleep(RECONNECT_AFTER_S)

    async def _listen_once(self) -> None:
        async with await open_pubsub(self._client) as pubsub:
            await pubsub.subscribe(self._channel)
            while not self._stopping:
                message = await pubsub.get_message(timeout=None)
                self._listening.set()  # the first is that it is subscribed
                if message is not None:
                    self._hear(message["data"])

    def _hear(self, message: bytes) -> None:
        try:
            self._heard(message)
        except ValueError:
            log.warning("A wake-up that is not ours was ignored: %.200r", message)
