"""Stores the texts of records, each written once.

    draw_texts: {draw, name, part, gzip: PART_BYTES of the text, compressed}

A text has a name that follows from it: the root for the one of the closing, or its SHA-256. Who
stores it again, or at the same time, stores the same. Its parts one after the other are one gzip
file, which clients get as it is: browsers read the first one only, if there are several.
"""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

from bson import ObjectId

from slotlock.domain.draws.basis import DrawId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of

PART_BYTES = 4_000_000
GZIP_WBITS = 31
LEVEL = 6
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
        content, packer = text.encode(), zlib.compressobj(LEVEL, wbits=GZIP_WBITS)
        for part, start in enumerate(range(0, len(content), PART_BYTES)):
            document = {"draw": ObjectId(draw_id), "name": name, "part": part}
            end = start + PART_BYTES
            # A part refers to no other one: another release may compress those that a killed
            # process has left out.
            mode = zlib.Z_FULL_FLUSH if end < len(content) else zlib.Z_FINISH
            packed = await asyncio.to_thread(_pack, packer, content[start:end], mode)
            await self._texts.update_one(document, {"$setOnInsert": {"gzip": packed}}, upsert=True)

    async def find(self, draw_id: DrawId, name: str) -> str | None:
        """Return a text; None if it is not there."""
        packed = b"".join([each async for each in self.read(draw_id, name)])
        return (await asyncio.to_thread(gzip.decompress, packed)).decode() if packed else None

    async def read(self, draw_id: DrawId, name: str) -> AsyncIterator[bytes]:
        """Yield the parts of a text, compressed, with one at a time in memory; none without it."""
        part = 0
        while packed := await self.find_part(draw_id, name, part):
            yield packed
            part += 1

    @limited
    async def find_part(self, draw_id: DrawId, name: str, part: int) -> bytes | None:
        """Return a part of a text, compressed; None after the last one."""
        query = {"draw": ObjectId(draw_id), "name": name, "part": part}
        found = await self._texts.find_one(query, {"gzip": 1})
        return found["gzip"] if found else None


def _pack(packer: "zlib._Compress", content: bytes, mode: int) -> bytes:
    return packer.compress(content) + packer.flush(mode)
