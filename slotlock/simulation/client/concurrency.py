"""The limit of open files, and calls that run a few at a time."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from slotlock.simulation.client.http import MAX_CONNECTIONS
from slotlock.simulation.model.plan import BookingMode, SimulationConfig, SimulationError

# For libraries, pipes and the socket of the availability watcher.
RESERVED_FILES = 100
# Stands for no limit, also on Windows.
UNLIMITED = 10**6
DEFAULT_CONCURRENCY = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def raise_open_file_limit(config: SimulationConfig) -> int:
    """Raise the limit of open files and return how many requests may be in progress at once.

    Raises:
        SimulationError: The system does not allow one socket per user.
    """
    sockets = config.users if config.mode is BookingMode.QUEUE else 0
    wanted = min(MAX_CONNECTIONS, config.users * config.attempts)
    allowed = _raise_limit(wanted + sockets + RESERVED_FILES) - sockets - RESERVED_FILES
    if allowed < 1:
        raise SimulationError(
            f"{sockets:,} sockets exceed the limit of open files: raise `ulimit -n`"
        )
    return min(wanted, allowed)


def _raise_limit(needed: int) -> int:
    if sys.platform == "win32":
        return UNLIMITED
    import resource  # not available on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


async def gather_limited(
    call: Callable[[Item], Awaitable[Result]],
    items: Iterable[Item],
    concurrency: int = DEFAULT_CONCURRENCY,
) -> list[Result]:
    """Call the function for each item, `concurrency` calls at a time; return results in order.

    The first error cancels the other calls and is raised.
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
