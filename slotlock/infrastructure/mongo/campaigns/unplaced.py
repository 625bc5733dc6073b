"""Finds the users without a place in a campaign, by login name.

If the campaign names groups, a page scans the users of these groups in batches. It ends when it is
full or has scanned enough, so it never reads a whole school in which nearly all users have a place.
If the campaign is open to all users, only those who attempted to get a place are listed. They wait,
or had a booking or a waitlist entry that ended.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.reports.campaign_reports import UnplacedUser, UnplacedUserPage
from slotlock.domain.shared.pagination import SearchedPage
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.expressions import Pipeline, unexpired_bookings
from slotlock.infrastructure.mongo.slots.slot_documents import to_waitlist_entry
from slotlock.infrastructure.mongo.users.user_documents import PUBLIC_FIELDS, to_user

SCAN_BATCH_SIZE = 250
MAX_SCANNED = 2_000


class UnplacedUserQueries:
    """Finds the users without a place in a campaign."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._database = database

    @limited
    async def page(
        self, campaign: Campaign, group: str | None, first: int, after: str | None, now: datetime
    ) -> UnplacedUserPage:
        """Return the next of them, at most `first`; with a group, only its members."""
        group_filters: list[Document] = [{"groups": group}] if group else []
        eligible = [{"groups": {"$in": list(groups)}} for groups in campaign.terms.eligible_groups]
        async with self._database.client.start_session(snapshot=True) as session:
            search = _Search(self._database, session, ObjectId(campaign.id), now)
            if eligible:
                query = {"$and": [*group_filters, *eligible]}
                found = await search.search_eligible(query, first, after)
            else:
                found = await search.search_attempted(group_filters, first, after)
            entries = await search.find_waitlist_entries([user.id for user in found.items])
        items = tuple(UnplacedUser(user, entries.get(user.id, ())) for user in found.items)
        return UnplacedUserPage(items, found.has_more, found.searched_until)


# Users without a place, and the login name of the last one scanned.
_Users = SearchedPage[User, str]


def _first_of(users: list[User], first: int, end: str | None, *, has_more: bool) -> _Users:
    if len(users) <= first:
        return _Users(tuple(users), has_more, end)
    return _Users(tuple(users[:first]), True, users[first - 1].login_name)


class _Search:
    """A search in one campaign, as of one instant."""

    def __init__(
        self,
        database: Database,
        session: AsyncClientSession,
        campaign_id: ObjectId,
        now: datetime,
    ) -> None:
        self._slots = database["slots"]
        self._users = database["users"]
        self._ended_collections = (database["ended_bookings"], database["ended_waitlist_entries"])
        self._session = session
        self._campaign_filter = {"campaign.id": campaign_id}
        self._now = now

    async def search_eligible(self, query: Document, first: int, after: str | None) -> _Users:
        """Return the users of a query without a place, as far as one page scans."""
        unplaced: list[User] = []
        for _ in range(MAX_SCANNED // SCAN_BATCH_SIZE):
            users = await self._find_users(query, after, SCAN_BATCH_SIZE, "group")
            booked = await self._find_booked_user_ids([ObjectId(user.id) for user in users])
            unplaced += [user for user in users if ObjectId(user.id) not in booked]
            has_more = len(users) == SCAN_BATCH_SIZE
            after = users[-1].login_name if users else after
            if not has_more or len(unplaced) > first:
                return _first_of(unplaced, first, after, has_more=has_more)
        return _first_of(unplaced, first, after, has_more=True)

    async def search_attempted(
        self, group_filters: list[Document], first: int, after: str | None
    ) -> _Users:
        """Return the users without a place who attempted to get one."""
        attempted: set[ObjectId] = set()
        for field in ("waitlist.user", "bookings.user"):
            attempted |= await self._distinct_values(self._slots, self._campaign_filter, field)
        slots = self._slots.find(self._campaign_filter, {"_id": 1}, session=self._session)
        in_campaign = {"slot": {"$in": [document["_id"] async for document in slots]}}
        for collection in self._ended_collections:
            attempted |= await self._distinct_values(collection, in_campaign, "user")
        attempted -= await self._find_booked_user_ids(None)
        query: Document = {"$and": [{"_id": {"$in": sorted(attempted)}}, *group_filters]}
        users = await self._find_users(query, after, first + 1, "_id_")
        end = users[-1].login_name if users else None
        return _first_of(users, first, end, has_more=False)

    async def _find_users(
        self, query: Document, after: str | None, limit: int, index: str
    ) -> list[User]:
        query = {**query, "erasedAt": None}
        query = query if after is None else {**query, "email": {"$gt": after}}
        order = [("email", 1)]
        found = self._users.find(
            query, PUBLIC_FIELDS, sort=order, limit=limit, hint=index, session=self._session
        )
        return [to_user(document) async for document in found]

    async def _find_booked_user_ids(self, candidates: Sequence[ObjectId] | None) -> set[ObjectId]:
        """Return the users with a place; only those of the candidates, if given."""
        query: Document = {**self._campaign_filter, "status": SlotStatus.PUBLISHED.value}
        users: Document = {"$map": {"input": unexpired_bookings(self._now), "in": "$$this.user"}}
        if candidates is not None:
            query["bookings.user"] = {"$in": candidates}
            users = {"$setIntersection": [users, candidates]}
        pipeline: Pipeline = [
            {"$match": query},
            {"$project": {"users": users}},
            {"$unwind": "$users"},
            {"$group": {"_id": "$users"}},
        ]
        found = await self._slots.aggregate(pipeline, session=self._session)
        return {document["_id"] async for document in found}

    async def _distinct_values(
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

    async def find_waitlist_entries(
        self, user_ids: Sequence[UserId]
    ) -> Mapping[UserId, tuple[WaitlistEntry, ...]]:
        """Return the waitlist entries of these users, by the start of the slots."""
        users = [ObjectId(user_id) for user_id in user_ids]
        own_entries = {"$filter": {"input": "$waitlist", "cond": {"$in": ["$$this.user", users]}}}
        query = {**self._campaign_filter, "waitlist.user": {"$in": users}}
        order = [("start", 1), ("_id", 1)]
        found = self._slots.find(
            query, {"waitlist": own_entries}, sort=order, session=self._session
        )
        by_user: dict[UserId, tuple[WaitlistEntry, ...]] = {}
        async for document in found:
            for subdocument in document["waitlist"]:
                entry = to_waitlist_entry(SlotId(str(document["_id"])), subdocument)
                by_user[entry.user_id] = (*by_user.get(entry.user_id, ()), entry)
        return by_user
