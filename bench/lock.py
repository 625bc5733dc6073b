"""How long a crowd in line takes beside the ideal: `python -m bench.lock` (make bench-lock).

Fifty people who wait for one lock, through two offices, do 20 ms of work each under it. The ideal
is the same work done one after the other without any lock, measured in the same round.
Also, how long ten waiters of a killed process hold up the one behind them.
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
from tests.support.stores.lock_nodes import (
    acquire_lease,
    eventually,
    open_lock_node,
    start_waiter,
    waiter_count,
    waiting_process,
)

WAITERS = 50
WORK_S = 0.02
ROUNDS = 5
DEAD_WAITERS = 10


async def ratios(fleet: RedisTopology) -> list[float]:
    """The time that a crowd takes, as a multiple of the ideal, each round."""
    async with open_lock_node(fleet.url) as one, open_lock_node(fleet.url) as other:
        return [await _round((one, other)) for _ in range(ROUNDS)]


async def _round(nodes: tuple[Locks, Locks]) -> float:
    began = time.perf_counter()
    for _ in range(WAITERS):
        await asyncio.sleep(WORK_S)
    ideal, began, slot_id = time.perf_counter() - began, time.perf_counter(), new_slot_id()
    await asyncio.gather(*(_work(nodes[n % 2], slot_id) for n in range(WAITERS)))
    return (time.perf_counter() - began) / ideal


async def measure_stall(fleet: RedisTopology) -> float:
    """The seconds that one waits behind the waiters of a killed process."""
    slot_id = new_slot_id()
    async with open_lock_node(fleet.url) as one, open_lock_node(fleet.url) as other:
        lease = await acquire_lease(one, slot_id)
        with waiting_process(fleet.url, slot_id, DEAD_WAITERS) as doomed:

            async def all_are_queued() -> bool:
                return await waiter_count(one, slot_id) == DEAD_WAITERS

            await eventually(all_are_queued, "all of them in line")
            behind = await start_waiter(other, slot_id)
            doomed.kill()
            doomed.wait()
        began = time.perf_counter()
        await one.release(lease)
        await behind
        return time.perf_counter() - began


async def _work(node: Locks, slot_id: SlotId) -> None:
    lease = await acquire_lease(node, slot_id, wait_s=60)
    await asyncio.sleep(WORK_S)
    await node.release(lease)


def main() -> int:
    """Print the table."""
    print(
        f"{WAITERS} people with {WORK_S * 1000:.0f} ms of work each, {ROUNDS} rounds; "
        f"{machine_summary()}"
    )
    for name, shape in TOPOLOGIES.items():
        with tempfile.TemporaryDirectory() as folder, shape(Path(folder)) as fleet:
            told = sorted(asyncio.run(ratios(fleet)))
            stalled = asyncio.run(measure_stall(fleet))
        print(
            f"{name:12} {median(told):.3f} of the ideal ({told[0]:.3f} to {told[-1]:.3f});"
            f" {DEAD_WAITERS} waiters of a killed process: {stalled:.2f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
