"""The line to Redis: concurrent requests leave together, and a Redis that is away costs no time."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from prometheus_client import Gauge
from redis.exceptions import ConnectionError as RedisConnectionError

from slotlock.infrastructure.redis.client import (
    RedisClient,
    check_writable,
    close_client,
    drop_connections,
    redis_client,
)

__all__ = ["AutoPipeline", "RedisUnavailableError", "redis_client"]

log = logging.getLogger("slotlock.redis")

REDIS_DEGRADED = Gauge(
    "slotlock_redis_degraded",
    "1 while Redis is away and bookings go on without its lock",
    multiprocess_mode="livemax",
)

PROBE_INTERVAL_S = 0.5
MAX_PIPELINE_SIZE = 256
# A command that takes longer than this is worth less than going on without Redis.
COMMAND_TIMEOUT_S = 1.0
# Rounds of the loop in which an answer that is there is read.
EXTRA_READ_ROUNDS = 10
MAX_DEFERRED_COMMANDS = 1000

Result = TypeVar("Result")
Command = tuple[Any, ...]
_PendingCommands = list[tuple[Command, asyncio.Future[Any]]]


class RedisUnavailableError(Exception):
    """Redis did not do it; or, when it was `sent`, may have done it without telling us."""

    def __init__(self, reason: str, *, sent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent


class AutoPipeline:
    """Sends the commands of concurrent callers as one pipeline, and breaks the circuit on failure.

    On a Cluster that is one pipeline a node, and a node that fails takes the whole line away.

    `send` puts a command in line at once, whether or not its answer is awaited: cancelling the
    caller never takes a command back, so a release that was asked for is a release that is sent.
    """

    def __init__(self, client: RedisClient) -> None:
        self.client = client
        self._queued: _PendingCommands = []
        self._sender: asyncio.Task[None] | None = None
        self._probe: asyncio.Task[None] | None = None
        self._deferred: deque[Command] = deque(maxlen=MAX_DEFERRED_COMMANDS)
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._closed = False
        REDIS_DEGRADED.set(0)

    @property
    def is_unavailable(self) -> bool:
        """Whether Redis failed lately and has not answered a probe since."""
        return self._probe is not None

    def send(self, *command: Any) -> asyncio.Future[Any]:
        """The answer to one command, to be awaited or not. Errors: RedisAwayError."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_mark_error_retrieved)
        if self.is_unavailable or self._closed:
            answer.set_exception(RedisUnavailableError("Redis is away"))
            return answer
        self._queued.append((command, answer))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())
        return answer

    def send_when_back(self, *command: Any) -> None:
        """Send a command as soon as Redis is back: one that does no harm however late it comes."""
        self._deferred.append(command)

    async def _send_all(self) -> None:
        try:
            while self._queued:
                batch = self._queued[:MAX_PIPELINE_SIZE]
                del self._queued[:MAX_PIPELINE_SIZE]
                if (
                    self.is_unavailable
                ):  # what came while a command was hanging need not hang as well
                    _resolve_batch(batch, [RedisUnavailableError("Redis is away")] * len(batch))
                else:
                    await self._send_batch(batch)
        finally:
            self._sender = None

    async def _send_batch(self, batch: _PendingCommands) -> None:
        try:
            answers = await self._with_timeout(self._execute_batch(batch))
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            answers = [error] * len(batch)
        for failed in (answer for answer in answers if isinstance(answer, Exception)):
            self._trip(failed)
        _resolve_batch(batch, answers)

    async def _execute_batch(self, batch: _PendingCommands) -> list[Any]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for command, _ in batch:
                pipeline.execute_command(*command)
            return await pipeline.execute(raise_on_error=False)

    async def _with_timeout(self, operation: Coroutine[Any, Any, Result]) -> Result:
        """The answer of Redis. Errors: TimeoutError, RedisError.

        In a rush the loop may be too busy to have read an answer that came long ago: the time that
        it was busy is not held against Redis.
        """
        task = asyncio.create_task(operation)
        # Never cancelled: the client loses connections so. It gives up by itself soon after.
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        task.add_done_callback(_mark_error_retrieved)
        await asyncio.wait({task}, timeout=COMMAND_TIMEOUT_S)
        for _ in range(EXTRA_READ_ROUNDS):
            if task.done():
                return task.result()
            await asyncio.sleep(0)
        raise TimeoutError(f"no answer within {COMMAND_TIMEOUT_S:g} s")

    def _trip(self, error: Exception) -> None:
        if self._probe is None and not self._closed:
            log.warning(
                "Redis is away (%s); bookings go on without its lock, the queue stands", error
            )
            REDIS_DEGRADED.set(1)
            self._probe = asyncio.create_task(self._wait_until_available())

    async def _wait_until_available(self) -> None:
        with contextlib.suppress(Exception):
            await drop_connections(self.client)
        while not await self.is_writable():
            await asyncio.sleep(PROBE_INTERVAL_S)
        self._probe = None
        REDIS_DEGRADED.set(0)
        while self._deferred:
            self.send(*self._deferred.popleft())
        log.warning("Redis is back; its lock is in use again")

    async def check(self) -> bool:
        """Whether Redis takes a write now; from now on it counts as away if it does not."""
        answers = await self.is_writable()
        if not answers:
            self._trip(RedisUnavailableError("it does not answer"))
        return answers

    async def is_writable(self) -> bool:
        """Whether Redis takes a write now: a replica or a full server answers PING, but is no use.

        Asked again when the connection was lost, which an idle one does not know.
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
        """Send what is in line, then take no more."""
        while self._sender is not None:  # an answer may be why somebody sends more
            await self._sender
        self._closed = True
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.wait([self._probe])
        if self._in_flight:
            await asyncio.wait(self._in_flight)
        await close_client(self.client)


def _resolve_batch(batch: _PendingCommands, answers: Sequence[Any]) -> None:
    for (_, waiting), answer in zip(batch, answers, strict=True):
        if waiting.done():
            continue  # its caller left
        if isinstance(answer, Exception):
            known = isinstance(answer, RedisUnavailableError)
            waiting.set_exception(
                answer if known else RedisUnavailableError(str(answer), sent=True)
            )
        else:
            waiting.set_result(answer)


def _mark_error_retrieved(answer: asyncio.Future[Any]) -> None:
    # An answer nobody awaits (a release after the caller left) must not warn when it fails.
    if not answer.cancelled():
        answer.exception()
