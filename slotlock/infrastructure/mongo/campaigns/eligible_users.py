"""Counts the users who may book in a campaign, and finds some of them.

If a campaign names no groups, these are all members. Banned users are left out.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from itertools import chain
from operator import attrgetter

from bson import ObjectId

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.reports.campaign_reports import BookingPeak, SomeUsers, UsersWithoutPassword
from slotlock.domain.users.user import MailTopic, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.expressions import (
    Pipeline,
    eligible_to_book,
    unexpired_bookings,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    PUBLIC_FIELDS,
    WITH_GUARDIANS_ONLY,
    to_user,
)

# Counts stop here.
MAX_COUNTED = 100_000
CAN_SIGN_IN: Document = {
    "banned": None,
    "$or": [{"withoutPassword": None}, {"identities": {"$ne": None}}],
}
# Until when the last invitation of a guardian is valid; that of a banned one is not.
LAST_INVITED: Document = {
    "$max": {
        "$map": {
            "input": {"$filter": {"input": "$guardians", "cond": {"$not": "$$this.banned"}}},
            "in": "$$this.invitation.until",
        }
    }
}


class EligibleUserQueries:
    """Counts and finds the users who may book in a campaign, and when most of them did."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._slots = database["slots"]
        self._users = database["users"]

    @limited
    async def find(self, terms: CampaignTerms, first: int) -> SomeUsers:
        """Count the eligible users, and return the first by login name."""
        query, index = eligible_to_book(terms), "group" if terms.eligible_groups else "banned"
        order = [("email", 1)]  # that of each of the indexes
        found = self._users.find(query, PUBLIC_FIELDS, sort=order, limit=first, hint=index)
        users = tuple([to_user(document) async for document in found])
        count = len(users)
        if count == first:
            count = await self._users.count_documents(query, limit=MAX_COUNTED)
        return SomeUsers(count, users)

    async def find_recipients(self, terms: CampaignTerms) -> AsyncIterator[UserId]:
        """Yield the users who may book in a campaign, have an address, and want to hear of it.

        Yield their guardians too, each user once: whether they want it is not asked yet.
        """
        yielded, fields = set[ObjectId](), ("email", "refusedTopics", "guardians")
        async for document in self._users.find(eligible_to_book(terms), dict.fromkeys(fields, 1)):
            recipients = [*document.get("guardians", ())]
            is_refused = MailTopic.ANNOUNCEMENTS.value in document.get("refusedTopics", ())
            if "@" in document["email"] and not is_refused:
                recipients.append(document["_id"])
            for user_id in recipients:
                if user_id not in yielded:
                    yielded.add(user_id)
                    yield UserId(str(user_id))

    @limited
    async def find_without_password(
        self, terms: CampaignTerms, first: int, now: datetime
    ) -> UsersWithoutPassword:
        """Find the eligible users for whom nobody can sign in: themselves, or a guardian."""
        waiting = {**eligible_to_book(terms), "withoutPassword": True, "identities": None}
        children: Pipeline = [
            {"$match": {**waiting, **WITH_GUARDIANS_ONLY}},
            _join_users("guardians"),
            {"$match": {"guardians": {"$not": {"$elemMatch": CAN_SIGN_IN}}}},
            {"$project": {"email": 1, "until": LAST_INVITED}},
        ]
        by_invitation: Pipeline = [
            {"$match": {**waiting, "$nor": [WITH_GUARDIANS_ONLY]}},
            {"$project": {"email": 1, "until": "$invitation.until"}},
            {"$unionWith": {"coll": "users", "pipeline": children}},
            {"$limit": MAX_COUNTED},
            {
                "$group": {
                    "_id": {"$gt": ["$until", now]},
                    "count": {"$sum": 1},
                    "until": {"$max": "$until"},
                    "first": {"$topN": {"n": first, "sortBy": {"email": 1}, "output": "$_id"}},
                }
            },
            _join_users("first"),
        ]
        by_login_name = attrgetter("login_name")
        found, until = {True: SomeUsers(0, ()), False: SomeUsers(0, ())}, None
        async for each in await self._users.aggregate(by_invitation, hint="without_password"):
            users = sorted(map(to_user, each["first"]), key=by_login_name)
            found[each["_id"]] = SomeUsers(each["count"], tuple(users))
            until = each["until"] if each["_id"] else until
        count = sum(each.count for each in found.values())
        users = sorted(chain(*(each.examples for each in found.values())), key=by_login_name)
        return UsersWithoutPassword(SomeUsers(count, tuple(users[:first])), found[False], until)

    @limited
    async def count_unplaced(self, terms: CampaignTerms, now: datetime) -> int:
        """Count the eligible users without a booking in the published slots of a campaign."""
        campaign_id = ObjectId(terms.campaign_id)
        booked: Pipeline = [
            {"$match": {"campaign.id": campaign_id, "status": SlotStatus.PUBLISHED.value}},
            {
                "$project": {
                    "users": {"$map": {"input": unexpired_bookings(now), "in": "$$this.user"}}
                }
            },
            {"$unwind": "$users"},
            {"$group": {"_id": "$users"}},
        ]
        users = [each["_id"] async for each in await self._slots.aggregate(booked)]
        query = {**eligible_to_book(terms), "_id": {"$nin": users}}
        return await self._users.count_documents(query, limit=MAX_COUNTED)

    @limited
    async def find_peak(self, campaign_id: CampaignId, now: datetime) -> BookingPeak | None:
        """Return the minute with the most bookings up to now, those that ended included."""
        query = {"campaign.id": ObjectId(campaign_id)}
        slot_ids = [document["_id"] async for document in self._slots.find(query, {"_id": 1})]
        created_at = {"$ifNull": [{"$first": "$bookings.history.at"}, "$bookings.at"]}
        ended: Pipeline = [
            {"$match": {"slot": {"$in": slot_ids}}},
            {"$project": {"at": {"$first": "$history.at"}}},
        ]
        minutes: Pipeline = [
            {"$match": query},
            {"$project": {"bookings": 1}},
            {"$unwind": "$bookings"},
            {"$project": {"at": created_at}},
            {"$unionWith": {"coll": "ended_bookings", "pipeline": ended}},
            {"$match": {"at": {"$lte": now}}},
            {
                "$group": {
                    "_id": {"$dateTrunc": {"date": "$at", "unit": "minute"}},
                    "n": {"$sum": 1},
                }
            },
            {"$sort": {"n": -1, "_id": 1}},
            {"$limit": 1},
        ]
        async for each in await self._slots.aggregate(minutes):
            return BookingPeak(each["_id"], each["n"])
        return None


def _join_users(field: str) -> Document:
    """Return the stage that replaces ids by users; it has no pipeline, so that it is fast."""
    return {"$lookup": {"from": "users", "localField": field, "foreignField": "_id", "as": field}}
