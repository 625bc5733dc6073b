"""Finds what mails are about to be due because of the time: slots to remind of, and openings.

    outbox_checkpoints: {_id: "schedule", at}

All mails that were planned for a time before `at` are in the outbox.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import MAX_OPENING_MAIL_HOURS
from slotlock.domain.campaigns.terms import MAX_REMINDER_MINUTES, CampaignTerms
from slotlock.domain.schedule.meetings import Meeting
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.document_parts import to_terms
from slotlock.infrastructure.mongo.slots.slot_documents import (
    HAS_REMINDER,
    LOADED_FIELDS,
    REMINDER_INDEX,
    to_slot_state,
)

CHECKPOINT_ID = "schedule"
MAX_REMINDER = timedelta(minutes=MAX_REMINDER_MINUTES)
MAX_OPENING_MAIL = timedelta(hours=MAX_OPENING_MAIL_HOURS)


class ScheduledMailQueries:
    """Finds slots and campaigns by the time that their settings name; each period ends with now."""

    def __init__(self, database: Database) -> None:
        self._slots = database["slots"]
        self._campaigns = database["campaigns"]
        self._checkpoints = database["outbox_checkpoints"]

    async def load_checkpoint(self) -> datetime | None:
        """Return until when all mails are in the outbox; None before the first time."""
        found = await self._checkpoints.find_one({"_id": CHECKPOINT_ID})
        return found["at"] if found else None

    async def save_checkpoint(self, at: datetime) -> None:
        """Record that all mails until then are in the outbox."""
        query = {"_id": CHECKPOINT_ID}
        await self._checkpoints.update_one(query, {"$max": {"at": at}}, upsert=True)

    async def find_slots(self, planned: Meeting, now: datetime) -> list[Slot]:
        """Return the published slots that begin later, and whose reminder is in this period."""
        minutes = {"$ifNull": ["$reminderMinutes", "$campaign.reminderMinutes"]}
        at = {"$dateSubtract": {"startDate": "$start", "unit": "minute", "amount": minutes}}
        query: Document = {
            **HAS_REMINDER,
            "start": {"$gt": now, "$lte": planned.end + MAX_REMINDER},
            "status": SlotStatus.PUBLISHED.value,
            "$expr": {"$and": [{"$gte": [at, planned.start]}, {"$lte": [at, planned.end]}]},
        }
        # By itself, MongoDB chooses an index of all slots for such a condition.
        found = self._slots.find(query, dict.fromkeys(LOADED_FIELDS, 1), hint=REMINDER_INDEX)
        return [
            to_slot_state({**document, "bookings": [], "waitlist": []}).slot
            async for document in found
        ]

    async def find_with_bookings(self, slot_ids: Sequence[SlotId]) -> list[SlotState]:
        """Return slots with all their live bookings, and without their waiting lists."""
        query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        fields = dict.fromkeys((*LOADED_FIELDS, "bookings"), 1)
        found = self._slots.find(query, fields)
        return [to_slot_state({**document, "waitlist": []}) async for document in found]

    async def find_openings(self, planned: Meeting, now: datetime) -> list[CampaignTerms]:
        """Return the published campaigns that open later, and whose mail is in this period."""
        hours = "$terms.openingMailHours"
        at = {"$dateSubtract": {"startDate": "$terms.opensAt", "unit": "hour", "amount": hours}}
        query: Document = {
            "terms.opensAt": {"$gt": now, "$lte": planned.end + MAX_OPENING_MAIL},
            "terms.openingMailHours": {"$gt": 0},
            "terms.published": True,
            "$expr": {"$and": [{"$gte": [at, planned.start]}, {"$lte": [at, planned.end]}]},
        }
        found = self._campaigns.find(query, {"terms": 1})
        return [to_terms(document["terms"]) async for document in found]
