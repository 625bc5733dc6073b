"""Receives messages of Redis channels on a connection of its own; messages may be lost."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from traceback import walk_tb

from redis.asyncio.client import PubSub
from redis.exceptions import RedisClusterException, RedisError

from slotlock.infrastructure.redis.circuit_breaker import set_degraded
from slotlock.infrastructure.redis.client import RedisClient, open_pubsub
from slotlock.infrastructure.tasks import cancel_and_wait, ignore_unretrieved

log = logging.getLogger("slotlock.redis")

RECONNECT_DELAY_S = 0.5
# A connection without messages for so long is pinged.
PING_INTERVAL_S = 1.0
# After so many intervals in a row without any reply, the connection is given up.
MAX_SILENT_INTERVALS = 3
# More than a Cluster has nodes.
MAX_FIRST_ATTEMPT = 1000
# What redis-py raises for a connection that is lost.
LOST_CONNECTION = (
    RedisError,
    RedisClusterException,  # no RedisError: no node of a Cluster was reached
    OSError,
    TimeoutError,
)

# The subscribers of this process that receive no messages.
_silent: set["RedisSubscriber"] = set()


class RedisSubscriber:
    """Passes messages to a callback and reconnects when Redis was unavailable."""

    def __init__(
        self, client: RedisClient, on_message: Callable[[str, bytes], object], channel: str
    ) -> None:
        self._client = client
        self._on_message = on_message
        # The first channel is never unsubscribed: a connection without channels cannot be read.
        self._channels = {channel}
        self._pubsub: PubSub | None = None
        # The processes begin with different nodes of a Cluster.
        self._attempts = secrets.randbelow(MAX_FIRST_ATTEMPT)
        self._task: asyncio.Task[None] | None = None
        self._subscribed = asyncio.Event()
        self._stopping = False

    def start(self) -> None:
        """Start to receive messages, until `stop`."""
        self._task = asyncio.create_task(self._run())

    async def wait_until_subscribed(self, timeout_s: float) -> None:
        """Wait until messages are received, at most this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._subscribed.wait()

    async def stop(self) -> None:
        """Stop receiving messages and close the connection."""
        self._stopping = True
        await cancel_and_wait(self._task)
        self._end_outage()

    async def subscribe(self, channels: set[str]) -> None:
        """Add channels. If Redis is unavailable, they are subscribed on reconnection."""
        added = channels - self._channels
        self._channels |= added
        if added and self._pubsub is not None:
            await _send(self._pubsub.subscribe(*added))

    async def unsubscribe(self, channels: set[str]) -> None:
        """Remove channels."""
        removed = channels & self._channels
        self._channels -= removed
        if removed and self._pubsub is not None:
            await _send(self._pubsub.unsubscribe(*removed))

    async def _run(self) -> None:
        while not self._stopping:
            error: Exception | None = None
            try:
                await self._receive_until_disconnected()
            except Exception as caught:
                if not _is_disconnect(caught):
                    log.exception("a bug ended the connection that receives messages from Redis")
                error = caught
            if not self._stopping:
                set_degraded(self, degraded=True)
                if not _silent:  # an outage concerns all subscribers of the process
                    log.warning("messages from Redis do not arrive (%s): reconnecting", error)
                _silent.add(self)
            await asyncio.sleep(RECONNECT_DELAY_S)

    async def _receive_until_disconnected(self) -> None:
        """Pass on messages. Raises: TimeoutError if the server is silent, RedisError, OSError."""
        self._attempts += 1
        async with await open_pubsub(self._client, self._attempts) as pubsub:
            subscribed: set[str] = set()
            while added := self._channels - subscribed:  # some may be added meanwhile
                await pubsub.subscribe(*added)
                subscribed |= added
            self._pubsub = pubsub
            silent_intervals = 0
            try:
                while not self._stopping:
                    message = await pubsub.get_message(timeout=PING_INTERVAL_S)
                    if message is None:
                        silent_intervals += 1
                        if silent_intervals > MAX_SILENT_INTERVALS:
                            raise TimeoutError("no reply to a ping")
                        await _send(pubsub.ping())
                        continue
                    silent_intervals = 0
                    self._on_received()
                    if message["type"] == "message":
                        try:
                            self._on_message(message["channel"].decode(), message["data"])
                        except Exception:  # a bug, which must not look like a lost connection
                            log.exception("a message of %s was not processed", message["channel"])
            finally:
                self._pubsub = None

    def _on_received(self) -> None:
        self._subscribed.set()  # the first message confirms the subscription
        if self in _silent:
            self._end_outage()
            if not _silent:
                log.warning("messages from Redis arrive again")

    def _end_outage(self) -> None:
        _silent.discard(self)
        set_degraded(self, degraded=False)


async def _send(command: Awaitable[None]) -> None:
    """Send a command even if the caller is cancelled; an unavailable Redis is no error.

    redis-py sends within `asyncio.wait_for`. On Python 3.11, that can swallow the cancellation: the
    caller would then wait for ever. Or it closes the connection that all callers share.
    """
    task = asyncio.ensure_future(command)
    task.add_done_callback(ignore_unretrieved)
    try:
        await asyncio.shield(task)
    except Exception as error:
        if not _is_disconnect(error):
            raise


def _is_disconnect(error: Exception) -> bool:
    """Return whether a connection is lost, or another task closes or opens it.

    Then redis-py calls a method of its reader or writer, which is None, or reads while another
    task reads, for which asyncio raises RuntimeError. Any other such error is a bug.
    """
    if isinstance(error, AttributeError):
        is_race = error.name is not None and error.obj is None
    else:
        is_race = isinstance(error, RuntimeError)
    if is_race:
        frames = walk_tb(error.__traceback__)
        return any(frame.f_globals["__name__"].startswith("redis.") for frame, _ in frames)
    return isinstance(error, LOST_CONNECTION)
