"""What new and changed slots depend on besides themselves: a campaign's terms, a resource's use.

resources: {_id: name, version}
"""

from dataclasses import dataclass

from bson import ObjectId
from pymongo import UpdateOne

from slotlock.domain.campaigns.terms import CampaignId


@dataclass(frozen=True, slots=True)
class CampaignVersion:
    """The terms that slots were given."""

    campaign_id: CampaignId
    version: int


@dataclass(frozen=True, slots=True)
class ResourceVersion:
    """The slots of a resource, as they were when it was seen to be free."""

    name: str
    version: int


Precondition = CampaignVersion | ResourceVersion


def version_check(precondition: Precondition) -> tuple[str, UpdateOne]:
    """The collection, and the update that matches only what was seen.

    It writes, because what a transaction only reads may be changed while it goes on.
    """
    if isinstance(precondition, CampaignVersion):
        seen = {"_id": ObjectId(precondition.campaign_id), "terms.version": precondition.version}
        return "campaigns", UpdateOne(seen, {"$inc": {"touchCount": 1}})
    if precondition.version:
        return "resources", UpdateOne(
            {"_id": precondition.name, "version": precondition.version}, {"$inc": {"version": 1}}
        )
    # A resource that somebody began to use meanwhile is a duplicate key.
    begun = {"_id": precondition.name, "version": 0}
    return "resources", UpdateOne(begun, {"$set": {"version": 1}}, upsert=True)
