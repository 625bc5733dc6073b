"""Measures the lock queue: `python -m bench.lock` (make bench-lock).

Fifty waiters in two processes acquire one lock and hold it for 20 ms each.
The ideal is the same work, one after the other, without a lock, measured in the same round.
The benchmark also measures how long ten waiters of a killed process delay the next waiter.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.machine import machine_summary
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import TOPOLOGIES, RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    acquire_lease,
    open_lock_node,
    start_waiter,
    waiter_count,
    waiting_process,
)

WAITERS = 50
WORK_S = 0.02
ROUNDS = 5
DEAD_WAITERS = 10


async def measure_ratios(topology: RedisTopology) -> list[float]:
    """Return the duration of each round as a multiple of the ideal."""
    async with open_lock_node(topology.url) as one, open_lock_node(topology.url) as other:
        return [await _round((one, other)) for _ in range(ROUNDS)]


async def _round(nodes: tuple[Locks, Locks]) -> float:
    started_at = time.perf_counter()
    for _ in range(WAITERS):
        await asyncio.sleep(WORK_S)
    ideal_s = time.perf_counter() - started_at
    started_at, slot_id = time.perf_counter(), new_slot_id()
    await asyncio.gather(*(_work(nodes[n % 2], slot_id) for n in range(WAITERS)))
    return (time.perf_counter() - started_at) / ideal_s


async def measure_stall(topology: RedisTopology) -> float:
    """Return the seconds that a waiter loses to the waiters of a killed process before it."""
    slot_id = new_slot_id()
    async with open_lock_node(topology.url) as one, open_lock_node(topology.url) as other:
        lease = await acquire_lease(one, slot_id)
        with waiting_process(topology.url, slot_id, DEAD_WAITERS) as process:

            async def all_are_queued() -> bool:
                return await waiter_count(one, slot_id) == DEAD_WAITERS

            await eventually(all_are_queued, "all waiters are queued")
            next_waiter = await start_waiter(other, slot_id)
            process.kill()
            process.wait()
        started_at = time.perf_counter()
        await one.release(lease)
        await next_waiter
        return time.perf_counter() - started_at


async def _work(node: Locks, slot_id: SlotId) -> None:
    lease = await acquire_lease(node, slot_id, wait_s=60)
    await asyncio.sleep(WORK_S)
    await node.release(lease)


def main() -> int:
    """Print the table."""
    print(
        f"{WAITERS} waiters with {WORK_S * 1000:.0f} ms of work each, {ROUNDS} rounds; "
        f"{machine_summary()}"
    )
    for name, open_topology in TOPOLOGIES.items():
        with tempfile.TemporaryDirectory() as folder, open_topology(Path(folder)) as topology:
            ratios = sorted(asyncio.run(measure_ratios(topology)))
            stall_s = asyncio.run(measure_stall(topology))
        print(
            f"{name:12} {median(ratios):.3f} of the ideal ({ratios[0]:.3f} to {ratios[-1]:.3f});"
            f" {DEAD_WAITERS} waiters of a killed process: {stall_s:.2f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
