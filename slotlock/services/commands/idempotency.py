"""Idempotency: one key has one effect and one outcome, however often it is sent."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import BookingAlreadyDone, BookingWritten
from slotlock.domain.booking.booking_refusals import KeyReused, Locked
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.redis.locks.lock_leases import RedisLockLease
from slotlock.infrastructure.request_deadline import WaitDeadline, allow_wait
from slotlock.services.commands.slot_redaction import redacted_slots
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.key_locks import KeyHolder
from slotlock.services.slot_command import UnexpectedOutcomeError

Created = TypeVar("Created")

# A key that is sent again waits for the first outcome, even if its caller does not want to wait.
KEY_LOCK_TIMEOUT_S = 5.0
RETRY_AFTER_MS = 250


async def execute_once(
    services: Services,
    key: IdempotencyKey | None,
    slot_id: SlotId,
    deadline: WaitDeadline,
    execute: Callable[[], Awaitable[CommandResult[object]]],
) -> CommandResult[object]:
    """Return the stored result of a key, or execute its request; without a key, execute it.

    The requests of one key are serialized in all processes: the second one replays the outcome of
    the first. If Redis loses their order, the unique id of the record lets only one of them write,
    and the others replay its outcome.
    """
    if key is None:
        return await execute()
    holder = KeyHolder(key)
    try:
        await services.key_locks.enter(holder)
        if holder.lease is None:
            allow_wait(deadline.remaining_s)
            await services.key_locks.wait(holder, max(deadline.remaining_s, KEY_LOCK_TIMEOUT_S))
        if holder.lease is None:
            if key.requested_at is None:
                raise CommitUnknownError("another request of the key is in progress")
            return CommandResult(Locked(slot_id, RETRY_AFTER_MS))  # a worker tries again
        was_lost = False
        if holder.record is not None:
            stored = to_replay(key, holder.record)
            # A queued request does not start over after a loss: its ticket has reported it.
            if not isinstance(stored.outcome, RequestLost) or key.requested_at is not None:
                return stored
            if stored.outcome.was_cancelled:
                return CommandResult(KeyReused(key.key))
            await services.idempotency_records.delete_lost(key.record_id, key.short_request_hash)
            was_lost = True
        elif holder.is_reserved and key.requested_at is None:
            return CommandResult(KeyReused(key.key))
        result = await execute()
        if isinstance(result.outcome, BookingWritten):  # recorded by its own write
            return result
        # Without Redis, another process may execute a request of the key at the same time.
        is_alone = isinstance(holder.lease, RedisLockLease) or key.requested_at is not None
        return await _finish_unwritten(services, key, slot_id, result, was_lost or not is_alone)
    finally:
        services.key_locks.leave(holder)


async def _finish_unwritten(
    services: Services,
    key: IdempotencyKey,
    slot_id: SlotId,
    result: CommandResult[object],
    is_lost_if_refused: bool,
) -> CommandResult[object]:
    """Return the result of a request that wrote nothing, or the stored one if there is one by now.

    A refusal is not recorded. With `is_lost_if_refused`, a refused request is marked as lost: no
    other request of the key that is under way books then.
    """
    records = services.idempotency_records
    is_done = isinstance(result.outcome, BookingAlreadyDone)
    if is_lost_if_refused and not is_done:
        await records.save(key.lost_record(services.now()))
    # If Redis lost the lock of the key, another request may have been executed meanwhile.
    stored = await find_replay(records, key)
    if stored is None and is_done:
        # The operation needed no write, but it uses up the key.
        slots = redacted_slots(result, (key.user_id,))
        await records.save(to_record(key, result.outcome, services.now(), slots))
        stored = await find_replay(records, key)
    if stored is None:
        return result
    if not isinstance(stored.outcome, RequestLost):
        return stored
    # The ticket of the same key may have reported the loss of its request meanwhile.
    return result if is_lost_if_refused else CommandResult(Locked(slot_id, RETRY_AFTER_MS))


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
