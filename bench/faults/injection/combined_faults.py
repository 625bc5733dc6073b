"""Several faults at once: two that are harmless alone, or one while the queue is full."""

import asyncio
import random
from collections.abc import Awaitable
from functools import partial

from bench.faults.injection import mongo_faults, process_faults, redis_faults
from bench.faults.injection.steps import Fault
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.redis_servers import RedisNode
from slotlock.infrastructure.redis.keys import PARTITIONS, admission_lock, lock_keys

LEASE_MS_RANGE = (800, 2_500)
# A token and a fencing number, as locks have them; the server has issued higher numbers.
DEAD_LEASE = "the-lease-of-a-dead-process:1"


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


async def disturb_full_queue(
    fault: Fault, deployment: Deployment, rng: random.Random, seconds: float
) -> str:
    """Inject a fault while the queue is full or being served.

    The workers' leases belong to a dead process for some time. Clients fill the queue meanwhile, as
    at the begin of each fault. Often, the fault comes when a worker serves the whole queue at once.
    """
    lease_ms = rng.randint(*LEASE_MS_RANGE)
    await asyncio.to_thread(_take_over_leases, deployment.redis.nodes, lease_ms)
    lease_s = lease_ms / 1000
    await asyncio.sleep(rng.choice((rng.uniform(0.3, lease_s), lease_s + rng.uniform(0, 0.15))))
    return await fault(deployment, rng, seconds)


def _take_over_leases(nodes: list[RedisNode], lease_ms: int) -> None:
    for number in range(PARTITIONS):
        for node in nodes:  # those of a Cluster reject the keys of others
            node.execute("SET", lock_keys(admission_lock(number)).lock, DEAD_LEASE, "PX", lease_ms)


FAULTS: dict[str, Fault] = {
    "pair: Redis and primary killed": kill_redis_and_primary,
    "pair: Redis slow, primary steps down": slow_redis_and_step_down,
    "pair: clock skewed, primary killed": skew_clock_and_kill_primary,
    "full queue: Redis loses all keys": partial(disturb_full_queue, redis_faults.flush),
    "full queue: Redis killed": partial(disturb_full_queue, redis_faults.kill),
    "full queue: worker killed": partial(disturb_full_queue, process_faults.kill_worker),
    "full queue: app killed": partial(disturb_full_queue, process_faults.kill_app),
}
