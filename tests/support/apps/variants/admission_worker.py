"""Guards of the admission queue, switched off one by one, and requests that harm their servers."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.tickets import RequestLost
from slotlock.infrastructure.mongo import client
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.redis.admission import partitions
from slotlock.infrastructure.redis.admission.partitions import QueuePartition, StreamEntry
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.admission import batch
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.container import Services
from slotlock.services.workers import slot_batches
from slotlock.services.workers.slot_batches import SlotBatchRunner
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

NEVER_SUSPECT_AFTER = 1_000_000
# More than those after which a request that fails by itself is set aside.
MIN_ATTEMPTS = 2 * len(slot_batches.RETRY_DELAYS_S)
original_serve_batch, original_save_outcomes = batch.serve_batch, batch._record_refusals
original_run = SlotBatchRunner.run
original_read_new, original_acknowledge = QueuePartition.read_new, QueuePartition.acknowledge
original_save, original_acquire, original_apply = (
    IdempotencyRecords.save,
    Locks.acquire,
    BookSlotCommand.apply,
)
original_command: Any = batch._QueuedCommand.command
served_slot_ids: list[SlotId] = []


async def _read_and_acknowledge(self: QueuePartition) -> list[StreamEntry]:
    entries = await original_read_new(self)
    for entry in entries:
        if entry.request is not None:
            await original_acknowledge(self, entry.request.slot_id, [entry])
    return entries


def acknowledge_on_read() -> None:
    """A request leaves the line when it is taken, whatever becomes of it then (D3)."""
    QueuePartition.read_new = _read_and_acknowledge  # type: ignore[method-assign]


async def _serve_and_acknowledge(self: SlotBatchRunner) -> None:
    try:
        await original_serve_batch(self.services, self.slot_id, self.pending)
    finally:
        await self.partition.acknowledge(self.slot_id, self.pending)


def acknowledge_in_finally() -> None:
    """A request leaves the queue when it was processed and when that failed (D3)."""
    SlotBatchRunner.run = _serve_and_acknowledge  # type: ignore[method-assign]


async def _no_settled_outcomes(services: Services, commands: Sequence[Any]) -> list[Any]:
    return [None for _ in commands]


def _command_without_key(self: Any) -> BookSlotCommand:
    found: BookSlotCommand = original_command.fget(self)
    return replace(found, idempotency_key=None)


def ignore_request_keys() -> None:
    """Who serves a request neither looks for its answer nor keeps one with what is written."""
    replace_everywhere(batch._settled_outcomes, _no_settled_outcomes)
    batch._QueuedCommand.command = property(_command_without_key)  # type: ignore[assignment]


async def _save_unless_lost(self: IdempotencyRecords, record: IdempotencyRecord) -> None:
    if not isinstance(record.outcome, RequestLost):
        await original_save(self, record)


def skip_lost_records() -> None:
    """That a request is lost is told, and nobody is kept from granting it."""
    IdempotencyRecords.save = _save_unless_lost  # type: ignore[method-assign]


def serve_suspects_together() -> None:
    """What may be what kills its servers is served beside others for ever."""
    partitions.ISOLATE_AFTER_DELIVERIES = NEVER_SUSPECT_AFTER


GUARDS = {
    "ack-after-write": acknowledge_on_read,
    "ack-on-success": acknowledge_in_finally,
    "queue-keys": ignore_request_keys,
    "lost-records": skip_lost_records,
    "suspects": serve_suspects_together,
}


def raise_on_holds() -> None:
    """No guard but a mishap: whoever asks for a hold is an error when it is decided on."""

    def raise_if_hold(self: BookSlotCommand, *arguments: Any) -> Any:
        if self.request.hold:
            raise RuntimeError("there is something about this one")
        return original_apply(self, *arguments)

    BookSlotCommand.apply = raise_if_hold  # type: ignore[method-assign,assignment]
    _shorten_retry_delays()


def _shorten_retry_delays() -> None:
    slot_batches.RETRY_DELAYS_S = (0.05,) * len(slot_batches.RETRY_DELAYS_S)  # type: ignore[assignment]


def kill_on_holds() -> None:
    """No guard but a mishap: whoever asks for a hold is the death of who decides on it."""

    def kill_if_hold(self: BookSlotCommand, *arguments: Any) -> Any:
        if self.request.hold:
            os.kill(os.getpid(), signal.SIGKILL)
        return original_apply(self, *arguments)

    BookSlotCommand.apply = kill_if_hold  # type: ignore[method-assign,assignment]


def shorten_mongo_timeouts() -> None:
    """No guard: MongoDB is given up after half a second, and requests that fail after less, so that
    many tries take little time.
    """
    client.SELECTION_TIMEOUT_MS = client.OPERATION_TIMEOUT_MS = 500
    _shorten_retry_delays()


MISHAPS = {
    "holds-raise": raise_on_holds,
    "holds-kill": kill_on_holds,
    "short-timeouts": shorten_mongo_timeouts,
}
PAUSE_POINTS = ("batch-read", "decided", "saved", "retried", "lease-lost")


async def _serve_batch_after_pause(*arguments: Any) -> Any:
    served_slot_ids.append(arguments[1])
    await pause_if_selected("batch-read")
    if len(served_slot_ids) > MIN_ATTEMPTS:
        await pause_if_selected("retried")
    return await original_serve_batch(*arguments)


async def _run_after_pause(self: SlotBatchRunner) -> None:
    if await pause_if_selected("lease-lost"):
        await self.lease.lost.wait()
    await original_run(self)


async def _save_after_pause(*arguments: Any) -> None:
    await pause_if_selected("decided")
    await original_save_outcomes(*arguments)


async def _acknowledge_after_pause(self: QueuePartition, *arguments: Any) -> None:
    await pause_if_selected("saved")
    await original_acknowledge(self, *arguments)


def install_pauses() -> None:
    """Let who serves the queue be stopped before the decision, after the grants, after all; when
    they tried many times; and until they have lost their turn.
    """
    replace_everywhere(original_serve_batch, _serve_batch_after_pause)
    SlotBatchRunner.run = _run_after_pause  # type: ignore[method-assign]
    replace_everywhere(original_save_outcomes, _save_after_pause)
    QueuePartition.acknowledge = _acknowledge_after_pause  # type: ignore[method-assign,assignment]
