"""Stores the ranked wishes of users and teams.

    draw_wishes: {_id, draw, campaign, users: [user], slots: [slot], salt, by, at}

A unique index gives each user one document per draw, also as a member of a team.
Pages ask by `campaign`, which is that of the draw, whether a user has wishes in any draw of it.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId
from slotlock.domain.draws.draw import Draw
from slotlock.domain.draws.wish_closing import SeenWishes, Wishes
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of
from slotlock.infrastructure.mongo.transactions import in_transaction

BATCH_SIZE = 1_000
WISH_INDEXES = indexes_of(
    "draw_wishes",
    {
        "users": ([("draw", 1), ("users", 1)], {"unique": True}),
        # For an erasure, and what a user exports.
        "user": ([("users", 1)], {}),
    },
)
UNIQUE_INDEX = "draw_wishes.users"


@value_object
class SlotDemand:
    """How many users wish for a slot, and how many of them as their first wish."""

    slot_id: SlotId
    wishes: int
    first_wishes: int


class WishRepository:
    """Stores what users wish for in a draw."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, required: RequiredIndexes
    ) -> None:
        self.limiter = limiter
        self._required = required
        self._database = database
        self._wishes = database["draw_wishes"]

    @limited
    async def save(
        self,
        draw: Draw,
        wishes: Wishes,
        senders: Sequence[UserId],
        mates: Collection[UserId] = (),
        seen: SeenWishes | None = None,
    ) -> ProblemCode | None:
        """Replace the wishes of exactly these users, whose salt does not change.

        If there are none, what the senders had before ends, alone or only with these mates. If
        there are others, they have it without the senders. No slots end what the senders had.

        Return why nothing was changed: another member has wishes elsewhere, or the first sender has
        others than the ones seen. A repetition, which finds what it saves, succeeds.
        """
        self._required.require(UNIQUE_INDEX)
        document = _to_document(draw, wishes)
        own = {name: document[name] for name in ("draw", "users")}
        if seen is not None:
            own["at"] = seen.changed_at
        change = {"$set": {name: document[name] for name in ("slots", "by", "at")}}
        if document["slots"] and (await self._wishes.update_one(own, change)).matched_count:
            return None

        async def move(session: AsyncClientSession) -> ProblemCode | None:
            query = _of_users(draw.id, senders)
            before = await self._wishes.find(query, session=session).to_list()
            if seen is not None and _has_changed(before, senders[0], seen, document):
                return ProblemCode.WISHES_CHANGED
            await self._end(draw.id, senders, mates, wishes.at, session)
            if document["slots"]:
                same = (each["salt"] for each in before if each["users"] == document["users"])
                salt = next(same, wishes.salt)
                await self._wishes.insert_one({**document, "salt": salt}, session=session)
            return None

        try:
            return await in_transaction(self._database, move)
        except DuplicateKeyError:
            return ProblemCode.WISHES_ELSEWHERE

    @limited
    async def insert(self, draw: Draw, wishes: Sequence[Wishes]) -> None:
        """Insert the first wishes of a draw."""
        self._required.require(UNIQUE_INDEX)
        for batch in chunked(wishes, BATCH_SIZE):
            await self._wishes.insert_many([_to_document(draw, each) for each in batch])

    async def _end(
        self,
        draw_id: DrawId,
        user_ids: Collection[UserId],
        mates: Collection[UserId],
        now: datetime,
        session: AsyncClientSession,
    ) -> None:
        """Delete the wishes of users, alone or only with these mates; others have them without."""
        query, known = _of_users(draw_id, user_ids), [ObjectId(each) for each in mates]
        ended = query["users"]
        # A unique index needs a user in each document.
        others = {"$elemMatch": {"$nin": [*ended["$in"], *known]}}
        has_others = {**query, "users": {**ended, **others}}
        change = {"$pull": {"users": ended}, "$set": {"at": now}}
        await self._wishes.update_many(has_others, change, session=session)
        await self._wishes.delete_many(query, session=session)

    @limited
    async def remove_user(self, user_id: UserId, draw_ids: Sequence[DrawId] | None = None) -> None:
        """Remove a user from the wishes in these draws, or in all of them.

        The other members of a team have their wishes without the user.
        """
        user = ObjectId(user_id)
        draws: Document = (
            {} if draw_ids is None else {"draw": {"$in": [ObjectId(each) for each in draw_ids]}}
        )
        # A unique index needs a user in each document.
        await self._wishes.delete_many({**draws, "users": [user]})
        of_team = {"users": user}
        await self._wishes.update_many({**draws, **of_team}, {"$pull": of_team})

    @limited
    async def find_of_user(self, user_id: UserId) -> list[tuple[DrawId, Wishes]]:
        """Return what a user wishes for in each draw, alone or with a team, newest draw first."""
        found = self._wishes.find({"users": ObjectId(user_id)})
        documents = [document async for document in found]
        documents.sort(key=lambda document: document["draw"], reverse=True)
        return [(DrawId(str(each["draw"])), _to_wishes(each)) for each in documents]

    @limited
    async def find(self, draw_id: DrawId, user_id: UserId) -> Wishes | None:
        """Return the wishes that a user has, alone or with a team."""
        query = {"draw": ObjectId(draw_id), "users": ObjectId(user_id)}
        found = await self._wishes.find_one(query)
        return _to_wishes(found) if found else None

    @limited
    async def find_wished(
        self, campaign_ids: Sequence[CampaignId], user_ids: Collection[UserId]
    ) -> set[CampaignId]:
        """Return those of the campaigns in which one of these users has wishes in any draw."""
        campaigns = {"$in": [ObjectId(each) for each in campaign_ids]}
        users = {"$in": [ObjectId(each) for each in user_ids]}
        query = {"campaign": campaigns, "users": users}
        found = self._wishes.find(query, {"campaign": 1})
        return {CampaignId(str(document["campaign"])) async for document in found}

    @limited
    async def find_all(self, draw_id: DrawId) -> list[Wishes]:
        """Return all wishes in a draw."""
        found = self._wishes.find({"draw": ObjectId(draw_id)}, batch_size=BATCH_SIZE)
        return [_to_wishes(document) async for document in found]

    @limited
    async def count(self, draw_id: DrawId) -> int:
        """Return how many users and teams have wishes in a draw."""
        return await self._wishes.count_documents({"draw": ObjectId(draw_id)})

    @limited
    async def count_by_slot(self, draw: Draw, now: datetime) -> Sequence[SlotDemand]:
        """Return how often each slot is wished for, the most wanted first.

        Open slots of the campaign that nobody wishes for are the last.
        """
        users, none = {"$size": "$users"}, {"$literal": 0}
        is_open = {
            "campaign.id": ObjectId(draw.campaign_id),
            "status": SlotStatus.PUBLISHED.value,
            "start": {"$gt": now},
        }
        unwished = [{"$match": is_open}, {"$project": {"wishes": none, "first": none}}]
        pipeline: list[Document] = [
            {"$match": {"draw": ObjectId(draw.id)}},
            {"$unwind": {"path": "$slots", "includeArrayIndex": "rank"}},
            {
                "$group": {
                    "_id": "$slots",
                    "wishes": {"$sum": users},
                    "first": {"$sum": {"$cond": [{"$eq": ["$rank", 0]}, users, 0]}},
                }
            },
            {"$unionWith": {"coll": "slots", "pipeline": unwished}},
            {
                "$group": {
                    "_id": "$_id",
                    "wishes": {"$sum": "$wishes"},
                    "first": {"$sum": "$first"},
                }
            },
            {"$sort": {"wishes": -1, "_id": 1}},
        ]
        found = await self._wishes.aggregate(pipeline)
        return [
            SlotDemand(SlotId(str(each["_id"])), each["wishes"], each["first"])
            async for each in found
        ]


