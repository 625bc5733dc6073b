"""Resources, and the slots that use them.

    resources: {_id: name, version}

The version counts the slots that began to use the resource, so that of two concurrent ones only one
is written.
"""

from collections.abc import Sequence
from datetime import datetime

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import RESOURCES_CONCURRENCY, Database
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.slots.documents import to_slot_state
from slotlock.infrastructure.mongo.slots.preconditions import ResourceVersion
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection


class ResourceRepository:
    """Finds the slots that use a resource."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(RESOURCES_CONCURRENCY)
        self._resources = database["resources"]
        self._slots = database["slots"]

    @limited
    async def find_overlapping(
        self, name: str, start: datetime, end: datetime
    ) -> tuple[ResourceVersion, Sequence[SlotState]]:
        """Return the published slots of a resource that overlap a period, and its version.

        The version is read first, so that a slot that is added afterwards makes it outdated.
        """
        document = await self._resources.find_one({"_id": name})
        version = ResourceVersion(name, document["version"] if document else 0)
        query = {
            "resource": name,
            "status": SlotStatus.PUBLISHED.value,
            "start": {"$lt": end},
            "end": {"$gt": start},
        }
        found = self._slots.find(query, slot_projection(start), sort=[("start", 1)])
        return version, [to_slot_state(document) async for document in found]
