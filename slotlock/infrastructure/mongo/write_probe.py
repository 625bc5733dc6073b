"""Checks whether MongoDB accepts writes, which tells a faulty request from an outage.

write_probes: {_id: "write", at: time of the last probe}
"""

from pymongo.errors import PyMongoError

from slotlock.infrastructure.mongo.client import WRITE_PROBE_CONCURRENCY, Database
from slotlock.infrastructure.mongo.concurrency import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)


class WriteProbe:
    """Writes a document that nothing else uses."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(WRITE_PROBE_CONCURRENCY)
        self._probes = database["write_probes"]

    async def is_writable(self) -> bool:
        """Return whether a write succeeds now; not if MongoDB is full, for example."""
        try:
            await self._write()
        except (PyMongoError, MongoOverloadedError):
            return False
        return True

    @limited
    async def _write(self) -> None:
        now = {"$currentDate": {"at": True}}
        await self._probes.update_one({"_id": "write"}, now, upsert=True)
