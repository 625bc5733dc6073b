"""Two faults at once: each alone is harmless, or has its own way out."""

import asyncio
import random
from collections.abc import Awaitable

from bench.faults.injection import mongo_faults, process_faults, redis_faults
from bench.faults.injection.steps import Fault
from bench.faults.topology.deployment import Deployment


async def _both(*faults: Awaitable[str]) -> str:
    """Run faults at the same time until all are over; raises the error of the first that failed."""
    results = await asyncio.gather(*faults, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return " and ".join(map(str, results))


async def kill_redis_and_primary(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Kill a node of Redis and the primary of MongoDB."""
    return await _both(
        redis_faults.kill(deployment, rng, seconds),
        mongo_faults.kill_primary(deployment, rng, seconds),
    )


async def slow_redis_and_step_down(
    deployment: Deployment, rng: random.Random, seconds: float
) -> str:
    """Let the primary step down while Redis is slow."""
    return await _both(
        redis_faults.slow_down(deployment, rng, seconds),
        mongo_faults.step_down(deployment, rng, seconds),
    )


async def skew_clock_and_kill_primary(
    deployment: Deployment, rng: random.Random, seconds: float
) -> str:
    """Kill the primary, whose time counts, while the clock of a process is wrong."""
    return await _both(
        process_faults.skew_strongly(deployment, rng, seconds),
        mongo_faults.kill_primary(deployment, rng, seconds),
    )


FAULTS: dict[str, Fault] = {
    "pair: Redis and primary killed": kill_redis_and_primary,
    "pair: Redis slow, primary steps down": slow_redis_and_step_down,
    "pair: clock skewed, primary killed": skew_clock_and_kill_primary,
}
