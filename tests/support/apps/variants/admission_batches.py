"""Guards of large batches and of lost requests, and a user whose version changes constantly."""

from collections.abc import Sequence

from bson import ObjectId

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.idempotency.codec import REQUEST_LOST_TAG
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, WriteSet
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.services.admission import queued_batch
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from tests.support.apps.pause_points import replace_everywhere
from tests.support.apps.variants import admission_worker

original_serve_batch, original_commit = queued_batch.serve_batch, SlotWriter.commit
original_matches = IdempotencyKey.matches
contended_user_ids: list[UserId] = []


async def _serve_whole_batch(
    services: Services, slot_id: SlotId, entries: Sequence[StreamEntry], max_size: int = 0
) -> list[StreamEntry]:
    return await original_serve_batch(services, slot_id, entries)


def never_split_batches() -> None:
    """Retry a batch as a whole, even if it cannot be written."""
    replace_everywhere(original_serve_batch, _serve_whole_batch)
    admission_worker.original_serve_batch = _serve_whole_batch


async def _commit_with_version_bump(self: SlotWriter, changes: WriteSet) -> CommitResult:
    for change in changes.slot_writes:
        old_ids = {booking.id for booking in change.before.bookings}
        user_ids = [b.user_id for b in change.after.bookings if b.id not in old_ids]
        if len(user_ids) > 1 and not contended_user_ids:
            contended_user_ids.append(user_ids[0])
        if len(user_ids) > 1 and contended_user_ids[0] in user_ids:
            await self._database["user_versions"].update_one(
                {"_id": ObjectId(contended_user_ids[0])}, {"$inc": {"version": 1}}, upsert=True
            )
    return await original_commit(self, changes)


def bump_user_version() -> None:
    """Increment the version of one user whenever they are booked in a batch with others.

    Bookings of that user in other slots would have the same effect.
    """
    SlotWriter.commit = _commit_with_version_bump  # type: ignore[method-assign]


def _matches_when_lost(self: IdempotencyKey, record: IdempotencyRecord) -> bool:
    return isinstance(record.outcome, RequestLost) or original_matches(self, record)


async def _delete_any_lost(
    self: IdempotencyRecords, /, record_id: str, short_request_hash: str
) -> None:
    await self._records.delete_one({"_id": record_id, "outcome._type": REQUEST_LOST_TAG})


def ignore_lost_request_hash() -> None:
    """Delete the record of a lost request whichever request reuses its key."""
    IdempotencyKey.matches = _matches_when_lost  # type: ignore[method-assign]
    IdempotencyRecords.delete_lost = _delete_any_lost  # type: ignore[method-assign]


GUARDS = {"smaller-batches": never_split_batches, "lost-request-hash": ignore_lost_request_hash}
FAULTS = {"contended-user": bump_user_version}
