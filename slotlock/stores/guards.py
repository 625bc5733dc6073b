"""What new and changed slots depend on besides themselves: a campaign's terms, a resource's use.

resources: {_id: name, version}
"""

from dataclasses import dataclass

from bson import ObjectId
from pymongo import UpdateOne

from slotlock.domain.terms import CampaignId


@dataclass(frozen=True, slots=True)
class CampaignSeen:
    """The terms that slots were given."""

    campaign_id: CampaignId
    version: int


@dataclass(frozen=True, slots=True)
class ResourceSeen:
    """The slots of a resource, as they were when it was seen to be free."""

    name: str
    version: int


Guard = CampaignSeen | ResourceSeen


def held(guard: Guard) -> tuple[str, UpdateOne]:
    """The collection, and the update that matches only what was seen.

    It writes, because what a transaction only reads may be changed while it goes on.
    """
    if isinstance(guard, CampaignSeen):
        seen = {"_id": ObjectId(guard.campaign_id), "terms.version": guard.version}
        return "campaigns", UpdateOne(seen, {"$inc": {"touched": 1}})
    if guard.version:
        return "resources", UpdateOne(
            {"_id": guard.name, "version": guard.version}, {"$inc": {"version": 1}}
        )
    # A resource that somebody began to use meanwhile is a duplicate key.
    begun = {"_id": guard.name, "version": 0}
    return "resources", UpdateOne(begun, {"$set": {"version": 1}}, upsert=True)
