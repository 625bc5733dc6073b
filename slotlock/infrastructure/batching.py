"""What concurrent callers ask of a store travels together, as one command."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Generic, TypeVar

from slotlock.infrastructure.mongo.client import is_unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH_SIZE = 500


def chunked(items: Sequence[Item], max_size: int = MAX_BATCH_SIZE) -> Iterator[Sequence[Item]]:
    """The items in their order, at most so many at once."""
    return (items[start : start + max_size] for start in range(0, len(items), max_size))


class Batcher(Generic[Item, Result]):
    """Runs items in batches, one batch at a time, and gives each caller the result of their item.

    `run` answers for each item in its order, with a result or with an exception that is raised to
    this item's caller alone. An exception that `run` raises goes to all callers of the batch.
    A caller who leaves takes nothing back: an item in line is run.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]],
        max_batch_size: int = MAX_BATCH_SIZE,
    ) -> None:
        self._run = run
        self._max_batch_size = max_batch_size
        self._queued: list[tuple[Item, asyncio.Future[Result]]] = []
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """The item's result, from a run that begins after this call."""
        return await self.submit_nowait(item)

    def submit_nowait(self, item: Item) -> asyncio.Future[Result]:
        """The same, in line already, whether or not its answer is awaited."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queued.append((item, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run_all())
        return answer

    async def _run_all(self) -> None:
        try:
            while self._queued:
                batch = self._queued[: self._max_batch_size]
                del self._queued[: self._max_batch_size]
                await self._run_batch(batch)
        finally:
            self._running = None

    async def _run_batch(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        results: Sequence[Result | Exception]
        try:
            results = await self._run([item for item, _ in batch])
        except Exception as error:
            if is_unavailable(error):  # who waited meanwhile need not wait for the same again
                batch += self._queued
                self._queued.clear()
            results = [error] * len(batch)
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue  # its caller left
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
