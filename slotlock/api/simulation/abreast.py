"""Many things done at once, but not all at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

DEFAULT_CONCURRENCY = 16


async def gather_limited(
    call: Callable[[Item], Awaitable[Result]],
    items: Iterable[Item],
    concurrency: int = DEFAULT_CONCURRENCY,
) -> list[Result]:
    """The result for each item, in order, `width` of them at work at a time.

    The first error ends them all.
    """
    results: dict[int, Result] = {}
    numbered = enumerate(items)

    async def work() -> None:
        for number, item in numbered:
            results[number] = await call(item)

    workers = [asyncio.create_task(work()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[number] for number in sorted(results)]
