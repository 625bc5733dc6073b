"""Hears what is published on some channels, on a connection of its own: lossy by design."""

import asyncio
import contextlib
from collections.abc import Callable

from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from slotlock.infrastructure.redis.client import RedisClient, open_pubsub

RECONNECT_DELAY_S = 0.5
STOP_TIMEOUT_S = 2.0


class RedisSubscriber:
    """Listens from `start` to `stop`. A Redis that is away is no error: what is lost is healed."""

    def __init__(
        self, client: RedisClient, on_message: Callable[[str, bytes], object], channel: str
    ) -> None:
        self._client = client
        self._on_message = on_message
        # The first channel stays, so that the connection can be read before others are added.
        self._channels = {channel}
        self._pubsub: PubSub | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscribed = asyncio.Event()
        self._stopping = False

    def start(self) -> None:
        """Begin to listen, for as long as the loop runs or until `stop`."""
        self._task = asyncio.create_task(self._listen())

    async def wait_until_subscribed(self, timeout_s: float) -> None:
        """Wait until it listens, or so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._subscribed.wait(), timeout_s)

    async def stop(self) -> None:
        """Stop listening and close the connection."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            # The client can swallow a cancellation while it connects; then the loop ends by itself.
            await asyncio.wait([self._task], timeout=STOP_TIMEOUT_S)

    async def subscribe(self, channels: set[str]) -> None:
        """Hear these channels too."""
        new = channels - self._channels
        self._channels |= new
        if new and self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.subscribe(*new)

    async def unsubscribe(self, channels: set[str]) -> None:
        """Hear these channels no more."""
        old = channels & self._channels
        self._channels -= old
        if old and self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.unsubscribe(*old)

    async def _listen(self) -> None:
        while not self._stopping:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._listen_once()
            await asyncio.sleep(RECONNECT_DELAY_S)

    async def _listen_once(self) -> None:
        async with await open_pubsub(self._client) as pubsub:
            await pubsub.subscribe(*self._channels)
            self._pubsub = pubsub
            try:
                while not self._stopping:
                    message = await pubsub.get_message(timeout=None)
                    self._subscribed.set()  # the first is that it is subscribed
                    if message is not None:
                        self._on_message(message["channel"].decode(), message["data"])
            finally:
                self._pubsub = None
