"""Whether MongoDB takes a write at all: an error of one write may be its own, or that of all.

The one file that knows the document that is written for it: {_id: "write", at: when last}.
"""

from pymongo.errors import PyMongoError

from slotlock.infrastructure.mongo.client import WRITE_PROBE_CONCURRENCY, Database
from slotlock.infrastructure.mongo.concurrency import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)


class WriteProbe:
    """Writes that do no harm."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(WRITE_PROBE_CONCURRENCY)
        self._probes = database["write_probes"]

    async def is_writable(self) -> bool:
        """Whether one is written now: not by a MongoDB that is away, full or closed to writes."""
        try:
            await self._write()
        except (PyMongoError, MongoOverloadedError):
            return False
        return True

    @limited
    async def _write(self) -> None:
        now = {"$currentDate": {"at": True}}
        await self._probes.update_one({"_id": "write"}, now, upsert=True)
