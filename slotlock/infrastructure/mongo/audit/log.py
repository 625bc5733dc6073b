"""Reads the audit log: bookings, waitlist entries and the notes of organizers' changes.

Every change of a booking is part of the booking (see docs/decisions/0011). The log is therefore put
together when it is read, from one snapshot. A page costs as much as the campaign, the slot or the
user that it is about has bookings.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.log import (
    AuditAction,
    AuditEntry,
    AuditFilter,
    AuditPosition,
    newest_first,
)
from slotlock.domain.booking.booking import BookingId, BookingStatus, SlotId
from slotlock.domain.shared.pagination import Page
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit import pipelines
from slotlock.infrastructure.mongo.audit.notes import AuditNoteRepository
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.stored_enums import from_stored, limits_from_stored

WAITLIST_ACTIONS = (AuditAction.WAITLIST_JOINED, AuditAction.WAITLIST_LEFT)
PARTIAL_WAITLISTED_BY = {"partialFilterExpression": {"waitlistedBy": {"$exists": True}}}
ENDED_WAITLIST_ENTRY_INDEXES = indexes_of(
    "ended_waitlist_entries",
    {name: ([(name, 1), ("at", 1)], {}) for name in ("slot", "user", "by")}
    | {"waitlisted_by": ([("waitlistedBy", 1), ("at", 1)], PARTIAL_WAITLISTED_BY)},
)


class AuditLogQueries:
    """Reads pages of the audit log."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._client = database.client
        self._slots = database["slots"]
        self._ended_bookings = database["ended_bookings"]
        self._ended_waitlist_entries = database["ended_waitlist_entries"]
        self._notes = AuditNoteRepository(database)

    @limited
    async def page(
        self, audit_filter: AuditFilter, first: int, after: AuditPosition | None, now: datetime
    ) -> Page[AuditEntry]:
        """Return the next `first` entries that the filter selects, the newest first."""
        async with self._client.start_session(snapshot=True) as session:
            found = await self._notes.find_newest(audit_filter, after, first + 1, session)
            if audit_filter.includes_bookings:
                found += await self._booking_entries(audit_filter, after, first + 1, now, session)
        entries = newest_first(found)
        return Page(tuple(entries[:first]), len(entries) > first)

    async def _booking_entries(
        self,
        audit_filter: AuditFilter,
        after: AuditPosition | None,
        limit: int,
        now: datetime,
        session: AsyncClientSession,
    ) -> list[AuditEntry]:
        slot_ids = await self._find_slot_ids(audit_filter, session)
        newest = pipelines.newest_entries(audit_filter, after, limit)
        found: list[AuditEntry] = []
        for collection, pipeline in (
            (self._slots, pipelines.slot_entries(audit_filter, now)),
            (self._ended_bookings, pipelines.ended_booking_entries(audit_filter, slot_ids)),
            (
                self._ended_waitlist_entries,
                pipelines.ended_waitlist_entries(audit_filter, slot_ids),
            ),
        ):
            documents = await collection.aggregate([*pipeline, *newest], session=session)
            found += [_to_entry(document) async for document in documents]
        return found

    async def _find_slot_ids(
        self, audit_filter: AuditFilter, session: AsyncClientSession
    ) -> Sequence[ObjectId]:
        if audit_filter.campaign_id is None:
            return ()
        query = {"campaign.id": ObjectId(audit_filter.campaign_id)}
        found = self._slots.find(query, {"_id": 1}, session=session)
        return [document["_id"] async for document in found]


def _to_entry(document: Document) -> AuditEntry:
    entry, item_id = document["history"], str(document["id"])
    action, status_before = from_stored(entry["action"], AuditAction.OTHER), document["before"]
    return AuditEntry(
        AuditPosition(entry["at"], item_id, document["entryIndex"]),
        action,
        UserId(str(entry["by"])) if entry["by"] else None,
        UserId(str(document["user"])),
        SlotId(str(document["slot"])),
        None if action in WAITLIST_ACTIONS else BookingId(item_id),
        _to_status(status_before),
        _to_status(entry["status"]),
        entry.get("heldUntil"),
        limits_from_stored(entry.get("overriddenLimits", ())),
    )


def _to_status(stored: str | None) -> BookingStatus | None:
    # The log does not know whether the booking was live then.
    return next((status for status in BookingStatus if status.value == stored), None)
