"""What concurrent callers ask of a store travels together, as one command."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Generic, TypeVar

from slotlock.stores.mongo import is_away

Item = TypeVar("Item")
Result = TypeVar("Result")

LARGEST_BATCH = 500


def in_parts(items: Sequence[Item], largest: int = LARGEST_BATCH) -> Iterator[Sequence[Item]]:
    """The items in their order, at most so many at once."""
    return (items[start : start + largest] for start in range(0, len(items), largest))


class Batches(Generic[Item, Result]):
    """Runs items in batches, one batch at a time, and gives each caller the result of their item.

    `run` answers for each item in its order, with a result or with an exception that is raised to
    this item's caller alone. An exception that `run` raises goes to all callers of the batch.
    A caller who leaves takes nothing back: an item in line is run.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]],
        largest: int = LARGEST_BATCH,
    ) -> None:
        self._run = run
        self._largest = largest
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._running: asyncio.Task[None] | None = None

    async def do(self, item: Item) -> Result:
        """The item's result, from a run that begins after this call."""
        return await self.begin(item)

    def begin(self, item: Item) -> asyncio.Future[Result]:
        """The same, in line already, whether or not its answer is awaited."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run_all())
        return answer

    async def _run_all(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[: self._largest]
                del self._waiting[: self._largest]
                await self._run_batch(batch)
        finally:
            self._running = None

    async def _run_batch(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        results: Sequence[Result | Exception]
        try:
            results = await self._run([item for item, _ in batch])
        except Exception as error:
            if is_away(error):  # who waited meanwhile need not wait for the same again
                batch += self._waiting
                self._waiting.clear()
            results = [error] * len(batch)
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue  # its caller left
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
