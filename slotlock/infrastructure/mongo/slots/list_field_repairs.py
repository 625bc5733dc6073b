"""Writes what lists find and order slots by, where a process of an older version did not."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pymongo import UpdateOne

from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.indexes.index import find_by_index
from slotlock.infrastructure.mongo.search_words import HAS_OUTDATED_WORDS
from slotlock.infrastructure.mongo.slots.documents import list_fields

BACKFILL_BATCH_SIZE = 500
LIST_FIELD_SOURCES = ("title", "location", "start", "end", "revision", "revisedAt")
EARLIEST_REVISION = datetime(1970, 1, 1, tzinfo=UTC)


class ListFieldRepairs:
    """Repairs the list fields of slots: see `list_fields`."""

    def __init__(self, database: Database) -> None:
        self._slots = database["slots"]

    async def backfill(self) -> None:
        """Write what lists find and order slots by, wherever an older version did not."""
        await self.repair(EARLIEST_REVISION)

    async def repair(self, revised_since: datetime) -> None:
        """Write what lists find and order slots by, where an older version did not.

        These are slots that it created, and slots that it changed since this time.
        """
        while found := await self._find_outdated(HAS_OUTDATED_WORDS, "folding"):
            await self._write_list_fields(found)
        since = revised_since
        while found := await self._find_outdated(_revised_query(since), "revised", "revisedAt"):
            await self._write_list_fields(found)
            since = found[-1]["revisedAt"]  # so that MongoDB reads no slot again

    async def _find_outdated(
        self, query: Document, index: str, order: str | None = None
    ) -> list[Document]:
        """Return what list fields of some slots follow from; nothing before the index is built."""
        return await find_by_index(
            self._slots, index, query, LIST_FIELD_SOURCES, BACKFILL_BATCH_SIZE, order
        )

    async def _write_list_fields(self, found: Sequence[Document]) -> None:
        # A slot that changes meanwhile is no longer as it was found.
        updates = [UpdateOne(each, {"$set": list_fields(each)}) for each in found]
        await self._slots.bulk_write(updates, ordered=False)


def _revised_query(since: datetime) -> Document:
    """Return the query for slots that an older version changed, without their list fields."""
    is_outdated = {"$ne": ["$revision", "$foldedRevision"]}
    return {"revision": {"$gt": 0}, "revisedAt": {"$gte": since}, "$expr": is_outdated}
