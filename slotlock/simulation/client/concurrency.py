"""As many connections as the system lets one process have open."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from slotlock.simulation.client.http import MAX_CONNECTIONS
from slotlock.simulation.model.plan import BookingMode, SimulationConfig, SimulationError

# For the program itself: libraries, pipes, the watcher's socket.
RESERVED_FILES = 100
# What there is where no such limit can be asked for.
UNLIMITED = 10**6


def raise_open_file_limit(config: SimulationConfig) -> int:
    """How many requests may be under way at once, with the limit of open files raised for it.

    Errors: SimulationError when not even everybody's socket can be open.
    """
    sockets = config.users if config.mode is BookingMode.QUEUE else 0
    wanted = min(MAX_CONNECTIONS, config.users * config.attempts)
    allowed = _raise_limit(wanted + sockets + RESERVED_FILES) - sockets - RESERVED_FILES
    if allowed < 1:
        raise SimulationError(
            f"{sockets:,} sockets need more open files than are allowed: raise `ulimit -n`"
        )
    return min(wanted, allowed)


def _raise_limit(needed: int) -> int:
    if sys.platform == "win32":
        return UNLIMITED
    import resource  # there is none on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


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