def _has_changed(
    before: Sequence[Document], user_id: UserId, seen: SeenWishes, document: Document
) -> bool:
    """Return whether a user has other wishes than the ones seen, and than those to be saved."""
    stored = [(each["users"], each["slots"]) for each in before]
    if stored == ([(document["users"], document["slots"])] if document["slots"] else []):
        return False
    own = (each["at"] for each in before if ObjectId(user_id) in each["users"])
    return next(own, None) != seen.changed_at


def _of_users(draw_id: DrawId, user_ids: Collection[UserId]) -> Document:
    return {"draw": ObjectId(draw_id), "users": {"$in": [ObjectId(each) for each in user_ids]}}


def _to_document(draw: Draw, wishes: Wishes) -> Document:
    return {
        "draw": ObjectId(draw.id),
        "campaign": ObjectId(draw.campaign_id),
        "users": [ObjectId(user_id) for user_id in sorted(wishes.user_ids)],
        "slots": [ObjectId(slot_id) for slot_id in wishes.slot_ids],
        "salt": wishes.salt,
        "by": ObjectId(wishes.by),
        "at": wishes.at,
    }


def _to_wishes(document: Document) -> Wishes:
    return Wishes(
        tuple(UserId(str(user)) for user in document["users"]),
        tuple(SlotId(str(slot)) for slot in document["slots"]),
        document["salt"],
        UserId(str(document["by"])),
        document["at"],
    )
