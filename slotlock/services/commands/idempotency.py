"""One effect a key: the same key by the same person is answered the same, however often sent."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import orjson

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import BookingAlreadyDone, BookingWritten
from slotlock.domain.booking.refusals import KeyReused, Locked
from slotlock.domain.booking.tickets import RequestLost
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.redis.admission.queue import REQUEST_HASH_CHARS
from slotlock.infrastructure.redis.keys import idempotency_lock
from slotlock.services.commands.outcome_snapshots import redact_for
from slotlock.services.container import Services

Outcome = TypeVar("Outcome")

# Whoever sends a key again waits for the first answer, even who would not wait for a place.
KEY_LOCK_TIMEOUT_S = 5.0
RETRY_AFTER_MS = 250
# Of the hash of a key that tickets and the queue name it by; a person's keys are few.
KEY_HASH_CHARS = 32


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A person's idempotency key with a fingerprint of what they asked for under it.

    `key` is empty where only its hash is known any more. `asked_at` is of a request that stood in
    line.
    """

    user_id: UserId
    key: str
    key_hash: str
    request_hash: str
    requested_at: datetime | None = None

    @classmethod
    def for_request(cls, user_id: UserId, key: str, *request_parts: Any) -> "IdempotencyKey":
        """The slip for a question; how long its sender is willing to wait is no part of it."""
        return cls(user_id, key, _hash([key])[:KEY_HASH_CHARS], _hash(list(request_parts)))

    @property
    def record_id(self) -> str:
        """The id under which the answer is kept."""
        return record_id(self.user_id, self.key_hash)

    @property
    def short_request_hash(self) -> str:
        """The fingerprint as far as tickets and the queue know it."""
        return self.request_hash[:REQUEST_HASH_CHARS]

    def matches(self, record: IdempotencyRecord) -> bool:
        """Whether what is kept under the key belongs to the same question."""
        return self.request_hash.startswith(record.request_hash)

    def lost_record(self, now: datetime) -> IdempotencyRecord:
        """The mark that this request was lost."""
        return lost_record(self.record_id, self.short_request_hash, now)


def lost_record(record_id: str, short_request_hash: str, now: datetime) -> IdempotencyRecord:
    """What is kept under the key of a request that was lost: until the same question is asked
    again, nobody is granted anything under this key.
    """
    return IdempotencyRecord(record_id, short_request_hash, RequestLost(), now)


def record_id(user_id: UserId, key_hash: str) -> str:
    """The id under which the answer to this key of a person is kept."""
    return _hash([user_id, key_hash])


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


async def run_once(
    services: Services,
    idempotency_key: IdempotencyKey | None,
    slot_id: SlotId,
    wait_s: float,
    run: Callable[[float], Awaitable[Outcome]],
) -> Outcome | KeyReused | Locked:
    """The answer kept under the key, or the outcome of running it now.

    `run` is given what is left of the time that the caller waits.

    Sends of one key are served one after the other, in every process: the second finds what the
    first left. Should that order be lost with Redis, only one of them can be written, and the
    others find its answer then. A refusal changed nothing and is not kept.
    """
    if idempotency_key is None:
        return await run(wait_s)
    until = asyncio.get_running_loop().time() + wait_s
    key_lock = idempotency_lock(idempotency_key.record_id)
    lease = await services.locks.acquire(key_lock, wait_s=max(wait_s, KEY_LOCK_TIMEOUT_S))
    if lease is None:
        return Locked(slot_id, RETRY_AFTER_MS)
    try:
        kept: Any = await find_replay(services.idempotency_records, idempotency_key)
        # Who asks again forgets that the request was lost; who still has it, and would serve it,
        # does not.
        again = isinstance(kept, RequestLost) and idempotency_key.requested_at is None
        if again:
            await services.idempotency_records.delete_lost(
                idempotency_key.record_id, idempotency_key.short_request_hash
            )
        elif kept is not None:
            answer: Outcome | KeyReused = kept
            return answer
        left = max(until - asyncio.get_running_loop().time(), 0.0)
        outcome: Outcome | KeyReused = await run(left)
        if not isinstance(outcome, BookingWritten):
            # Redis may have lost their order: then this is the answer to what the same key did.
            outcome = await _replay_or_record(services, idempotency_key, outcome)
            if again:  # refused, it stays lost, unless something is kept by now
                await services.idempotency_records.save(idempotency_key.lost_record(services.now()))
        # Or a ticket of the same key was told meanwhile that its request is lost.
        lost_now = isinstance(outcome, RequestLost)
        return Locked(slot_id, RETRY_AFTER_MS) if lost_now else outcome
    finally:
        await services.locks.release(lease)


async def _replay_or_record(
    services: Services, idempotency_key: IdempotencyKey, outcome: Outcome | KeyReused
) -> Outcome | KeyReused:
    kept: Outcome | KeyReused | None = await find_replay(
        services.idempotency_records, idempotency_key
    )
    if kept is None and isinstance(outcome, BookingAlreadyDone):
        # It was done before, by whatever means; the key is used up all the same.
        told = redact_for(outcome, (idempotency_key.user_id,))
        await services.idempotency_records.save(
            IdempotencyRecord(
                idempotency_key.record_id, idempotency_key.request_hash, told, services.now()
            )
        )
        kept = await find_replay(services.idempotency_records, idempotency_key)
    return outcome if kept is None else kept


async def find_replay(records: IdempotencyRecords, idempotency_key: IdempotencyKey) -> Any:
    """What was answered under the key; KeyReused if the question was another; None if nothing.

    RequestLost when a ticket was told so: whoever still has the request must not serve it.
    """
    kept = await records.find(idempotency_key.record_id)
    if kept is None:
        return None
    return kept.outcome if idempotency_key.matches(kept) else KeyReused(idempotency_key.key)
