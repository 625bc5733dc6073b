"""The preconditions of new and changed slots: campaign terms, resources and dates of a series.

Each commit that depends on them checks that their versions are those that were loaded.
"""

from bson import ObjectId
from pymongo import UpdateOne

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.values import value_object


@value_object
class CampaignVersion:
    """The version of the terms that slots were given."""

    campaign_id: CampaignId
    version: int


@value_object
class ResourceVersion:
    """The version of a resource when its slots were loaded; no version if there was none."""

    name: str
    version: int | None


@value_object
class SeriesVersion:
    """How often dates were added to a series, which its slot with the lowest id counts."""

    counting_slot_id: SlotId
    version: int


Precondition = CampaignVersion | ResourceVersion | SeriesVersion


def version_check(precondition: Precondition) -> tuple[str, UpdateOne]:
    """Return the collection, and the update that matches only the version that was loaded.

    It writes, because another transaction can change a document that this one only reads.
    """
    if isinstance(precondition, CampaignVersion):
        loaded = {"_id": ObjectId(precondition.campaign_id), "terms.version": precondition.version}
        return "campaigns", UpdateOne(loaded, {"$inc": {"touchCount": 1}})
    if isinstance(precondition, SeriesVersion):
        # No field means that no dates were added yet.
        counting = {
            "_id": ObjectId(precondition.counting_slot_id),
            "seriesVersion": precondition.version or None,
        }
        return "slots", UpdateOne(counting, {"$inc": {"seriesVersion": 1}})
    # No upsert: a slot never creates a resource that was missing, or is deleted meanwhile.
    by_version = {"_id": precondition.name, "version": precondition.version}
    return "resources", UpdateOne(by_version, {"$inc": {"version": 1}})
