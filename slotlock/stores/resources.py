"""The slots of a resource: what a new slot of it must not overlap."""

from collections.abc import Sequence
from datetime import datetime

from slotlock.domain.slots import Slot, SlotStatus
from slotlock.stores.gate import Gate, gated
from slotlock.stores.guards import ResourceSeen
from slotlock.stores.mongo import RESOURCES_GATE, Database
from slotlock.stores.slot_documents import slot_of
from slotlock.stores.slot_looks import seen_by


class Resources:
    """Who uses what, and when."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(RESOURCES_GATE)
        self._resources = database["resources"]
        self._slots = database["slots"]

    @gated
    async def look(
        self, name: str, start: datetime, end: datetime
    ) -> tuple[ResourceSeen, Sequence[Slot]]:
        """The published slots of a resource that have to do with a span of time.

        The version is read first: a slot that comes afterwards makes it stale.
        """
        document = await self._resources.find_one({"_id": name})
        seen = ResourceSeen(name, document["version"] if document else 0)
        query = {
            "resource": name,
            "status": SlotStatus.PUBLISHED.value,
            "start": {"$lt": end},
            "end": {"$gt": start},
        }
        found = self._slots.find(query, seen_by((), (), start, heads=1), sort=[("start", 1)])
        return seen, [slot_of(document) async for document in found]
