"""The line to Redis: concurrent requests leave together, and a Redis that is away costs no time."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from prometheus_client import Gauge
from redis.exceptions import ConnectionError as RedisConnectionError

from slotlock.stores.redis_clients import (
    Client,
    close_client,
    forget_connections,
    redis_client,
    write_everywhere,
)

__all__ = ["RedisAwayError", "RedisLine", "redis_client"]

log = logging.getLogger("slotlock.redis")

DEGRADED = Gauge(
    "slotlock_redis_degraded",
    "1 while Redis is away and bookings go on without its lock",
    multiprocess_mode="livemax",
)

PROBE_EVERY_S = 0.5
LARGEST_PIPELINE = 256
# A command that takes longer than this is worth less than going on without Redis.
COMMAND_TIMEOUT_S = 1.0
# Rounds of the loop in which an answer that is there is read.
LATE_READS = 10
MOST_OWED = 1000

Result = TypeVar("Result")
Command = tuple[Any, ...]
_Sent = list[tuple[Command, asyncio.Future[Any]]]


class RedisAwayError(Exception):
    """Redis did not do it; or, when it was `sent`, may have done it without telling us."""

    def __init__(self, reason: str, *, sent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent


class RedisLine:
    """Sends the commands of concurrent callers as one pipeline, and breaks the circuit on failure.

    On a Cluster that is one pipeline a node, and a node that fails takes the whole line away.

    `send` puts a command in line at once, whether or not its answer is awaited: cancelling the
    caller never takes a command back, so a release that was asked for is a release that is sent.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._waiting: _Sent = []
        self._pump: asyncio.Task[None] | None = None
        self._probe: asyncio.Task[None] | None = None
        self._owed: deque[Command] = deque(maxlen=MOST_OWED)
        self._late: set[asyncio.Task[Any]] = set()
        self._closed = False
        DEGRADED.set(0)

    @property
    def away(self) -> bool:
        """Whether Redis failed lately and has not answered a probe since."""
        return self._probe is not None

    def send(self, *command: Any) -> asyncio.Future[Any]:
        """The answer to one command, to be awaited or not. Errors: RedisAwayError."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_look_at_error)
        if self.away or self._closed:
            answer.set_exception(RedisAwayError("Redis is away"))
            return answer
        self._waiting.append((command, answer))
        if self._pump is None:
            self._pump = asyncio.create_task(self._send_all())
        return answer

    def owe(self, *command: Any) -> None:
        """Send a command as soon as Redis is back: one that does no harm however late it comes."""
        self._owed.append(command)

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[:LARGEST_PIPELINE]
                del self._waiting[:LARGEST_PIPELINE]
                if self.away:  # what came while a command was hanging need not hang as well
                    _tell(batch, [RedisAwayError("Redis is away")] * len(batch))
                else:
                    await self._send_batch(batch)
        finally:
            self._pump = None

    async def _send_batch(self, batch: _Sent) -> None:
        try:
            answers = await self._in_time(self._answers(batch))
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            answers = [error] * len(batch)
        for failed in (answer for answer in answers if isinstance(answer, Exception)):
            self._break(failed)
        _tell(batch, answers)

    async def _answers(self, batch: _Sent) -> list[Any]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for command, _ in batch:
                pipeline.execute_command(*command)
            return await pipeline.execute(raise_on_error=False)

    async def _in_time(self, asked: Coroutine[Any, Any, Result]) -> Result:
        """The answer of Redis. Errors: TimeoutError, RedisError.

        In a rush the loop may be too busy to have read an answer that came long ago: the time that
        it was busy is not held against Redis.
        """
        task = asyncio.create_task(asked)
        # Never cancelled: the client loses connections so. It gives up by itself soon after.
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        task.add_done_callback(_look_at_error)
        await asyncio.wait({task}, timeout=COMMAND_TIMEOUT_S)
        for _ in range(LATE_READS):
            if task.done():
                return task.result()
            await asyncio.sleep(0)
        raise TimeoutError(f"no answer within {COMMAND_TIMEOUT_S:g} s")

    def _break(self, error: Exception) -> None:
        if self._probe is None and not self._closed:
            log.warning(
                "Redis is away (%s); bookings go on without its lock, the queue stands", error
            )
            DEGRADED.set(1)
            self._probe = asyncio.create_task(self._wait_until_back())

    async def _wait_until_back(self) -> None:
        with contextlib.suppress(Exception):
            await forget_connections(self.client)
        while not await self.answers():
            await asyncio.sleep(PROBE_EVERY_S)
        self._probe = None
        DEGRADED.set(0)
        while self._owed:
            self.send(*self._owed.popleft())
        log.warning("Redis is back; its lock is in use again")

    async def check(self) -> bool:
        """Whether Redis takes a write now; from now on it counts as away if it does not."""
        answers = await self.answers()
        if not answers:
            self._break(RedisAwayError("it does not answer"))
        return answers

    async def answers(self) -> bool:
        """Whether Redis takes a write now: a replica or a full server answers PING, but is no use.

        Asked again when the connection was lost, which an idle one does not know.
        """
        for _ in range(2):
            try:
                await self._in_time(write_everywhere(self.client))
            except RedisConnectionError:
                continue
            except Exception:
                return False
            return True
        return False

    async def close(self) -> None:
        """Send what is in line, then take no more."""
        while self._pump is not None:  # an answer may be why somebody sends more
            await self._pump
        self._closed = True
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.wait([self._probe])
        if self._late:
            await asyncio.wait(self._late)
        await close_client(self.client)


def _tell(batch: _Sent, answers: Sequence[Any]) -> None:
    for (_, waiting), answer in zip(batch, answers, strict=True):
        if waiting.done():
            continue  # its caller left
        if isinstance(answer, Exception):
            known = isinstance(answer, RedisAwayError)
            waiting.set_exception(answer if known else RedisAwayError(str(answer), sent=True))
        else:
            waiting.set_result(answer)


def _look_at_error(answer: asyncio.Future[Any]) -> None:
    # An answer nobody awaits (a release after the caller left) must not warn when it fails.
    if not answer.cancelled():
        answer.exception()
