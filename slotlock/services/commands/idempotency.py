"""Idempotency: one key has one effect and one outcome, however often it is sent."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol, TypeVar

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.outcomes import BookingAlreadyDone, BookingWritten
from slotlock.domain.booking.refusals import KeyReused, Locked
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import idempotency_lock
from slotlock.infrastructure.request_deadline import allow_wait
from slotlock.services.commands.slot_redaction import redacted_slots
from slotlock.services.container import Services
from slotlock.services.deadline import Deadline
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import UnexpectedOutcomeError

Created = TypeVar("Created")

# A key that is sent again waits for the first outcome, even if its caller does not want to wait.
KEY_LOCK_TIMEOUT_S = 5.0
RETRY_AFTER_MS = 250


class IdempotencyGuard(Protocol):
    """The stored result of a key, if it has one; otherwise the right to execute its request."""

    @property
    def replay(self) -> CommandResult[object] | None:
        """The result to return instead of executing the request; None to execute it."""

    async def finish(self, result: CommandResult[object]) -> CommandResult[object]:
        """Return the final result of the request that was executed, which may be a replay."""


def guard(
    services: Services, key: IdempotencyKey | None, slot_id: SlotId, deadline: Deadline
) -> contextlib.AbstractAsyncContextManager[IdempotencyGuard]:
    """Serialize the requests of one key, in all processes. One without a key passes at once.

    The second request of a key replays the outcome of the first. If Redis loses their order, the
    unique id of the record lets only one of them write, and the others replay its outcome.
    """
    if key is None:
        return contextlib.nullcontext(_PassThrough(None))
    return _hold_key(services, key, slot_id, deadline)


@contextlib.asynccontextmanager
async def _hold_key(
    services: Services, key: IdempotencyKey, slot_id: SlotId, deadline: Deadline
) -> AsyncIterator[IdempotencyGuard]:
    allow_wait(deadline.remaining_s)
    wait_s = max(deadline.remaining_s, KEY_LOCK_TIMEOUT_S)
    lease = await services.locks.acquire(idempotency_lock(key.record_id), wait_s=wait_s)
    if lease is None:
        if key.requested_at is None:
            raise CommitUnknownError("another request of the key is in progress")
        yield _PassThrough(CommandResult(Locked(slot_id, RETRY_AFTER_MS)))  # a worker tries again
        return
    try:
        stored, is_queued = await asyncio.gather(
            find_replay(services.idempotency_records, key), _is_queued_with_other(services, key)
        )
        is_refused = is_queued if stored is None else _is_cancelled(stored)
        if is_refused and key.requested_at is None:
            stored = CommandResult(KeyReused(key.key))
        # A new request of the key starts over after a loss. A queued request does not: its ticket
        # has reported the loss already.
        was_lost = _is_lost(stored) and key.requested_at is None
        if was_lost:
            await services.idempotency_records.delete_lost(key.record_id, key.short_request_hash)
        if stored is None or was_lost:
            yield _Execution(services, key, slot_id, was_lost)
        else:
            yield _PassThrough(stored)
    finally:
        await services.locks.release(lease)


async def _is_queued_with_other(services: Services, key: IdempotencyKey) -> bool:
    """Return whether a ticket was issued for another request of the key; False if unknown.

    A queued request has its key already: if several were queued, their record decides.
    """
    if key.requested_at is not None:
        return False
    try:
        return await services.key_reservations.is_reserved_for_other(
            key.user_id, key.key_hash, key.short_request_hash
        )
    except RedisUnavailableError:
        return False


@value_object
class _PassThrough:
    """A request without a key, or one whose outcome is stored."""

    replay: CommandResult[object] | None

    async def finish(self, result: CommandResult[object]) -> CommandResult[object]:
        return result


@value_object
class _Execution:
    """A request that is executed while its key is locked."""

    services: Services
    key: IdempotencyKey
    slot_id: SlotId
    was_lost: bool
    replay: None = None

    async def finish(self, result: CommandResult[object]) -> CommandResult[object]:
        """Return the result, or the stored one if the key has one by now.

        An accepted booking was recorded by its own write. A refusal is not recorded.
        """
        if isinstance(result.outcome, BookingWritten):
            return result
        records = self.services.idempotency_records
        # If Redis lost the lock of the key, another request may have been executed meanwhile.
        stored = await find_replay(records, self.key)
        if stored is None and isinstance(result.outcome, BookingAlreadyDone):
            # The operation needed no write, but it uses up the key.
            slots = redacted_slots(result, (self.key.user_id,))
            now = self.services.now()
            await records.save(to_record(self.key, result.outcome, now, slots))
            stored = await find_replay(records, self.key)
        if self.was_lost:  # the refused request stays lost, unless another outcome is stored
            await records.save(self.key.lost_record(self.services.now()))
        # The ticket of the same key may have reported the loss of its request meanwhile.
        if _is_lost(stored):
            return CommandResult(Locked(self.slot_id, RETRY_AFTER_MS))
        return result if stored is None else stored


def _is_lost(result: CommandResult[object] | None) -> bool:
    return result is not None and isinstance(result.outcome, RequestLost)


def _is_cancelled(result: CommandResult[object] | None) -> bool:
    outcome = None if result is None else result.outcome
    return isinstance(outcome, RequestLost) and outcome.was_cancelled


async def find_replay(
    records: IdempotencyRecords, key: IdempotencyKey
) -> CommandResult[object] | None:
    """Return the stored result of a key; None if it has none."""
    record = await records.find(key.record_id)
    return None if record is None else to_replay(key, record)


async def find_created(
    services: Services, key: IdempotencyKey | None, created_type: type[Created]
) -> CommandResult[Created | KeyReused] | None:
    """Return what a request of the key has created or removed, or KeyReused; None if nothing.

    A mutation that creates or removes something looks before each attempt, and again before it
    returns a refusal. Another request of the key may be why: its slot occupies the resource, or it
    has removed the slots.
    """
    stored = None if key is None else await find_replay(services.idempotency_records, key)
    if stored is None:
        return None
    if isinstance(stored.outcome, created_type | KeyReused):
        return CommandResult(stored.outcome, stored.slots)
    raise UnexpectedOutcomeError(stored.outcome)


def to_replay(key: IdempotencyKey, record: IdempotencyRecord) -> CommandResult[object]:
    """Return the result to replay for a key that has a record.

    KeyReused if the key was sent with another request. RequestLost if a ticket has reported the
    request as lost or cancelled, which must not be executed any more.
    """
    if not key.matches(record):
        return CommandResult(KeyReused(key.key))
    return recorded_result(record)


def recorded_result(record: IdempotencyRecord) -> CommandResult[object]:
    """Return the result that a record holds."""
    return CommandResult(record.outcome, {slot.id: slot for slot in record.slots})


def to_record(
    key: IdempotencyKey, outcome: object, now: datetime, slots: tuple[SlotState, ...] = ()
) -> IdempotencyRecord:
    """Return the record that stores an outcome, with the slots that it shows, under its key."""
    return IdempotencyRecord(key.record_id, key.request_hash, outcome, now, key.requested_at, slots)
