"""Stores the texts of records, each written once.

    draw_texts: {draw, name, part, gzip: PART_BYTES of the text, compressed by themselves}

A text has a name that follows from it: the root for the one of the closing, or its SHA-256. Who
stores it again, or at the same time, stores the same.
"""

import asyncio
import gzip

from bson import ObjectId

from slotlock.domain.draws.basis import DrawId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of

PART_BYTES = 4_000_000
TEXT_INDEXES = indexes_of(
    "draw_texts", {"part": ([("draw", 1), ("name", 1), ("part", 1)], {"unique": True})}
)
UNIQUE_INDEX = "draw_texts.part"


class DrawTextRepository:
    """Stores the texts of the records of draws, which outlive slots and campaigns."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, required: RequiredIndexes
    ) -> None:
        self.limiter = limiter
        self._required = required
        self._texts = database["draw_texts"]

    @limited
    async def insert(self, draw_id: DrawId, name: str, text: str) -> None:
        """Store a text, if it is not there yet."""
        self._required.require(UNIQUE_INDEX)
        content = text.encode()
        for part, start in enumerate(range(0, len(content), PART_BYTES)):
            document = {"draw": ObjectId(draw_id), "name": name, "part": part}
            # By itself: another release may compress the parts that a killed process has left out.
            packed = await asyncio.to_thread(gzip.compress, content[start : start + PART_BYTES], 6)
            await self._texts.update_one(document, {"$setOnInsert": {"gzip": packed}}, upsert=True)

    @limited
    async def find(self, draw_id: DrawId, name: str) -> str | None:
        """Return a text; None if it is not there."""
        query = {"draw": ObjectId(draw_id), "name": name}
        found = self._texts.find(query, {"gzip": 1}, sort=[("part", 1)])
        packed = b"".join([each["gzip"] async for each in found])
        if not packed:
            return None
        return (await asyncio.to_thread(gzip.decompress, packed)).decode()
