"""Queue workers, which process the admission queue: all queued requests for a slot as one batch.

One process at a time works on a partition, so that places go to requests in order of arrival. A
request leaves the queue once its outcome is stored. If a process dies before that, the next one
finds the outcome under the idempotency key or processes the request again.
docs/explanation/fault-tolerance.md lists what a crashed process leaves behind.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Coroutine, Sequence

from slotlock.domain.admission.tickets import TICKET_TTL
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.redis.admission.partitions import MAX_READ, QueuePartition, StreamEntry
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import admission_lock
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease, LockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import cancel_and_wait, ignore_unretrieved
from slotlock.services.container import Services
from slotlock.services.workers.slot_queue_runner import BACKOFF_S, SlotQueueRunner, dead_letter

log = logging.getLogger("slotlock.admission")

MAX_LEASE_WAIT_S = 10.0
# A process releases a partition so long after its first request, so that all of them share the
# work, and a partition without requests after the longer time. The spread keeps one process from
# releasing all its partitions together.
LEASE_DURATION_S = (1.0, 3.0)
IDLE_LEASE_DURATION_S = (10.0, 20.0)
SHUTDOWN_TIMEOUT_S = 5.0
# A worker that has finished its work by then ends when it is cancelled again.
SHUTDOWN_PATIENCE_S = SHUTDOWN_TIMEOUT_S + 1
MAX_DELIVERIES = 6
# After a batch, requests gather this long for the next: a batch costs as much as many requests. A
# request that finds the queue at rest does not wait.
GATHER_S = 0.02


@contextlib.asynccontextmanager
async def admission_worker(services: Services, lease_locks: Locks) -> AsyncIterator[None]:
    """Process all partitions while the context is open, alternating with other processes."""
    tasks = [
        asyncio.create_task(_run_partition(services, lease_locks, number))
        for number in range(services.admission_queue.partitions)
    ]
    try:
        yield
    finally:
        await asyncio.gather(*(cancel_and_wait(task, SHUTDOWN_PATIENCE_S) for task in tasks))


async def _run_partition(services: Services, lease_locks: Locks, number: int) -> None:
    partition = QueuePartition(services.admission_queue.pipeline, number)
    while True:
        try:
            lease = await lease_locks.acquire(admission_lock(number), wait_s=MAX_LEASE_WAIT_S)
            if lease is not None:
                await _process_until_released(services, lease_locks, partition, lease)
        except RedisUnavailableError:
            await asyncio.sleep(BACKOFF_S)
        except Exception:
            log.exception("could not process admission partition %s", number)
            await asyncio.sleep(BACKOFF_S)


async def _process_until_released(
    services: Services, lease_locks: Locks, partition: QueuePartition, lease: LockLease
) -> None:
    try:
        if isinstance(lease, InProcessLockLease):
            raise RedisUnavailableError("no admission queue")
        # Without the lease nothing may be read, since each read counts as a delivery.
        while not lease.lost.is_set() and (entries := await partition.read_pending()):
            await _finish_despite_cancel(_process_entries(services, partition, lease, entries))
        clock = asyncio.get_running_loop().time
        is_idle, release_at = True, clock() + random.uniform(*IDLE_LEASE_DURATION_S)  # noqa: S311
        while clock() < release_at and not lease.lost.is_set():
            entries = await partition.read_new()
            if entries and is_idle:
                is_idle, release_at = False, clock() + random.uniform(*LEASE_DURATION_S)  # noqa: S311
            await _finish_despite_cancel(_process_entries(services, partition, lease, entries))
            if 0 < len(entries) < MAX_READ:  # the queue was read to its end
                await asyncio.sleep(GATHER_S)
    finally:
        await lease_locks.release(lease)


async def _finish_despite_cancel(work: Coroutine[None, None, None]) -> None:
    """Let a cancelled worker finish the work that it began, for up to SHUTDOWN_TIMEOUT_S."""
    task = asyncio.create_task(work)
    task.add_done_callback(ignore_unretrieved)  # after a cancel, nobody awaits its error
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=SHUTDOWN_TIMEOUT_S)
        task.cancel()
        raise


async def _process_entries(
    services: Services, partition: QueuePartition, lease: LockLease, entries: Sequence[StreamEntry]
) -> None:
    """Process the entries of all slots concurrently. Raises the first error after all ended."""
    entries_by_slot: dict[SlotId, list[StreamEntry]] = {}
    for entry in entries:
        if reason := _rejection(services, entry):
            await dead_letter(partition, entry, reason)
        elif entry.request is not None:
            entries_by_slot.setdefault(entry.request.slot_id, []).append(entry)
    runs = (
        SlotQueueRunner(services, partition, lease, slot_id, pending).run()
        for slot_id, pending in entries_by_slot.items()
    )
    for error in await asyncio.gather(*runs, return_exceptions=True):
        if isinstance(error, BaseException):
            raise error


def _rejection(services: Services, entry: StreamEntry) -> str | None:
    if entry.request is None:
        return "not a booking request"
    if services.now() >= entry.requested_at + TICKET_TTL:
        return "expired: the ticket and its result may be gone"
    if entry.deliveries > MAX_DELIVERIES:
        return f"delivered {entry.deliveries} times without an outcome"
    return None
