"""Guards and pause points of the worker that processes the admission queue, and faulty requests."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo import client
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.redis.admission import partitions
from slotlock.infrastructure.redis.admission.partitions import QueuePartition, StreamEntry
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.admission import queued_batch
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.container import Services
from slotlock.services.workers import slot_queue_runner
from slotlock.services.workers.slot_queue_runner import SlotQueueRunner
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

NEVER_SUSPECT_AFTER = 1_000_000
# More attempts than a failing request gets before it becomes a dead letter.
MIN_ATTEMPTS = 2 * len(slot_queue_runner.RETRY_DELAYS_S)
original_serve_batch, original_save_outcomes = (
    queued_batch.serve_batch,
    queued_batch._store_refusals,
)
original_run = SlotQueueRunner.run
original_read_new, original_acknowledge = QueuePartition.read_new, QueuePartition.acknowledge
original_save, original_acquire, original_apply = (
    IdempotencyRecords.save,
    Locks.acquire,
    BookSlotCommand.apply,
)
original_to_command = queued_batch._to_command
served_slot_ids: list[SlotId] = []


async def _read_and_acknowledge(self: QueuePartition) -> list[StreamEntry]:
    entries = await original_read_new(self)
    for entry in entries:
        if entry.request is not None:
            await original_acknowledge(self, entry.request.slot_id, [entry])
    return entries


def acknowledge_on_read() -> None:
    """Acknowledge a request when it is read, before it is processed (D3)."""
    QueuePartition.read_new = _read_and_acknowledge  # type: ignore[method-assign]


async def _serve_and_acknowledge(self: SlotQueueRunner) -> None:
    try:
        await original_serve_batch(self.services, self.slot_id, self.pending)
    finally:
        await self.partition.acknowledge(self.slot_id, self.pending)


def acknowledge_in_finally() -> None:
    """Acknowledge a request after it was processed, also if that failed (D3)."""
    SlotQueueRunner.run = _serve_and_acknowledge  # type: ignore[method-assign]


async def _find_no_results(services: Services, requests: Sequence[Any]) -> list[object]:
    return [None for _ in requests]


def _command_without_key(*arguments: Any) -> BookSlotCommand:
    return replace(original_to_command(*arguments), idempotency_key=None)


def ignore_request_keys() -> None:
    """Process a request without reading or writing its idempotency record."""
    replace_everywhere(queued_batch._find_known_results, _find_no_results)
    replace_everywhere(original_to_command, _command_without_key)


async def _save_unless_lost(self: IdempotencyRecords, record: IdempotencyRecord) -> None:
    if not isinstance(record.outcome, RequestLost):
        await original_save(self, record)


def skip_lost_records() -> None:
    """Report a request as lost without recording that it must not be granted."""
    IdempotencyRecords.save = _save_unless_lost  # type: ignore[method-assign]


def serve_suspects_together() -> None:
    """Never isolate a request that may crash its worker."""
    partitions.ISOLATE_AFTER_DELIVERIES = NEVER_SUSPECT_AFTER


GUARDS = {
    "ack-after-write": acknowledge_on_read,
    "ack-on-success": acknowledge_in_finally,
    "queue-keys": ignore_request_keys,
    "lost-records": skip_lost_records,
    "suspects": serve_suspects_together,
}


def raise_on_holds() -> None:
    """Raise an error when a request for a hold is decided."""

    def raise_if_hold(self: BookSlotCommand, *arguments: Any) -> Any:
        if self.request.hold:
            raise RuntimeError("a request for a hold")
        return original_apply(self, *arguments)

    BookSlotCommand.apply = raise_if_hold  # type: ignore[method-assign,assignment]
    _shorten_retry_delays()


def _shorten_retry_delays() -> None:
    slot_queue_runner.RETRY_DELAYS_S = (0.05,) * len(slot_queue_runner.RETRY_DELAYS_S)  # type: ignore[assignment]


def kill_on_holds() -> None:
    """Kill the process when a request for a hold is decided."""

    def kill_if_hold(self: BookSlotCommand, *arguments: Any) -> Any:
        if self.request.hold:
            os.kill(os.getpid(), signal.SIGKILL)
        return original_apply(self, *arguments)

    BookSlotCommand.apply = kill_if_hold  # type: ignore[method-assign,assignment]


def shorten_mongo_timeouts() -> None:
    """Shorten the timeouts of MongoDB and the delays between attempts."""
    client.SELECTION_TIMEOUT_MS = client.OPERATION_TIMEOUT_MS = 500
    _shorten_retry_delays()


FAULTS = {
    "holds-raise": raise_on_holds,
    "holds-kill": kill_on_holds,
    "short-timeouts": shorten_mongo_timeouts,
}


async def _serve_batch_after_pause(*arguments: Any) -> Any:
    served_slot_ids.append(arguments[1])
    await pause_if_selected("batch-read")
    if len(served_slot_ids) > MIN_ATTEMPTS:
        await pause_if_selected("retried")
    return await original_serve_batch(*arguments)


async def _run_after_pause(self: SlotQueueRunner) -> None:
    if await pause_if_selected("lease-lost"):
        await self.lease.lost.wait()
    await original_run(self)


async def _save_after_pause(*arguments: Any) -> None:
    await pause_if_selected("decided")
    await original_save_outcomes(*arguments)


async def _acknowledge_after_pause(self: QueuePartition, *arguments: Any) -> None:
    await pause_if_selected("saved")
    await original_acknowledge(self, *arguments)


def _install_pauses() -> None:
    replace_everywhere(original_serve_batch, _serve_batch_after_pause)
    SlotQueueRunner.run = _run_after_pause  # type: ignore[method-assign]
    replace_everywhere(original_save_outcomes, _save_after_pause)
    QueuePartition.acknowledge = _acknowledge_after_pause  # type: ignore[method-assign,assignment]


# After a batch is read; after many attempts; after bookings are written and before refusals are
# recorded; after all is written; and after a batch is assigned, until its lease is lost.
PAUSES: dict[str, Callable[[], None]] = dict.fromkeys(
    ("batch-read", "retried", "decided", "saved", "lease-lost"), _install_pauses
)
