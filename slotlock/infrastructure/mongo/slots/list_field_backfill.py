"""Writes what lists find and order slots by, where a process of an older version did not."""

from datetime import UTC, datetime

from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.indexes.index import repair_found
from slotlock.infrastructure.mongo.search_words import HAS_OUTDATED_WORDS
from slotlock.infrastructure.mongo.slots.slot_documents import list_fields

LIST_FIELD_SOURCES = ("title", "number", "location", "start", "end", "revision", "revisedAt")
EARLIEST_REVISION = datetime(1970, 1, 1, tzinfo=UTC)


class ListFieldBackfill:
    """Repairs the list fields of slots: see `list_fields`."""

    def __init__(self, database: Database) -> None:
        self._slots = database["slots"]

    async def backfill(self) -> None:
        """Write what lists find and order slots by, wherever an older version did not."""
        await self.backfill_revised(EARLIEST_REVISION)

    async def backfill_revised(self, revised_since: datetime) -> None:
        """Write what lists find and order slots by, where an older version did not.

        These are slots that it created, and slots that it changed since this time.
        """
        while await self._repair_some("folding", HAS_OUTDATED_WORDS):
            pass
        since = revised_since
        while found := await self._repair_some("revised", _revised_query(since), "revisedAt"):
            since = found[-1]["revisedAt"]  # so that MongoDB reads no slot again

    async def _repair_some(
        self, index: str, query: Document, order: str | None = None
    ) -> list[Document]:
        return await repair_found(self._slots, index, query, LIST_FIELD_SOURCES, list_fields, order)


def _revised_query(since: datetime) -> Document:
    """Return the query for slots that an older version changed, without their list fields."""
    is_outdated = {"$ne": ["$revision", "$foldedRevision"]}
    return {"revision": {"$gt": 0}, "revisedAt": {"$gte": since}, "$expr": is_outdated}
