"""Answers kept under idempotency keys: the one file that knows the shape of their documents.

    {_id: hash of the caller and the key, print: hash of what was asked, outcome, at, asked?}

An answer is written in the transaction of what it answers, so that a key has one effect or none.
`asked` is when a request that stood in line was asked for. Of one that was lost `print` is the
beginning of the hash, which is all that its ticket knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from pymongo.errors import BulkWriteError

from slotlock.domain.booking import booking, history, outcomes, refusals, slot, tickets
from slotlock.domain.booking.tickets import RequestLost
from slotlock.domain.campaigns import terms
from slotlock.domain.schedule import meetings
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import IDEMPOTENCY_CONCURRENCY, Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited

# The promise is a day; the second is for clocks and for clients that are late.
RECORD_TTL = timedelta(hours=48)
DUPLICATE_KEY = 11000


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """What was answered to whom, and to which question."""

    record_id: str
    request_hash: str
    outcome: Any
    at: datetime
    requested_at: datetime | None = None


class IdempotencyRecords:
    """The answers given under keys lately."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(IDEMPOTENCY_CONCURRENCY)
        self._records = database["answers"]
        self._read_batcher = Batcher(self._read_batch)
        self._save_batcher = Batcher(self._save_batch)

    async def create_indexes(self) -> None:
        """Create the index that forgets old answers."""
        seconds = int(RECORD_TTL.total_seconds())
        await self._records.create_index("at", name="forget", expireAfterSeconds=seconds)

    async def find(self, record_id: str) -> IdempotencyRecord | None:
        """The answer given under this key, if there is one."""
        return await self._read_batcher.submit(record_id)

    async def save(self, record: IdempotencyRecord) -> None:
        """Keep an answer that needed no write, unless the key was answered before."""
        await self._save_batcher.submit(record)

    async def _save_batch(self, records: list[IdempotencyRecord]) -> list[None]:
        await self.save_all(records)
        return [None] * len(records)

    @limited
    async def save_all(self, records: Sequence[IdempotencyRecord]) -> None:
        """Keep answers that needed no write, but for those of keys that were answered before."""
        try:
            documents = [record_to_document(answer) for answer in records]
            await self._records.insert_many(documents, ordered=False)
        except BulkWriteError as error:
            failed = error.details["writeErrors"]
            if error.details["writeConcernErrors"] or any(
                e["code"] != DUPLICATE_KEY for e in failed
            ):
                raise

    @limited
    async def delete_lost(self, record_id: str, short_request_hash: str) -> None:
        """Forget that the request under this key was lost, if that was what it asked for."""
        mark = {"_id": record_id, "print": short_request_hash, "outcome._is": RequestLost.__name__}
        await self._records.delete_one(mark)

    async def _read_batch(
        self, record_ids: list[str]
    ) -> list[IdempotencyRecord | Exception | None]:
        found: dict[str, IdempotencyRecord | Exception] = {}
        async for document in self._records.find({"_id": {"$in": record_ids}}):
            try:
                found[document["_id"]] = _to_record(document)
            except (KeyError, ValueError, TypeError) as error:  # its readers' alone
                found[document["_id"]] = error
        return [found.get(key_id) for key_id in record_ids]


def record_to_document(record: IdempotencyRecord) -> Document:
    """The document of a kept answer."""
    asked = {"asked": record.requested_at} if record.requested_at else {}
    return {
        "_id": record.record_id,
        "print": record.request_hash,
        "outcome": encode(record.outcome),
        "at": record.at,
        **asked,
    }


def _to_record(document: Document) -> IdempotencyRecord:
    outcome = decode(document["outcome"])
    return IdempotencyRecord(
        document["_id"], document["print"], outcome, document["at"], document.get("asked")
    )


TYPE_TAGS = {
    kind.__name__: kind
    for module in (history, meetings, terms, booking, slot, refusals, outcomes, tickets)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
}


def encode(value: Any) -> Any:
    # Values of the domain by the names of their types and fields, as they are.
    if is_dataclass(value):
        values = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"_is": type(value).__name__, **values}
    if isinstance(value, Enum):
        return {"_is": type(value).__name__, "_value": value.value}
    return [encode(each) for each in value] if isinstance(value, tuple) else value


def decode(encoded: Any) -> Any:
    if isinstance(encoded, list):
        return tuple(decode(each) for each in encoded)
    if not isinstance(encoded, dict) or "_is" not in encoded:
        return encoded
    kind = TYPE_TAGS[encoded["_is"]]
    if "_value" in encoded:
        return kind(encoded["_value"])
    # A field that this version does not know is left out, one that it adds has its default.
    known = {field.name for field in fields(kind)}
    return kind(**{name: decode(value) for name, value in encoded.items() if name in known})
