"""Stores announcements, and finds who gets them.

    announcements: {_id: hash of the organizer and the key, requestHash, at, by, slot?, campaign?,
                    withWaiting, unplaced?, about, subject, text, recipientCount?}

An announcement without `recipientCount` may lack some of its mails: repeating the request, or a
worker, adds them. Its mails refer to it, so that it stays as long as they do.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.announcements import Announcement, Audience
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.expressions import Pipeline
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.outbox.outbox_repository import RETENTION
from slotlock.infrastructure.mongo.transactions import change_with_note

# Its last mail may be inserted, and expire, later than itself.
TTL = RETENTION + timedelta(days=1)
ANNOUNCEMENT_INDEXES = indexes_of(
    "announcements",
    {
        "expiry": ([("at", 1)], {"expireAfterSeconds": int(TTL.total_seconds())}),
        "by": ([("by", 1), ("at", 1)], {}),
    },
)


class AnnouncementRepository:
    """Inserts announcements, and finds their recipients."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._announcements = database["announcements"]
        self._slots = database["slots"]

    async def find(self, announcement_id: str) -> Announcement | None:
        """Return an announcement; None if there is none."""
        found = await self._announcements.find_one({"_id": announcement_id})
        return _to_announcement(found) if found else None

    async def insert(self, announcement: Announcement) -> bool:
        """Insert an announcement. Return False if another request of its key was first."""
        try:
            await self._announcements.insert_one(_to_document(announcement))
        except DuplicateKeyError:
            return False
        return True

    async def finish(self, announcement: Announcement, count: int, note: AuditNote) -> None:
        """Record that all mails are in the outbox, once, with an audit note."""
        unfinished = {"_id": announcement.id, "recipientCount": None}
        change = {"$set": {"recipientCount": count}}
        finish = partial(self._announcements.find_one_and_update, unfinished, change, {"_id": 1})
        await change_with_note(self._database, finish, note)

    async def find_unfinished(self, since: datetime, until: datetime) -> list[Announcement]:
        """Return those begun in this period that may lack some of their mails."""
        query: Document = {"at": {"$gt": since, "$lte": until}, "recipientCount": None}
        found = self._announcements.find(query, sort=[("at", 1)])
        return [_to_announcement(document) async for document in found]

    async def find_nth_newest(
        self, by: UserId | None, since: datetime, number: int
    ) -> datetime | None:
        """Return when the n-th newest announcement was begun, by a user or by all.

        None if there are fewer since then.
        """
        query: Document = {"at": {"$gt": since}, **({"by": ObjectId(by)} if by else {})}
        order, skip = [("at", -1)], number - 1
        found = await self._announcements.find_one(query, {"at": 1}, sort=order, skip=skip)
        return found["at"] if found else None

    async def find_users(self, audience: Audience, now: datetime) -> list[UserId]:
        """Return the users of an audience, each once."""
        if audience.slot_id is not None:
            query: Document = {"_id": ObjectId(audience.slot_id)}
        else:
            query = {
                "campaign.id": ObjectId(audience.campaign_id),
                "status": SlotStatus.PUBLISHED.value,
            }
        has_place: Document = {"$lte": ["$$this.heldUntil", None]}
        if audience.with_waiting:
            has_place = {"$or": [has_place, {"$gt": ["$$this.heldUntil", now]}]}
        users: Document = {
            "$map": {
                "input": {"$filter": {"input": "$bookings", "cond": has_place}},
                "in": "$$this.user",
            }
        }
        if audience.with_waiting:
            users = {"$concatArrays": [users, "$waitlist.user"]}
        pipeline: Pipeline = [
            {"$match": query},
            {"$project": {"users": users}},
            {"$unwind": "$users"},
            {"$group": {"_id": "$users"}},
            {"$sort": {"_id": 1}},
        ]
        return [UserId(str(each["_id"])) async for each in await self._slots.aggregate(pipeline)]


def _to_document(announcement: Announcement) -> Document:
    audience = announcement.audience
    return {
        "_id": announcement.id,
        "requestHash": announcement.request_hash,
        "at": announcement.at,
        "by": ObjectId(announcement.by),
        **({"slot": ObjectId(audience.slot_id)} if audience.slot_id else {}),
        **({"campaign": ObjectId(audience.campaign_id)} if audience.campaign_id else {}),
        "withWaiting": audience.with_waiting,
        **({"unplaced": True} if audience.unplaced else {}),
        "about": announcement.about,
        "subject": announcement.subject,
        "text": announcement.text,
    }


def _to_announcement(document: Mapping[str, Any]) -> Announcement:
    audience = Audience(
        SlotId(str(document["slot"])) if "slot" in document else None,
        CampaignId(str(document["campaign"])) if "campaign" in document else None,
        document["withWaiting"],
        document.get("unplaced", False),
    )
    return Announcement(
        document["_id"],
        document["requestHash"],
        document["at"],
        UserId(str(document["by"])),
        audience,
        document["about"],
        document["subject"],
        document["text"],
        document.get("recipientCount"),
    )
