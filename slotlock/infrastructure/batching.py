"""Batches the requests of concurrent callers, so that a server receives one command."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import Context
from itertools import islice
from typing import Generic, TypeVar

from slotlock.infrastructure.telemetry import tracing

Item = TypeVar("Item")
Result = TypeVar("Result")

DEFAULT_BATCH_SIZE = 500
# After a batch, the next one waits while the event loop has other work, at most so long after the
# last start. Under load that makes fewer and larger batches; on an idle loop, nobody waits.
MAX_INTERVAL_S = 0.03
# An iteration of the event loop that takes longer than this had other work.
IDLE_ITERATION_S = 0.0001


def chunked(items: Sequence[Item], max_size: int = DEFAULT_BATCH_SIZE) -> Iterator[Sequence[Item]]:
    """Yield the items in their order, at most `max_size` at once."""
    return (items[start : start + max_size] for start in range(0, len(items), max_size))


def _never(_: Exception) -> bool:
    return False


class Batcher(Generic[Item, Result]):
    """Runs items in batches, one batch at a time, and gives each caller the result of its item.

    `run` returns one result or exception for each item, in order; an exception is raised to the
    caller of that item only. An exception that `run` raises is raised to all callers of the batch.
    If `is_outage` is true of it, all callers that are queued get it too, instead of waiting for
    the same failure. A batch runs even if a caller is cancelled. After it, the next batch waits for
    more callers while the event loop is busy, at most a few milliseconds.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]],
        max_batch_size: int = DEFAULT_BATCH_SIZE,
        *,
        is_outage: Callable[[Exception], bool] = _never,
    ) -> None:
        self._run = run
        self._max_batch_size = max_batch_size
        self._is_outage = is_outage
        self._queued: list[tuple[Item, asyncio.Future[Result]]] = []
        # The spans of the queued callers, while traces are on.
        self._origins: list[tracing.Origin] = []
        self._running: asyncio.Task[None] | None = None
        # From the first item on: each search for the running loop takes a system call.
        self._loop: asyncio.AbstractEventLoop | None = None
        # The time of the event loop until which the next batch may wait for more callers.
        self._latest_start = 0.0

    async def submit(self, item: Item) -> Result:
        """Return the item's result, from a batch that starts after this call."""
        return await self.submit_nowait(item)

    def submit_nowait(self, item: Item) -> asyncio.Future[Result]:
        """Queue the item at once, and return the future of its result."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._queued.append((item, future))
        if tracing.is_on:
            self._origins.append(tracing.origin())
        if self._running is None:
            # In a context of its own: the batch must not inherit the deadline of its first caller.
            self._running = loop.create_task(self._run_all(loop), context=Context())
        return future

    async def _run_all(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while self._queued:
                await self._wait_while_busy(loop)
                batch = self._queued[: self._max_batch_size]
                del self._queued[: self._max_batch_size]
                self._latest_start = loop.time() + MAX_INTERVAL_S
                await self._run_batch(batch)
        finally:
            self._running = None

    async def _wait_while_busy(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for more callers, until the event loop has nothing else to do."""
        now = loop.time()
        while now < self._latest_start and len(self._queued) < self._max_batch_size:
            await asyncio.sleep(0)
            before, now = now, loop.time()
            if now - before < IDLE_ITERATION_S:
                return

    async def _run_batch(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        results: Sequence[Result | Exception]
        try:
            origins, self._origins = self._origins, []
            with tracing.shared_span("slotlock.batch", origins):
                results = await self._run([item for item, _ in batch])
        except Exception as error:
            if self._is_outage(error):
                batch += self._queued
                self._queued.clear()
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue  # its caller was cancelled
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class GroupBatcher(Generic[Item, Result]):
    """Runs groups of items in shared batches, as Batcher does, but with one future for each group.

    A large group costs a fraction of what its items would cost each by itself.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]],
        *,
        is_outage: Callable[[Exception], bool] = _never,
    ) -> None:
        self._run = run
        self._batcher: Batcher[Sequence[Item], list[Result]] = Batcher(
            self._run_groups, is_outage=is_outage
        )

    async def submit(self, group: Sequence[Item]) -> list[Result]:
        """Return the results of the items, in order; raise the first exception among them."""
        return await self._batcher.submit(group) if group else []

    async def _run_groups(self, groups: list[Sequence[Item]]) -> list[list[Result] | Exception]:
        items = [item for group in groups for item in group]
        results: list[Result | Exception] = []
        for chunk in chunked(items):
            results += await self._run(list(chunk))
        remaining = iter(results)
        return [_all_or_error(list(islice(remaining, len(group)))) for group in groups]


def _all_or_error(results: Sequence[Result | Exception]) -> list[Result] | Exception:
    successes: list[Result] = []
    for result in results:
        if isinstance(result, Exception):
            return result
        successes.append(result)
    return successes
