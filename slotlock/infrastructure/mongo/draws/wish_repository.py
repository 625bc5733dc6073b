"""Stores the ranked wishes of users and teams.

    wishes: {_id, campaign, users: [user], slots: [slot], salt, by, at}

A unique index gives each user one document per campaign, also as a member of a team.
"""

from collections.abc import Sequence

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.closing import Wishes
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of

WISH_INDEXES = indexes_of(
    "wishes",
    {
        "users": ([("campaign", 1), ("users", 1)], {"unique": True}),
        # For an erasure, and what a user exports.
        "user": ([("users", 1)], {}),
    },
)
UNIQUE_INDEX = "wishes.users"


@value_object
class SlotDemand:
    """How many users wish for a slot, and how many of them as their first wish."""

    slot_id: SlotId
    wishes: int
    first_wishes: int


class WishRepository:
    """Stores what users wish for in the draw of a campaign."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, required: RequiredIndexes
    ) -> None:
        self.limiter = limiter
        self._required = required
        self._wishes = database["wishes"]

    @limited
    async def save(self, campaign_id: CampaignId, wishes: Wishes) -> bool:
        """Replace the wishes of exactly these users, whose salt does not change.

        Those of a team replace what the sender wished for alone. Return False if another member
        has wishes elsewhere, or a user who wishes alone has them with a team.
        """
        self._required.require(UNIQUE_INDEX)
        users = [ObjectId(user_id) for user_id in sorted(wishes.user_ids)]
        campaign, by = ObjectId(campaign_id), ObjectId(wishes.by)
        new = {"salt": wishes.salt}
        change = {
            "slots": [ObjectId(slot_id) for slot_id in wishes.slot_ids],
            "by": by,
            "at": wishes.at,
        }
        try:
            query = {"campaign": campaign, "users": users}
            await self._wishes.update_one(query, {"$set": change, "$setOnInsert": new}, upsert=True)
        except DuplicateKeyError:
            alone = {"campaign": campaign, "users": [by]}
            try:
                moved = {"$set": {**change, **new, "users": users}}
                return (await self._wishes.update_one(alone, moved)).matched_count == 1
            except DuplicateKeyError:
                return False
        return True

    @limited
    async def delete(self, campaign_id: CampaignId, user_id: UserId) -> bool:
        """Delete the wishes of a user and the team with whom they are. Return if there were any."""
        query = {"campaign": ObjectId(campaign_id), "users": ObjectId(user_id)}
        return (await self._wishes.delete_one(query)).deleted_count == 1

    @limited
    async def remove_user(
        self, user_id: UserId, campaign_ids: Sequence[CampaignId] | None = None
    ) -> None:
        """Remove a user from the wishes in these campaigns, or in all of them.

        The other members of a team have their wishes without the user.
        """
        user = ObjectId(user_id)
        campaigns: Document = (
            {}
            if campaign_ids is None
            else {"campaign": {"$in": [ObjectId(each) for each in campaign_ids]}}
        )
        # A unique index needs a user in each document.
        await self._wishes.delete_many({**campaigns, "users": [user]})
        of_team = {"users": user}
        await self._wishes.update_many({**campaigns, **of_team}, {"$pull": of_team})

    @limited
    async def find_campaigns(self, user_id: UserId) -> list[CampaignId]:
        """Return the campaigns in which a user has wishes, alone or with a team."""
        found = self._wishes.find({"users": ObjectId(user_id)}, {"campaign": 1})
        return [CampaignId(str(document["campaign"])) async for document in found]

    @limited
    async def find(self, campaign_id: CampaignId, user_id: UserId) -> Wishes | None:
        """Return the wishes that a user has, alone or with a team."""
        query = {"campaign": ObjectId(campaign_id), "users": ObjectId(user_id)}
        found = await self._wishes.find_one(query)
        return _to_wishes(found) if found else None

    @limited
    async def find_wished(
        self, campaign_ids: Sequence[CampaignId], user_id: UserId
    ) -> set[CampaignId]:
        """Return those of the campaigns in which a user has wishes, alone or with a team."""
        campaigns = {"$in": [ObjectId(each) for each in campaign_ids]}
        query = {"campaign": campaigns, "users": ObjectId(user_id)}
        found = self._wishes.find(query, {"campaign": 1})
        return {CampaignId(str(document["campaign"])) async for document in found}

    @limited
    async def find_all(self, campaign_id: CampaignId) -> list[Wishes]:
        """Return all wishes in a campaign."""
        found = self._wishes.find({"campaign": ObjectId(campaign_id)}, batch_size=5_000)
        return [_to_wishes(document) async for document in found]

    @limited
    async def count_by_slot(self, campaign_id: CampaignId) -> Sequence[SlotDemand]:
        """Return how often each slot is wished for, the most wanted first."""
        users = {"$size": "$users"}
        pipeline: list[Document] = [
            {"$match": {"campaign": ObjectId(campaign_id)}},
            {"$unwind": {"path": "$slots", "includeArrayIndex": "rank"}},
            {
                "$group": {
                    "_id": "$slots",
                    "wishes": {"$sum": users},
                    "first": {"$sum": {"$cond": [{"$eq": ["$rank", 0]}, users, 0]}},
                }
            },
            {"$sort": {"wishes": -1, "_id": 1}},
        ]
        found = await self._wishes.aggregate(pipeline)
        return [
            SlotDemand(SlotId(str(each["_id"])), each["wishes"], each["first"])
            async for each in found
        ]


def _to_wishes(document: Document) -> Wishes:
    return Wishes(
        tuple(UserId(str(user)) for user in document["users"]),
        tuple(SlotId(str(slot)) for slot in document["slots"]),
        document["salt"],
        UserId(str(document["by"])),
        document["at"],
    )
