"""Serving the admission queue: all that waits for a slot as one batch, through the one act.

Each partition is served by one process at a time, so that places go in order of arrival. A request
leaves the line when its outcome is written; whoever dies before that leaves it to the next, who
finds what was written under its key.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from typing import Any

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.tickets import TICKET_TTL
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.admission.partitions import QueuePartition, StreamEntry
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import admission_lock
from slotlock.infrastructure.redis.locks.leases import InProcessLease, Lease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.admission.batch import MAX_BATCH_SIZE, serve_batch
from slotlock.services.container import Services

log = logging.getLogger("slotlock.queue")

# What dies while it serves is replaced after so long.
ADMISSION_LEASE_TTL_MS = 2_000
MAX_LEASE_WAIT_S = 10.0
# A turn ends, so that several processes share the partitions; the spread keeps the turns of one
# process from ending together.
LEASE_DURATION_S = (1.0, 3.0)
BACKOFF_S = 0.25
SHUTDOWN_TIMEOUT_S = 5.0
# Served alone and without an outcome, a request is tried again after so many seconds each time,
# and then set aside.
RETRY_DELAYS_S = (0.25, 1.0, 3.0)
MAX_DELIVERIES = 6


@contextlib.asynccontextmanager
async def admission_worker(services: Services, worker_locks: Locks) -> AsyncIterator[None]:
    """Serve the queue for as long as this lasts, in turn with the other processes."""
    partitions = range(services.admission_queue.partitions)
    tasks = [
        asyncio.create_task(_serve_partition(services, worker_locks, number))
        for number in partitions
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve_partition(services: Services, worker_locks: Locks, partition_number: int) -> None:
    partition = QueuePartition(services.admission_queue.pipeline, partition_number)
    while True:
        try:
            lease = await worker_locks.acquire(
                admission_lock(partition_number), wait_s=MAX_LEASE_WAIT_S
            )
            if lease is not None:
                await _serve_while_leader(services, worker_locks, partition, lease)
        except RedisUnavailableError:
            await asyncio.sleep(BACKOFF_S)
        except Exception as error:
            log.exception(
                "partition %s of the queue was not served", partition_number, exc_info=error
            )
            await asyncio.sleep(BACKOFF_S)


async def _serve_while_leader(
    services: Services, worker_locks: Locks, partition: QueuePartition, lease: Lease
) -> None:
    try:
        if isinstance(lease, InProcessLease):
            raise RedisUnavailableError("no admission queue")
        # Each look counts as a delivery, and who lost the turn serves nobody.
        while not lease.lost.is_set() and (entries := await partition.read_pending()):
            await _finish_despite_cancel(_serve_entries(services, partition, lease, entries))
        clock = asyncio.get_running_loop().time
        until = clock() + random.uniform(*LEASE_DURATION_S)  # noqa: S311
        while clock() < until and not lease.lost.is_set():
            await _finish_despite_cancel(
                _serve_entries(services, partition, lease, await partition.read_new())
            )
    finally:
        await worker_locks.release(lease)


async def _finish_despite_cancel(work: Coroutine[Any, Any, None]) -> None:
    """Let a process that stops finish what it has begun, for a while."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=SHUTDOWN_TIMEOUT_S)
        task.cancel()
        raise


async def _serve_entries(
    services: Services, partition: QueuePartition, lease: Lease, entries: Sequence[StreamEntry]
) -> None:
    """Serve requests until each has its outcome, or is set aside."""
    lines: dict[SlotId, list[StreamEntry]] = {}
    for entry in entries:
        if reason := _reject_reason(services, entry):
            await _dead_letter(partition, entry, reason)
        elif entry.request is not None:
            lines.setdefault(entry.request.slot_id, []).append(entry)
    served = (
        _serve_slot(services, partition, lease, slot_id, line) for slot_id, line in lines.items()
    )
    for error in await asyncio.gather(*served, return_exceptions=True):
        if isinstance(error, BaseException):
            raise error


def _reject_reason(services: Services, entry: StreamEntry) -> str | None:
    if entry.request is None:
        return "it is no request of slotlock's"
    if services.now() >= entry.requested_at + TICKET_TTL:
        return "it is too old: its ticket is forgotten, and so may be what was answered"
    if entry.deliveries > MAX_DELIVERIES:
        return f"it was taken {entry.deliveries} times and never answered"
    return None


async def _serve_slot(
    services: Services,
    partition: QueuePartition,
    lease: Lease,
    slot_id: SlotId,
    entries: Sequence[StreamEntry],
    retry_delays: Iterator[float] | None = None,
) -> None:
    left, most = list(entries), MAX_BATCH_SIZE
    # Of the whole line: where each fails by itself, what fails is the slot.
    retry_delays = iter(RETRY_DELAYS_S) if retry_delays is None else retry_delays
    while left and not lease.lost.is_set():
        try:
            done = await serve_batch(services, slot_id, left, most)
            await partition.acknowledge(slot_id, done)
            left = left[len(done) :]
            if done:
                most = min(2 * most, MAX_BATCH_SIZE)
            elif most > 1:  # one of them may be kept from it for long: a page that others turn
                most = max(min(most, len(left)) // 2, 1)
            else:
                await asyncio.sleep(BACKOFF_S)
        except RedisUnavailableError:
            raise
        except Exception as error:
            # Where no write succeeds it is no request's own; or fewer may be done in the time that
            # all are not.
            if is_unavailable(error) or not await services.write_probe.is_writable():
                most = max(most // 2, 1)
                await asyncio.sleep(BACKOFF_S)
            elif len(left) > 1:  # one of them, perhaps, and the others shall not suffer for it
                for entry in left:
                    await _serve_slot(services, partition, lease, slot_id, [entry], retry_delays)
                return
            elif (pause := next(retry_delays, None)) is not None:
                await asyncio.sleep(pause)
            else:
                log.warning("a request for slot %s failed", slot_id, exc_info=error)
                await _dead_letter(partition, left[0], f"{type(error).__name__}: {error}"[:500])
                return


async def _dead_letter(partition: QueuePartition, entry: StreamEntry, reason: str) -> None:
    log.error("request %s of the queue was set aside: %s", entry.id, reason)
    await partition.dead_letter(entry, reason)
