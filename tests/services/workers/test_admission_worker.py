"""A worker reads the queue only with a lease of Redis, and finishes what it has begun."""

import asyncio

import pytest

from slotlock.infrastructure.redis.admission.partitions import QueuePartition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import admission_lock
from slotlock.services.container import Services
from slotlock.services.workers import admission_worker
from tests.support.stores.group_bookings import services
from tests.support.stores.lock_nodes import acquire_lease, open_lock_node

__all__ = ["services"]


async def test_a_worker_whose_lease_only_its_process_knows_reads_nothing_from_a_redis_that_is_back(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission_worker, "IDLE_LEASE_DURATION_S", (0.0, 0.0))
    partition = QueuePartition(services.admission_queue.pipeline, 0)
    # Nobody listens at this port.
    async with open_lock_node("redis://127.0.0.1:1", subscribe=False) as locks:
        lease = await acquire_lease(locks, admission_lock(0))
        with pytest.raises(RedisUnavailableError):
            await admission_worker._process_until_released(services, locks, partition, lease)
        assert await locks.acquire(admission_lock(0)) is not None


async def test_a_worker_that_is_cancelled_finishes_the_work_that_it_has_begun() -> None:
    begun, resumed, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await resumed.wait()
        finished.set()

    worker = asyncio.create_task(admission_worker._finish_despite_cancel(work()))
    await begun.wait()
    worker.cancel()
    await asyncio.sleep(0)  # the cancellation arrives
    resumed.set()
    await asyncio.wait([worker])
    assert worker.cancelled()
    assert finished.is_set()
