"""Reads the descriptions of slots and campaigns, which are not loaded with the other fields."""

from collections.abc import Mapping, Sequence

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited_listing


class DescriptionQueries:
    """Finds the descriptions that a client selects, in one query for each operation."""

    def __init__(self, database: Database, list_limiter: ConcurrencyLimiter) -> None:
        self.list_limiter = list_limiter
        self._slots = database["slots"]
        self._campaigns = database["campaigns"]

    @limited_listing
    async def find_of_slots(
        self, slot_ids: Sequence[SlotId], max_length: int | None = None
    ) -> Mapping[str, str]:
        """Return the descriptions of those of the slots that have one, by id.

        With `max_length`, they are at most the first so many characters of each.
        """
        return await _find_descriptions(self._slots, slot_ids, max_length)

    @limited_listing
    async def find_of_campaigns(self, campaign_ids: Sequence[CampaignId]) -> Mapping[str, str]:
        """Return the descriptions of those of the campaigns that have one, by id."""
        return await _find_descriptions(self._campaigns, campaign_ids)


async def _find_descriptions(
    collection: AsyncCollection[Document], ids: Sequence[str], max_length: int | None = None
) -> Mapping[str, str]:
    query = {"_id": {"$in": [ObjectId(id_) for id_ in ids]}, "description": {"$exists": True}}
    first = {"$substrCP": ["$description", 0, max_length]}
    found = collection.find(query, {"description": 1 if max_length is None else first})
    return {str(document["_id"]): document["description"] async for document in found}
