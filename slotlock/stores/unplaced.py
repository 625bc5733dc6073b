"""Who did not get a place in a campaign, by address.

A campaign that names groups is for those who carry them: they are looked through some at a time,
and a page ends when enough were found or looked at, so that it never reads a whole school in which
nearly everybody has a place. A campaign for everybody would name the whole system; there it is
those who tried: who waits, or had a place or a turn that ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.bookings import SlotId, Waiting
from slotlock.domain.campaigns import Campaign
from slotlock.domain.people import User, UserId
from slotlock.domain.slots import SlotStatus
from slotlock.domain.unplaced import Unplaced, UnplacedPage
from slotlock.stores.figure_pipelines import Pipeline, lasting
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.mongo import Database, Document
from slotlock.stores.slot_documents import waiting_of
from slotlock.stores.user_documents import SHOWN, user_of

AT_ONCE = 250
MOST_LOOKED_AT = 2_000


class UnplacedPeople:
    """Those who have no place."""

    def __init__(self, database: Database, reports: Gate, lists: Gate) -> None:
        self.gate = reports
        self.lists = lists
        self._database = database

    @gated
    async def page(
        self, campaign: Campaign, group: str | None, first: int, after: str | None, now: datetime
    ) -> UnplacedPage:
        """The next of them, at most `first`; with a group only those who carry it."""
        return await self._in_turn(campaign, group, first, after, now)

    @listed
    async def _in_turn(
        self, campaign: Campaign, group: str | None, first: int, after: str | None, now: datetime
    ) -> UnplacedPage:
        carrying = [{"groups": group}] if group else []
        sets = [{"groups": {"$in": list(groups)}} for groups in campaign.terms.eligible]
        async with self._database.client.start_session(snapshot=True) as session:
            look = _Look(self._database, session, ObjectId(campaign.id), now)
            if sets:
                found = await look.through({"$and": [*carrying, *sets]}, first, after)
            else:
                found = await look.at_those_who_tried(carrying, first, after)
            turns = await look.turns([user.id for user in found.users])
        items = tuple(Unplaced(user, turns.get(user.id, ())) for user in found.users)
        return UnplacedPage(items, found.end, found.more)


@dataclass(frozen=True, slots=True)
class _Found:
    """People without a place, up to which address others were looked at, and if more follow."""

    users: list[User]
    end: str | None
    more: bool

    @classmethod
    def of(cls, users: list[User], first: int, end: str | None, *, more: bool) -> "_Found":
        if len(users) <= first:
            return cls(users, end, more)
        return cls(users[:first], users[first - 1].email, True)


class _Look:
    """A look at one campaign, all of it as of one instant."""

    def __init__(
        self,
        database: Database,
        session: AsyncClientSession,
        campaign_id: ObjectId,
        now: datetime,
    ) -> None:
        self._slots = database["slots"]
        self._users = database["users"]
        self._ended = (database["endedBookings"], database["endedWaits"])
        self._session = session
        self._campaign = {"campaign.id": campaign_id}
        self._now = now

    async def through(self, query: Document, first: int, after: str | None) -> _Found:
        """Those without a place among the people of a query, as far as one page looks."""
        unplaced: list[User] = []
        for _ in range(MOST_LOOKED_AT // AT_ONCE):
            people = await self._people(query, after, AT_ONCE, "group")
            placed = await self._placed([ObjectId(user.id) for user in people])
            unplaced += [user for user in people if ObjectId(user.id) not in placed]
            more = len(people) == AT_ONCE
            after = people[-1].email if people else after
            if not more or len(unplaced) > first:
                return _Found.of(unplaced, first, after, more=more)
        return _Found.of(unplaced, first, after, more=True)

    async def at_those_who_tried(
        self, carrying: list[Document], first: int, after: str | None
    ) -> _Found:
        """Those without a place who wait, or had a place or a turn that ended."""
        tried = await self._distinct(self._slots, self._campaign, "waiting.user")
        tried |= await self._distinct(self._slots, self._campaign, "bookings.user")
        slots = self._slots.find(self._campaign, {"_id": 1}, session=self._session)
        among = {"slot": {"$in": [document["_id"] async for document in slots]}}
        for collection in self._ended:
            tried |= await self._distinct(collection, among, "user")
        tried -= await self._placed(None)
        query: Document = {"$and": [{"_id": {"$in": sorted(tried)}}, *carrying]}
        users = await self._people(query, after, first + 1, "_id_")
        return _Found.of(users, first, users[-1].email if users else None, more=False)

    async def _people(
        self, query: Document, after: str | None, most: int, index: str
    ) -> list[User]:
        query = query if after is None else {**query, "email": {"$gt": after}}
        order = [("email", 1)]
        found = self._users.find(
            query, SHOWN, sort=order, limit=most, hint=index, session=self._session
        )
        return [user_of(document) async for document in found]

    async def _placed(self, among: Sequence[ObjectId] | None) -> set[ObjectId]:
        """Those who have a place, of these people or of all."""
        query: Document = {**self._campaign, "status": SlotStatus.PUBLISHED.value}
        users: Document = {"$map": {"input": lasting(self._now), "in": "$$this.user"}}
        if among is not None:
            query["bookings.user"] = {"$in": among}
            users = {"$setIntersection": [users, among]}
        pipeline: Pipeline = [
            {"$match": query},
            {"$project": {"users": users}},
            {"$unwind": "$users"},
            {"$group": {"_id": "$users"}},
        ]
        found = await self._slots.aggregate(pipeline, session=self._session)
        return {document["_id"] async for document in found}

    async def _distinct(
        self, collection: AsyncCollection[Document], query: Document, field: str
    ) -> set[ObjectId]:
        pipeline: Pipeline = [
            {"$match": query},
            {"$project": {"each": f"${field}"}},
            {"$unwind": "$each"},
            {"$group": {"_id": "$each"}},
        ]
        found = await collection.aggregate(pipeline, session=self._session)
        return {document["_id"] async for document in found}

    async def turns(self, user_ids: Sequence[UserId]) -> Mapping[UserId, tuple[Waiting, ...]]:
        """What these people wait for, by the start of the slots."""
        users = [ObjectId(user_id) for user_id in user_ids]
        theirs = {"$filter": {"input": "$waiting", "cond": {"$in": ["$$this.user", users]}}}
        query = {**self._campaign, "waiting.user": {"$in": users}}
        order = [("start", 1), ("_id", 1)]
        found = self._slots.find(query, {"waiting": theirs}, sort=order, session=self._session)
        turns: dict[UserId, tuple[Waiting, ...]] = {}
        async for document in found:
            for entry in document["waiting"]:
                waiting = waiting_of(SlotId(str(document["_id"])), entry)
                turns[waiting.user_id] = (*turns.get(waiting.user_id, ()), waiting)
        return turns
