"""Counts the users who may book in a campaign, and finds some of them.

If a campaign names no groups, these are all members. Banned users are left out.
"""

from collections.abc import AsyncIterator
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.reports.campaign_reports import BookingPeak, SomeUsers, Uninvited
from slotlock.domain.users.user import MailTopic, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.expressions import (
    Pipeline,
    eligible_to_book,
    unexpired_bookings,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    MADE_LOGIN_NAME,
    PUBLIC_FIELDS,
    to_user,
)

# Counts stop here.
MAX_COUNTED = 100_000


class EligibleUserQueries:
    """Counts and finds the users who may book in a campaign, and when most of them did."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._slots = database["slots"]
        self._users = database["users"]

    @limited
    async def find(self, terms: CampaignTerms, first: int, *, without_password: bool) -> SomeUsers:
        """Count the eligible users, and return the first by address; all, or those without one."""
        query, index = eligible_to_book(terms), "group" if terms.eligible_groups else "banned"
        if without_password:
            query |= {"withoutPassword": True, "identities": None, "$nor": [MADE_LOGIN_NAME]}
            index = "without_password"
        return await self._find(query, first, index)

    async def _find(self, query: Document, first: int, index: str) -> SomeUsers:
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
    async def find_uninvited(self, terms: CampaignTerms, first: int, now: datetime) -> Uninvited:
        """Find the eligible users without a password or a valid invitation."""
        waiting = {**eligible_to_book(terms), "withoutPassword": True, "identities": None}
        valid: Document = {"invitation.until": {"$gt": now}}
        uninvited = {**waiting, "$nor": [valid, MADE_LOGIN_NAME]}
        users = await self._find(uninvited, first, "without_password")
        newest: Pipeline = [
            {"$match": {**waiting, **valid}},
            {"$group": {"_id": None, "until": {"$max": "$invitation.until"}}},
        ]
        async for each in await self._users.aggregate(newest, hint="without_password"):
            return Uninvited(users, each["until"])
        return Uninvited(users, None)

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
