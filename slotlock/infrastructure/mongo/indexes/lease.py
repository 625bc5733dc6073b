"""A lease document: one process of all does a task in the background.

    leases: {_id: task, holder, until}

The times are those of MongoDB, so that the clocks of the processes do not matter. Two holders at
once would only do the same work twice.
"""

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from slotlock.infrastructure.mongo.client import Database

LEASE_S = 30


class MongoLease:
    """The lease of one task, as one process asks for it."""

    def __init__(self, database: Database, task: str) -> None:
        self._leases = database["leases"]
        self._task = task
        self._holder = ObjectId()

    async def acquire(self) -> bool:
        """Take the lease for 30 s, or prolong it. Return False if another process holds it."""
        is_free = {"$or": [{"$eq": ["$holder", self._holder]}, {"$lt": ["$until", "$$NOW"]}]}
        until = {"$dateAdd": {"startDate": "$$NOW", "unit": "second", "amount": LEASE_S}}
        try:
            await self._leases.update_one(
                {"_id": self._task, "$expr": is_free},
                [{"$set": {"holder": self._holder, "until": until}}],
                upsert=True,
            )
        except DuplicateKeyError:
            return False
        return True

    async def release(self) -> None:
        """Give the lease back, if this process holds it."""
        await self._leases.delete_one({"_id": self._task, "holder": self._holder})
