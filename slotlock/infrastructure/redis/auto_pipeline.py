"""Sends the commands of concurrent callers to Redis together, in one pipeline."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from redis.asyncio import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from slotlock.infrastructure.redis.circuit_breaker import (
    FAST_SHARE,
    CircuitBreaker,
    RedisState,
)
from slotlock.infrastructure.redis.client import (
    COMMAND_TIMEOUT_S,
    RedisClient,
    check_writable,
    close_client,
    drop_connections,
)
from slotlock.infrastructure.redis.keys import DEFAULT_BUDGET_MS
from slotlock.infrastructure.tasks import ignore_unretrieved
from slotlock.infrastructure.telemetry import tracing

MAX_PIPELINE_SIZE = 256
# Continuing without Redis is better than waiting longer for a command than COMMAND_TIMEOUT_S, or
# than so many budgets.
TIMEOUT_BUDGETS = 15
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

    def __init__(self, client: RedisClient, budget_ms: int = DEFAULT_BUDGET_MS) -> None:
        """Open nothing yet. A round trip that takes longer than `budget_ms` is slow."""
        self.client = client
        # Whether the keys lie on several nodes, so that a script may not use any two of them. The
        # abstract base classes of the client make each test of its type slow.
        self.is_cluster = isinstance(client, RedisCluster)
        self._budget_s = budget_ms / 1000
        self._queued: _PendingCommands = []
        self._sending: _PendingCommands = []
        self._sender: asyncio.Task[None] | None = None
        self._deferred: deque[Command] = deque(maxlen=MAX_DEFERRED_COMMANDS)
        self._in_flight: set[asyncio.Task[object]] = set()
        self._closed = False
        self._open_listeners: list[Callable[[], None]] = []
        self._breaker = CircuitBreaker(self.probe, self._on_open, self._send_deferred)

    @property
    def _timeout_s(self) -> float:
        return min(COMMAND_TIMEOUT_S, TIMEOUT_BUDGETS * self._budget_s)

    @property
    def is_unavailable(self) -> bool:
        """Whether Redis failed or was slow, and is not used until probes are fast again."""
        return self._breaker.is_open

    @property
    def state(self) -> RedisState:
        """The state of Redis, as the last commands or probes showed it."""
        return self._breaker.state

    def add_open_listener(self, listener: Callable[[], None]) -> None:
        """Call this function whenever Redis becomes unavailable or slow."""
        self._open_listeners.append(listener)

    def send(self, *command: CommandPart) -> asyncio.Future[Reply]:
        """Queue one command and return its reply, to be awaited or not.

        Raises: RedisUnavailableError.
        """
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(ignore_unretrieved)
        if self.is_unavailable or self._closed:
            reply.set_exception(RedisUnavailableError(f"Redis is {self.state}"))
            return reply
        if tracing.is_on:
            tracing.trace_redis_command(command[0], reply)
        self._queued.append((command, reply))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())
        return reply

    def run_script(
        self, script: str, keys: Sequence[str], *arguments: CommandPart
    ) -> asyncio.Future[Reply]:
        """Queue a script on these keys, as `send` does a command."""
        return self.send("EVAL", script, len(keys), *keys, *arguments)

    def send_after_recovery(self, *command: CommandPart) -> None:
        """Send a command as soon as Redis is available again. It must be harmless if late."""
        self._deferred.append(command)

    def _send_deferred(self) -> None:
        while self._deferred:
            self.send(*self._deferred.popleft())

    def _on_open(self) -> None:
        """Reject all commands that callers wait for. Those in flight may be executed later."""
        reason = f"Redis is {self.state}"
        sending, queued, self._sending, self._queued = self._sending, self._queued, [], []
        _resolve_batch(sending, [RedisUnavailableError(reason, sent=True)] * len(sending))
        _resolve_batch(queued, [RedisUnavailableError(reason)] * len(queued))
        for listener in self._open_listeners:
            listener()

    async def _send_all(self) -> None:
        try:
            while self._queued:
                self._sending = self._queued[:MAX_PIPELINE_SIZE]
                del self._queued[:MAX_PIPELINE_SIZE]
                await self._send_batch(self._sending)
        finally:
            self._sender = None

    async def _send_batch(self, batch: _PendingCommands) -> None:
        task = self._start(self._execute_batch(batch))
        is_slow = not await _is_done_within(task, self._budget_s)
        if self._sending is batch:
            self._breaker.record(is_slow=is_slow)
        if is_slow and self._sending is batch:
            await _is_done_within(task, self._timeout_s - self._budget_s)
        if self._sending is not batch:  # the circuit opened meanwhile and rejected it
            return
        try:
            replies = _result(task)
        except Exception as error:  # after any error, every caller must get a reply
            replies = [error] * len(batch)
        self._sending = []
        _resolve_batch(batch, replies)
        for failure in (reply for reply in replies if isinstance(reply, Exception)):
            self._fail(failure)

    def _fail(self, error: Exception) -> None:
        if not self.is_unavailable:
            self._breaker.trip(error)
            # After a crash of the server, each idle connection would fail once more.
            self._start(drop_connections(self.client))

    async def _execute_batch(self, batch: _PendingCommands) -> list[Reply]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for command, _ in batch:
                pipeline.execute_command(*command)
            return await pipeline.execute(raise_on_error=False)

    def _start(self, operation: Coroutine[None, None, Result]) -> "asyncio.Task[Result]":
        task = asyncio.create_task(operation)
        # The task is never cancelled, since the client would lose connections. Its socket timeout
        # ends it soon after.
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        task.add_done_callback(ignore_unretrieved)
        return task

    async def check(self) -> bool:
        """Return whether Redis accepts writes, and open the circuit if it does not.

        While the circuit is open, the answer is no without a further probe.
        """
        if self.is_unavailable:
            return False
        writable = await self.is_writable()
        if not writable:
            self._fail(RedisUnavailableError("no reply to a probe"))
        return writable

    async def is_writable(self) -> bool:
        """Return whether Redis accepts a write, however slowly."""
        return await self._probe_writable() is not RedisState.UNAVAILABLE

    async def probe(self) -> RedisState:
        """Return whether Redis accepts a write well within the budget, slowly or not at all.

        A Redis that is only slow gets the deferred releases now, since other processes may use it.
        """
        # An abandoned command must not overtake the release that undoes it.
        if self._in_flight:
            await asyncio.wait(self._in_flight)
        state = await self._probe_writable()
        if state is RedisState.SLOW and self._deferred:
            batch: _PendingCommands = []
            while self._deferred and len(batch) < MAX_PIPELINE_SIZE:
                batch.append((self._deferred.popleft(), asyncio.Future()))
            try:
                await self._start(self._execute_batch(batch))
            except Exception:
                self._deferred.extend(command for command, _ in batch)
        return state

    async def _probe_writable(self) -> RedisState:
        """Write a key. A replica or a full server only replies to PING.

        The probe is repeated after a connection error, since an idle connection may be stale.
        """
        for _ in range(2):
            task = self._start(check_writable(self.client))
            is_fast = await _is_done_within(task, self._budget_s * FAST_SHARE)
            if not is_fast:
                await _is_done_within(task, COMMAND_TIMEOUT_S - self._budget_s * FAST_SHARE)
            try:
                _result(task)
            except RedisConnectionError:
                continue
            except Exception:
                return RedisState.UNAVAILABLE
            return RedisState.UP if is_fast else RedisState.SLOW
        return RedisState.UNAVAILABLE

    async def close(self) -> None:
        """Send all queued commands, then reject new ones and close the client."""
        while self._sender is not None:  # a reply may cause its caller to send more
            await self._sender
        self._closed = True
        await self._breaker.stop()
        if self._in_flight:
            await asyncio.wait(self._in_flight)
        await close_client(self.client)


async def _is_done_within(task: "asyncio.Task[Result]", timeout_s: float) -> bool:
    """Return whether the task has ended, after at most this many seconds.

    Under load the event loop may be too busy to send a command soon, or to read a reply that
    arrived in time. The rounds before and after prevent a timeout that Redis did not cause.
    """
    await asyncio.sleep(0)  # a new task sends its commands
    await asyncio.wait({task}, timeout=max(timeout_s, 0))
    for _ in range(EXTRA_READ_ROUNDS):
        if task.done():
            return True
        await asyncio.sleep(0)
    return task.done()


def _result(task: "asyncio.Task[Result]") -> Result:
    """Return the result. Raises: TimeoutError if there is none yet, RedisError."""
    if not task.done():
        raise TimeoutError("no reply in time")
    return task.result()


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
