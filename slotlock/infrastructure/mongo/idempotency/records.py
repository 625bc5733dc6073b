"""The outcomes of commands under their idempotency keys.

    idempotency_records: {_id: hash of the caller and the key, requestHash, outcome, slots, at,
                          requestedAt?}

A record is written in the transaction of its command, so that a key has one effect or none.
`slots` are the slots that the outcome shows, as they were; the admission queue stores refusals
without them. `requestedAt` is the time at which a request joined the admission queue. The
`requestHash` of a lost request is only the beginning of the hash, which is all that its ticket
contains.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError

from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.batching import Batcher, GroupBatcher
from slotlock.infrastructure.mongo.client import (
    DUPLICATE_KEY,
    IDEMPOTENCY_CONCURRENCY,
    Database,
    Document,
    error_codes,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import find_in_one_batch
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.idempotency.codec import (
    REQUEST_LOST_TAG,
    TYPE_FIELD,
    Encoder,
    decode,
    decode_slots,
)
from slotlock.infrastructure.mongo.indexes.index import indexes_of

# Clients are promised a day. The second day covers clocks that differ, and late clients.
RECORD_TTL = timedelta(hours=48)
IDEMPOTENCY_RECORD_INDEXES = indexes_of(
    "idempotency_records",
    {"expiry": ([("at", 1)], {"expireAfterSeconds": int(RECORD_TTL.total_seconds())})},
)


@value_object
class IdempotencyRecord:
    """The outcome of the command that was sent under a key, and the hash of that command.

    `slots` are those that the outcome shows, as far as they were recorded with it.
    """

    record_id: str
    request_hash: str
    outcome: object
    at: datetime
    requested_at: datetime | None = None
    slots: tuple[SlotState, ...] = ()


class IdempotencyRecords:
    """Stores the outcomes of the last two days."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(IDEMPOTENCY_CONCURRENCY)
        self._records = database["idempotency_records"]
        self._read_batcher = Batcher(self.find_each, is_outage=is_unavailable)
        self._group_batcher = GroupBatcher(self.find_each, is_outage=is_unavailable)
        self._save_batcher = Batcher(self._save_batch, is_outage=is_unavailable)

    async def find(self, record_id: str) -> IdempotencyRecord | None:
        """Return the record of a key, if there is one."""
        return await self._read_batcher.submit(record_id)

    async def find_many(self, record_ids: Iterable[str]) -> list[IdempotencyRecord | None]:
        """Return the record of each key, in order; None where there is none."""
        return await self._group_batcher.submit(list(record_ids))

    async def find_each(
        self, record_ids: Sequence[str]
    ) -> list[IdempotencyRecord | Exception | None]:
        """Return the record of each key, None where there is none, or why it cannot be read."""
        found: dict[str, IdempotencyRecord | Exception] = {}
        for document in await find_in_one_batch(self._records, {"_id": {"$in": record_ids}}, {}):
            try:
                found[document["_id"]] = _to_record(document)
            except (KeyError, ValueError, TypeError) as error:  # concerns its own callers only
                found[document["_id"]] = error
        return [found.get(record_id) for record_id in record_ids]

    async def save(self, record: IdempotencyRecord) -> None:
        """Store the outcome of a command that wrote nothing, unless its key has a record."""
        await self._save_batcher.submit(record)

    async def _save_batch(self, records: list[IdempotencyRecord]) -> list[None]:
        await self.save_all(records)
        return [None] * len(records)

    @limited
    async def save_all(self, records: Sequence[IdempotencyRecord]) -> None:
        """Store the outcomes of commands that wrote nothing, except where a key has a record."""
        try:
            await self._records.insert_many(records_to_documents(records), ordered=False)
        except BulkWriteError as error:
            if error_codes(error) - {DUPLICATE_KEY}:
                raise

    @limited
    async def delete_lost(self, record_id: str, short_request_hash: str) -> None:
        """Delete the record that says that this request was lost, so that it can be sent again.

        The record of a cancelled request stays.
        """
        await self._records.delete_one(
            {
                "_id": record_id,
                "requestHash": short_request_hash,
                f"outcome.{TYPE_FIELD}": REQUEST_LOST_TAG,
                "outcome.was_cancelled": {"$ne": True},
            }
        )


async def insert_record(
    database: Database, record: IdempotencyRecord, session: AsyncClientSession
) -> None:
    """Insert the record of a change, in the transaction of the change.

    Raises:
        DuplicateKeyError: the key has a record.
    """
    (document,) = records_to_documents([record])
    await database["idempotency_records"].insert_one(document, session=session)


def records_to_documents(records: Iterable[IdempotencyRecord]) -> list[Document]:
    """Return the documents of records that are written together. They may share parts."""
    encoder = Encoder()
    return [_to_document(record, encoder) for record in records]


def _to_document(record: IdempotencyRecord, encoder: Encoder) -> Document:
    document = {
        "_id": record.record_id,
        "requestHash": record.request_hash,
        "outcome": encoder.encode(record.outcome),
        "slots": list(map(encoder.encode, record.slots)),
        "at": record.at,
    }
    if record.requested_at is not None:
        document["requestedAt"] = record.requested_at
    return document


def _to_record(document: Document) -> IdempotencyRecord:
    return IdempotencyRecord(
        document["_id"],
        document["requestHash"],
        decode(document["outcome"]),
        document["at"],
        document.get("requestedAt"),
        decode_slots(document["slots"]),
    )
