"""The slots of a resource: what a new slot of it must not overlap."""

from collections.abc import Sequence
from datetime import datetime

from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.infrastructure.mongo.client import RESOURCES_CONCURRENCY, Database
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.slots.documents import to_slot
from slotlock.infrastructure.mongo.slots.preconditions import ResourceVersion
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection


class ResourceRepository:
    """Who uses what, and when."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(RESOURCES_CONCURRENCY)
        self._resources = database["resources"]
        self._slots = database["slots"]

    @limited
    async def find_overlapping(
        self, name: str, start: datetime, end: datetime
    ) -> tuple[ResourceVersion, Sequence[Slot]]:
        """The published slots of a resource that have to do with a span of time.

        The version is read first: a slot that comes afterwards makes it stale.
        """
        document = await self._resources.find_one({"_id": name})
        seen = ResourceVersion(name, document["version"] if document else 0)
        query = {
            "resource": name,
            "status": SlotStatus.PUBLISHED.value,
            "start": {"$lt": end},
            "end": {"$gt": start},
        }
        found = self._slots.find(query, slot_projection(start), sort=[("start", 1)])
        return seen, [to_slot(document) async for document in found]
