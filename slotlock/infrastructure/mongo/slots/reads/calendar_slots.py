"""Reads the slots that calendars show, in pages, because a slot may have hundreds of meetings."""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.expressions import follows
from slotlock.infrastructure.mongo.slots.slot_query import find_states

PAGE_SIZE = 100
VISIBLE_STATUSES = [SlotStatus.PUBLISHED.value, SlotStatus.CANCELLED.value]
FORWARD, BACKWARD = 1, -1


class CalendarSlotQueries:
    """Finds the slots of a calendar, page by page."""

    def __init__(self, database: Database, list_limiter: ConcurrencyLimiter) -> None:
        self.list_limiter = list_limiter
        self._slots = database["slots"]
        self._notes = database["audit_notes"]

    @limited_listing
    async def find_by_user(
        self, user_id: UserId, since: datetime, now: datetime, after: SlotState | None
    ) -> Sequence[SlotState]:
        """Return the next slots with a live booking of a user, latest first, back to `since`."""
        query = {"bookings.user": ObjectId(user_id), "end": {"$gte": since}}
        return await self._next_page(query, "booked_user", BACKWARD, after, now, [user_id])

    @limited_listing
    async def find_upcoming(
        self, campaign_id: CampaignId | None, now: datetime, after: SlotState | None
    ) -> Sequence[SlotState]:
        """Return the next published and cancelled slots that have not ended."""
        query = _published_query(campaign_id, {"$gte": now})
        return await self._next_page(query, _index_for(campaign_id), FORWARD, after, now)

    @limited_listing
    async def find_past(
        self,
        campaign_id: CampaignId | None,
        since: datetime,
        now: datetime,
        after: SlotState | None,
    ) -> Sequence[SlotState]:
        """Return the next published and cancelled slots that ended after `since`, latest first."""
        query = _published_query(campaign_id, {"$gte": since, "$lt": now})
        return await self._next_page(query, _index_for(campaign_id), BACKWARD, after, now)

    @limited_listing
    async def find_created_by(
        self, user_id: UserId, since: datetime, limit: int
    ) -> Sequence[SlotId]:
        """Return the slots that an organizer created after `since`, the newest first."""
        created = NoteAction.SLOT_CREATED.value
        query = {"by": ObjectId(user_id), "action": created, "at": {"$gte": since}}
        newest = [("at", -1), ("_id", -1)]
        found = self._notes.find(query, {"slot": 1}, sort=newest, limit=limit, hint="by")
        return [SlotId(str(document["slot"])) async for document in found]

    @limited_listing
    async def find_visible(
        self, slot_ids: Sequence[SlotId], since: datetime, now: datetime
    ) -> Sequence[SlotState]:
        """Return those of the slots that are published or cancelled, and ended after `since`."""
        ids = {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}
        query = {"_id": ids, "status": {"$in": VISIBLE_STATUSES}, "end": {"$gte": since}}
        return await find_states(self._slots, query, now, hint="_id_")

    @limited_listing
    async def find_of_resource(
        self, name: str, since: datetime, now: datetime, after: SlotState | None
    ) -> Sequence[SlotState]:
        """Return the next published and cancelled slots of a resource, latest first."""
        query = {**_published_query(None, {"$gte": since}), "resource": name}
        return await self._next_page(query, "resource_start", BACKWARD, after, now)

    async def _next_page(
        self,
        query: Document,
        index: str,
        order: int,
        after: SlotState | None,
        now: datetime,
        user_ids: Sequence[UserId] = (),
    ) -> Sequence[SlotState]:
        key = "end" if index == "end" else "start"
        if after is not None:
            query = {"$and": [query, *follows(key, getattr(after.slot, key), after.id, order)]}
        return await find_states(
            self._slots,
            query,
            now,
            user_ids,
            sort=[(key, order), ("_id", order)],
            limit=PAGE_SIZE,
            hint=index,  # in the order of the sort, so that a page costs only what it returns
        )


def _index_for(campaign_id: CampaignId | None) -> str:
    """Return the index by end, or the one by start for the slots of a campaign."""
    return "end" if campaign_id is None else "campaign"


def _published_query(campaign_id: CampaignId | None, end: Document) -> Document:
    query: Document = {"status": {"$in": VISIBLE_STATUSES}, "end": end}
    if campaign_id is None:
        return {**query, "campaign.published": {"$ne": False}}
    return {**query, "campaign.id": ObjectId(campaign_id)}
