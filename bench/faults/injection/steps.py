"""What faults consist of: each step disturbs, waits and repairs, also if it is cancelled."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence

from bench.faults.topology.apps import FaultApp
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.links import LinkState
from bench.faults.topology.servers import KillableServer

# It lasts for the given seconds, repairs what it broke, and returns what it chose.
Fault = Callable[[Deployment, random.Random, float], Awaitable[str]]


async def freeze(processes: Sequence[KillableServer | FaultApp], seconds: float) -> None:
    """Stop these processes for some time; their connections stay open."""
    for process in processes:
        process.pause()
    try:
        await asyncio.sleep(seconds)
    finally:
        for process in processes:
            process.resume()


async def separate(
    deployment: Deployment,
    ones: Iterable[str],
    others: Iterable[str],
    state: LinkState,
    seconds: float,
) -> None:
    """Disturb the links between each of these and each of those for some time."""
    await deployment.links.separate(ones, others, state)
    await asyncio.sleep(seconds)
    await deployment.links.heal()
