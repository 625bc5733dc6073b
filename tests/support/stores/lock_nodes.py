"""Lock nodes: `Locks` objects of one Redis, their waiters, and a process that is killed."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.locks import LOCK_TTL_MS, Locks
from tests.support.polling import poll_until

LockNodes = tuple[Locks, Locks]
# Longer than a busy machine holds Redis up, and than the timeouts of the app.
PATIENT_BUDGET_MS = 20_000
PATIENT_OPTIONS = "?socket_timeout=20&socket_connect_timeout=20"
ON_ONE_SERVER = pytest.mark.parametrize("redis_topology", ["one server"], indirect=True)


@asynccontextmanager
async def open_lock_node(
    url: str,
    ttl_ms: int = LOCK_TTL_MS,
    *,
    subscribe: bool = True,
    budget_ms: int = PATIENT_BUDGET_MS,
) -> AsyncIterator[Locks]:
    """Open a lock node with its own connection. One that does not subscribe is never woken.

    By default, it does not give Redis up before 20 s.
    """
    options = PATIENT_OPTIONS if budget_ms == PATIENT_BUDGET_MS else ""
    pipeline = AutoPipeline(redis_client(url + options), budget_ms)
    locks = Locks(pipeline, ttl_ms)
    try:
        if subscribe:
            await locks.start(timeout_s=20)
        yield locks
    finally:
        await locks.stop()
        await pipeline.close()


async def waiter_count(locks: Locks, slot_id: str) -> int:
    """Return how many waiters are queued in Redis."""
    return int(await locks.pipeline.send("ZCARD", lock_keys(slot_id).queue))


async def wait_for_waiters(locks: Locks, slot_id: str, count: int) -> None:
    """Wait until so many waiters are queued in Redis."""
    await poll_until(lambda: waiter_count(locks, slot_id), lambda n: n == count, f"{count} waiters")


async def wait_until_free(locks: Locks, slot_id: str) -> None:
    """Wait until the lock has no holder."""
    await poll_until(lambda: stored_lock(locks, slot_id), lambda lock: lock is None, "a free lock")


async def stored_lock(locks: Locks, slot_id: str) -> bytes | None:
    """Return the value of the lock's key."""
    lock: bytes | None = await locks.pipeline.send("GET", lock_keys(slot_id).lock)
    return lock


async def start_waiter(
    locks: Locks, slot_id: str, wait_s: float = 20.0
) -> asyncio.Task[LockLease | None]:
    """Start to wait for a lock, and return once the waiter is queued in Redis.

    One that waits shortly may have left before its place in the queue is seen.
    """
    before = await waiter_count(locks, slot_id)
    waiter = asyncio.create_task(locks.acquire(slot_id, wait_s=wait_s))
    await poll_until(
        lambda: waiter_count(locks, slot_id),
        lambda n: n > before or waiter.done(),
        "a queued waiter",
    )
    return waiter


async def acquire_lease(locks: Locks, *slot_ids: str, wait_s: float = 0.0) -> LockLease:
    """Acquire a lease, which must succeed."""
    lease = await locks.acquire(*slot_ids, wait_s=wait_s)
    assert lease is not None
    return lease


async def release_lease(locks: Locks, lease: LockLease) -> None:
    """Release a lease and wait until Redis has replied."""
    await locks.release(lease)
    await locks.wait_for_releases()


@contextmanager
def waiting_process(
    url: str, slot_id: str, waiter_count_wanted: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with this many queued waiters, to be killed."""
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
