"""Processes the queued requests for one slot, in batches whose size adapts to what succeeds."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.client import is_unavailable, outage_reason
from slotlock.infrastructure.redis.admission.partitions import QueuePartition, StreamEntry
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.services.admission.queued_batch import MAX_QUEUED_BATCH_SIZE, serve_batch
from slotlock.services.container import Services

log = logging.getLogger("slotlock.admission")

BACKOFF_S = 0.25
# The delays before the retries of a request that fails alone. Then it becomes a dead letter.
RETRY_DELAYS_S = (0.25, 1.0, 3.0)
MAX_REASON_CHARS = 500


def _retry_delays() -> Iterator[float]:
    return iter(RETRY_DELAYS_S)


@dataclass(slots=True)
class SlotQueueRunner:
    """The pending requests for one slot, in order of arrival."""

    services: Services
    partition: QueuePartition
    lease: LockLease
    slot_id: SlotId
    pending: list[StreamEntry]
    _max_size: int = field(default=MAX_QUEUED_BATCH_SIZE, init=False)
    _isolated: bool = field(default=False, init=False)
    # Shared by all requests: if every one of them fails, the slot is the cause.
    _retry_delays: Iterator[float] = field(default_factory=_retry_delays, init=False)

    async def run(self) -> None:
        """Process the requests until each has an outcome or is a dead letter.

        Stops early if the lease is lost. Raises: RedisUnavailableError.
        """
        while self.pending and not self.lease.lost.is_set():
            batch = self.pending[:1] if self._isolated else self.pending
            try:
                served = await serve_batch(self.services, self.slot_id, batch, self._max_size)
                await self.partition.acknowledge(self.slot_id, served)
            except RedisUnavailableError:
                raise
            except Exception as error:
                await self._handle_failure(error)
            else:
                await self._advance(len(served))

    async def _advance(self, served_count: int) -> None:
        del self.pending[:served_count]
        if served_count:
            self._max_size = min(2 * self._max_size, MAX_QUEUED_BATCH_SIZE)
        elif self._max_size > 1:  # a large batch may conflict with other writes again and again
            self.shrink()
        else:
            await asyncio.sleep(BACKOFF_S)

    async def _handle_failure(self, error: Exception) -> None:
        # If MongoDB accepts no write at all, no request is to blame. A smaller batch may succeed
        # within the timeout.
        if is_unavailable(error) or not await self.services.write_probe.is_writable():
            reason = outage_reason(error)
            log.warning(
                "queued bookings for slot_%s wait for MongoDB: %.200s", self.slot_id, reason
            )
            self.shrink()
            await asyncio.sleep(BACKOFF_S)
        elif len(self.pending) > 1 and not self._isolated:
            self.isolate()
        else:
            await self.retry_or_dead_letter(error)

    def shrink(self) -> None:
        """Halve the next batch."""
        self._max_size = max(min(self._max_size, len(self.pending)) // 2, 1)

    def isolate(self) -> None:
        """Process each request alone from now on, since one may make the whole batch fail."""
        self._isolated = True

    async def retry_or_dead_letter(self, error: Exception) -> None:
        """Wait before the next attempt at the first request, or give it up after the last one."""
        delay_s = next(self._retry_delays, None)
        if delay_s is not None:
            await asyncio.sleep(delay_s)
            return
        log.warning("queued booking for slot_%s failed", self.slot_id, exc_info=error)
        reason = f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]
        await dead_letter(self.partition, self.pending.pop(0), reason)


async def dead_letter(partition: QueuePartition, entry: StreamEntry, reason: str) -> None:
    """Move an entry to the dead letters and log the reason."""
    log.error("moved queued booking %s to the dead letters: %s", entry.id, reason)
    await partition.dead_letter(entry, reason)
