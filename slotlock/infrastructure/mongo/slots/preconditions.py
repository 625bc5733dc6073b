"""What new and changed slots depend on besides themselves: campaign terms and the use of resources.

resources: {_id: name, version}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.infrastructure.mongo.client import RESOURCES_CONCURRENCY, Database
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.slots.documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection


@dataclass(frozen=True, slots=True)
class CampaignVersion:
    """The version of the terms that slots were given."""

    campaign_id: CampaignId
    version: int


@dataclass(frozen=True, slots=True)
class ResourceVersion:
    """The version of a resource when its slots were loaded."""

    name: str
    version: int


Precondition = CampaignVersion | ResourceVersion


def version_check(precondition: Precondition) -> tuple[str, UpdateOne]:
    """Return the collection, and the update that matches only the version that was loaded.

    It writes, because another transaction can change a document that this one only reads.
    """
    if isinstance(precondition, CampaignVersion):
        loaded = {"_id": ObjectId(precondition.campaign_id), "terms.version": precondition.version}
        return "campaigns", UpdateOne(loaded, {"$inc": {"touchCount": 1}})
    by_version = {"_id": precondition.name, "version": precondition.version}
    if precondition.version:
        return "resources", UpdateOne(by_version, {"$inc": {"version": 1}})
    # If another transaction inserts the first version, this upsert has a duplicate key.
    return "resources", UpdateOne(by_version, {"$set": {"version": 1}}, upsert=True)


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
