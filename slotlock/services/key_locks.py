"""Locks of idempotency keys: requests that come together lock their keys together.

A task of its own acquires the locks of a group in one round trip, and then reads what is stored
under the keys. So a request that is cancelled meanwhile delays nobody, and leaves no lock behind:
the group releases what it acquires for a request that has left.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.redis.admission.ticket_index import KeyReservations
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import idempotency_lock
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.idempotency_key import IdempotencyKey

# Redis executes nothing else while it acquires the locks of a group.
MAX_GROUP_SIZE = 200


class KeyHolder(msgspec.Struct, eq=False):
    """A request with a key, and what was found under the key when the request had its lock.

    `is_reserved` says whether a ticket was issued for another request of the key; False if unknown.
    """

    key: IdempotencyKey
    lease: LockLease | None = None
    has_left: bool = False
    record: IdempotencyRecord | None = None
    is_reserved: bool = False


class KeyLocks:
    """The locks of keys that the requests of this process hold."""

    def __init__(
        self, locks: Locks, records: IdempotencyRecords, reservations: KeyReservations
    ) -> None:
        self._locks = locks
        self._records = records
        self._reservations = reservations
        self._batcher = Batcher(self._enter_group, MAX_GROUP_SIZE, is_outage=is_unavailable)

    def enter(self, holder: KeyHolder) -> asyncio.Future[None]:
        """Lock the key of a request if it is free, and read what is stored under it.

        Without a lease afterwards, another request has the key. Call `leave` in any case.
        """
        return self._batcher.submit_nowait(holder)

    async def wait(self, holder: KeyHolder, wait_s: float) -> None:
        """Wait for the lock of a key that another request has, and read what is stored then."""
        name = idempotency_lock(holder.key.record_id)
        holder.lease = await self._locks.acquire(name, wait_s=wait_s)
        if holder.lease is not None:
            await self.enter(holder)

    def leave(self, holder: KeyHolder) -> None:
        """Release the lock of a key, now or as soon as it is acquired."""
        holder.has_left = True
        if holder.lease is not None:
            self._locks.release_soon(holder.lease)

    async def _enter_group(self, holders: Sequence[KeyHolder]) -> list[Exception | None]:
        new = [each for each in holders if each.lease is None and not each.has_left]
        if new:
            names = [idempotency_lock(each.key.record_id) for each in new]
            for holder, lease in zip(new, await self._locks.acquire_each(names), strict=True):
                holder.lease = lease
                if holder.has_left:
                    self.leave(holder)
        locked = [each for each in holders if each.lease is not None and not each.has_left]
        failed = await self._read(locked) if locked else {}
        return [failed.get(each.key.record_id) for each in holders]

    async def _read(self, holders: Sequence[KeyHolder]) -> dict[str, Exception]:
        """Read what is stored under the keys. Returns the errors of records by their ids."""
        keys = [each.key for each in holders]
        found, reserved = await asyncio.gather(
            self._records.find_each([key.record_id for key in keys]), self._find_reserved(keys)
        )
        failed: dict[str, Exception] = {}
        for holder, record, request_hash in zip(holders, found, reserved, strict=True):
            if isinstance(record, Exception):
                failed[holder.key.record_id] = record
            else:
                holder.record = record
            if request_hash is not None:
                holder.is_reserved = request_hash != holder.key.short_request_hash
        return failed

    async def _find_reserved(self, keys: Sequence[IdempotencyKey]) -> Sequence[str | None]:
        try:
            return await self._reservations.find_each([(key.user_id, key.key_hash) for key in keys])
        except RedisUnavailableError:
            return [None] * len(keys)
