"""Sends the commands of concurrent callers to Redis together, in one pipeline."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from redis.asyncio import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from slotlock.infrastructure.futures import ignore_unretrieved
from slotlock.infrastructure.redis.circuit_breaker import CircuitBreaker
from slotlock.infrastructure.redis.client import (
    RedisClient,
    check_writable,
    close_client,
    drop_connections,
)

MAX_PIPELINE_SIZE = 256
# Continuing without Redis is better than waiting longer than this for a command.
COMMAND_TIMEOUT_S = 1.0
# Rounds of the event loop in which a reply that has arrived is read.
EXTRA_READ_ROUNDS = 10
MAX_DEFERRED_COMMANDS = 1000

Result = TypeVar("Result")
CommandPart = str | bytes | int
Command = tuple[CommandPart, ...]
# What Redis replies depends on the command or script, so callers state what they expect.
Reply = Any
_PendingCommands = list[tuple[Command, asyncio.Future[Reply]]]


class RedisUnavailableError(Exception):
    """Redis did not execute a command or, if it was `sent`, may have executed it silently."""

    def __init__(self, reason: str, *, sent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent


class AutoPipeline:
    """Sends queued commands as one pipeline at a time and rejects them while Redis is unavailable.

    On a Cluster, the client sends one pipeline to each node. One failing node opens the circuit
    for all of them.

    `send` queues its command at once, whether or not the reply is awaited. Cancelling the caller
    never withdraws a command, so a release that was requested is sent.
    """

    def __init__(self, client: RedisClient) -> None:
        self.client = client
        self._queued: _PendingCommands = []
        self._sender: asyncio.Task[None] | None = None
        self._deferred: deque[Command] = deque(maxlen=MAX_DEFERRED_COMMANDS)
        self._in_flight: set[asyncio.Task[object]] = set()
        self._closed = False
        self._breaker = CircuitBreaker(
            self.is_writable, partial(drop_connections, client), self._send_deferred
        )

    @property
    def is_cluster(self) -> bool:
        """Whether the keys lie on several nodes, so that a script may not use any two of them."""
        return isinstance(self.client, RedisCluster)

    @property
    def is_unavailable(self) -> bool:
        """Whether Redis failed and has not accepted a write since."""
        return self._breaker.is_open

    def send(self, *command: CommandPart) -> asyncio.Future[Reply]:
        """Queue one command and return its reply, to be awaited or not.

        Raises: RedisUnavailableError.
        """
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(ignore_unretrieved)
        if self.is_unavailable or self._closed:
            reply.set_exception(RedisUnavailableError("Redis is unavailable"))
            return reply
        self._queued.append((command, reply))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())
        return reply

    def send_after_recovery(self, *command: CommandPart) -> None:
        """Send a command as soon as Redis is available again. It must be harmless if late."""
        self._deferred.append(command)

    def _send_deferred(self) -> None:
        while self._deferred:
            self.send(*self._deferred.popleft())

    async def _send_all(self) -> None:
        try:
            while self._queued:
                batch = self._queued[:MAX_PIPELINE_SIZE]
                del self._queued[:MAX_PIPELINE_SIZE]
                # Commands that were queued while the last batch timed out must not time out too.
                if self.is_unavailable:
                    error = RedisUnavailableError("Redis is unavailable")
                    _resolve_batch(batch, [error] * len(batch))
                else:
                    await self._send_batch(batch)
        finally:
            self._sender = None

    async def _send_batch(self, batch: _PendingCommands) -> None:
        try:
            replies = await self._with_timeout(self._execute_batch(batch))
        except Exception as error:  # after any error, every caller must get a reply
            replies = [error] * len(batch)
        for failure in (reply for reply in replies if isinstance(reply, Exception)):
            self._breaker.trip(failure)
        _resolve_batch(batch, replies)

    async def _execute_batch(self, batch: _PendingCommands) -> list[Reply]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for command, _ in batch:
                pipeline.execute_command(*command)
            return await pipeline.execute(raise_on_error=False)

    async def _with_timeout(self, operation: Coroutine[None, None, Result]) -> Result:
        """Return the reply of Redis. Raises: TimeoutError, RedisError.

        Under load the event loop may be too busy to read a reply that arrived in time. The extra
        rounds prevent a timeout that Redis did not cause.
        """
        task = asyncio.create_task(operation)
        # The task is never cancelled, since the client would lose connections. Its socket timeout
        # ends it soon after.
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        task.add_done_callback(ignore_unretrieved)
        await asyncio.wait({task}, timeout=COMMAND_TIMEOUT_S)
        for _ in range(EXTRA_READ_ROUNDS):
            if task.done():
                return task.result()
            await asyncio.sleep(0)
        raise TimeoutError(f"no reply within {COMMAND_TIMEOUT_S:g} s")

    async def check(self) -> bool:
        """Return whether Redis accepts writes, and open the circuit if it does not."""
        writable = await self.is_writable()
        if not writable:
            self._breaker.trip(RedisUnavailableError("no reply to a probe"))
        return writable

    async def is_writable(self) -> bool:
        """Return whether Redis accepts a write. A replica or a full server only replies to PING.

        The probe is repeated after a connection error, since an idle connection may be stale.
        """
        for _ in range(2):
            try:
                await self._with_timeout(check_writable(self.client))
            except RedisConnectionError:
                continue
            except Exception:
                return False
            return True
        return False

    async def close(self) -> None:
        """Send all queued commands, then reject new ones and close the client."""
        while self._sender is not None:  # a reply may cause its caller to send more
            await self._sender
        self._closed = True
        await self._breaker.stop()
        if self._in_flight:
            await asyncio.wait(self._in_flight)
        await close_client(self.client)


def _resolve_batch(batch: _PendingCommands, replies: Sequence[Reply]) -> None:
    for (_, waiting), reply in zip(batch, replies, strict=True):
        if waiting.done():
            continue  # the caller was cancelled
        if isinstance(reply, RedisUnavailableError):
            waiting.set_exception(reply)
        elif isinstance(reply, Exception):
            waiting.set_exception(RedisUnavailableError(str(reply), sent=True))
        else:
            waiting.set_result(reply)
