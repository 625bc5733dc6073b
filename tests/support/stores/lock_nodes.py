"""Offices at one Redis: their locks, who stands in line, and one that is killed while it waits."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.leases import Lease
from slotlock.infrastructure.redis.locks.locks import LOCK_TTL_MS, Locks
from tests.support.polling import eventually


@asynccontextmanager
async def open_lock_node(
    url: str, ttl_ms: int = LOCK_TTL_MS, *, subscribe: bool = True
) -> AsyncIterator[Locks]:
    """Locks with a line of their own; one that does not hear is never woken."""
    line = AutoPipeline(redis_client(url))
    locks = Locks(line, ttl_ms)
    try:
        if subscribe:
            await locks.start(timeout_s=20)
        yield locks
    finally:
        await locks.stop()
        await line.close()


async def waiter_count(locks: Locks, slot_id: str) -> int:
    """How many stand in line."""
    return int(await locks.pipeline.send("ZCARD", lock_keys(slot_id).queue))


async def stored_lock(locks: Locks, slot_id: str) -> bytes | None:
    """What the lock's key holds."""
    lock: bytes | None = await locks.pipeline.send("GET", lock_keys(slot_id).lock)
    return lock


async def start_waiter(
    locks: Locks, slot_id: str, wait_s: float = 20.0
) -> asyncio.Task[Lease | None]:
    """One who waits, and has a place in line by now."""
    before = await waiter_count(locks, slot_id)
    waiter = asyncio.create_task(locks.acquire(slot_id, wait_s=wait_s))

    async def has_joined_queue() -> bool:
        return await waiter_count(locks, slot_id) > before

    await eventually(has_joined_queue, "a place in line")
    return waiter


async def acquire_lease(locks: Locks, *slot_ids: str, wait_s: float = 0.0) -> Lease:
    """A lease that is to be had."""
    lease = await locks.acquire(*slot_ids, wait_s=wait_s)
    assert lease is not None
    return lease


@contextmanager
def waiting_process(
    url: str, slot_id: str, waiter_count_wanted: int
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with so many waiters in line, to be killed."""
    command = [
        sys.executable,
        "-m",
        "tests.support.stores.lock_nodes",
        url,
        slot_id,
        str(waiter_count_wanted),
    ]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def _wait_until_killed(url: str, slot_id: str, waiter_count_wanted: int) -> None:
    async with open_lock_node(url) as locks:
        await asyncio.gather(
            *(locks.acquire(slot_id, wait_s=60) for _ in range(waiter_count_wanted))
        )


if __name__ == "__main__":
    asyncio.run(_wait_until_killed(sys.argv[1], sys.argv[2], int(sys.argv[3])))
