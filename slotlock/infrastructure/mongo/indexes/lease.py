"""A lease document: one process of all does a task in the background.

    leases: {_id: task, holder, until}

The times are those of MongoDB, so that the clocks of the processes do not matter. Two holders at
once would only do the same work twice.
"""

from bson import ObjectId
from pymongo import ReturnDocument
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
        # Without a document, `$until` is missing, which is less than every time.
        is_free = {"$or": [{"$eq": ["$holder", self._holder]}, {"$lt": ["$until", "$$NOW"]}]}
        until = {"$dateAdd": {"startDate": "$$NOW", "unit": "second", "amount": LEASE_S}}
        taken = {
            "holder": {"$cond": [is_free, self._holder, "$holder"]},
            "until": {"$cond": [is_free, until, "$until"]},
        }
        try:
            lease = await self._leases.find_one_and_update(
                {"_id": self._task},
                [{"$set": taken}],
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        except DuplicateKeyError:  # another process inserted the lease at the same time
            return False
        return lease is not None and lease["holder"] == self._holder

    async def release(self) -> None:
        """Give the lease back, if this process holds it."""
        await self._leases.delete_one({"_id": self._task, "holder": self._holder})
