"""Reads the audit log: bookings, waitlist entries and the notes of organizers' changes.

Every change of a booking is part of the booking (see docs/decisions/0011). The log is therefore put
together when it is read, from one snapshot. A page costs as much as the campaign, the slot or the
user that it is about has bookings.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_log import (
    AUDIT_ACTIONS,
    AuditEntry,
    AuditFilter,
    AuditPosition,
    FieldEdit,
    NoteAction,
    newest_first,
)
from slotlock.domain.booking.booking import BookingId, BookingStatus, SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.pagination import Page
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit import pipelines
from slotlock.infrastructure.mongo.audit.audit_note_repository import NEWEST_FIRST
from slotlock.infrastructure.mongo.audit.pipelines import by_and_time, has_id
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.expressions import Pipeline, follows
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.stored_enums import audit_action_from_stored, limits_from_stored

WAITLIST_ACTIONS = (NoteAction.WAITLIST_JOINED, NoteAction.WAITLIST_LEFT)
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
        self._notes = database["audit_notes"]

    @limited
    async def page(
        self, audit_filter: AuditFilter, first: int, after: AuditPosition | None, now: datetime
    ) -> Page[AuditEntry]:
        """Return the next `first` entries that the filter selects, the newest first."""
        async with self._client.start_session(snapshot=True) as session:
            found: list[AuditEntry] = []
            if not audit_filter.for_others:
                found += await self._newest_notes(audit_filter, after, first + 1, session)
            if audit_filter.includes_bookings:
                found += await self._booking_entries(audit_filter, after, first + 1, now, session)
        entries = newest_first(found)
        return Page.of(entries, first)

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
            found += [_history_to_entry(document) async for document in documents]
        return found

    async def _newest_notes(
        self,
        audit_filter: AuditFilter,
        after: AuditPosition | None,
        limit: int,
        session: AsyncClientSession,
    ) -> list[AuditEntry]:
        actions = await self._find_actions(audit_filter, session)
        if not actions:
            return []
        query = {"$and": _note_conditions(audit_filter, actions, after)}
        found = self._notes.find(query, sort=NEWEST_FIRST, limit=limit, session=session)
        return [note_to_entry(document) async for document in found]

    async def _find_actions(
        self, audit_filter: AuditFilter, session: AsyncClientSession
    ) -> list[str]:
        """Return the stored actions that the filter selects, also those of a newer version.

        With all actions named, the index of actions sorts the notes.
        """
        stages: Pipeline = [{"$sort": {"action": 1}}, {"$group": {"_id": "$action"}}]
        found = await self._notes.aggregate(stages, session=session)
        stored = [document["_id"] async for document in found]
        wanted = AUDIT_ACTIONS if audit_filter.actions is None else audit_filter.actions
        return sorted(each for each in stored if audit_action_from_stored(each) in wanted)

    async def _find_slot_ids(
        self, audit_filter: AuditFilter, session: AsyncClientSession
    ) -> Sequence[ObjectId]:
        if audit_filter.campaign_id is None:
            return ()
        query = {"campaign.id": ObjectId(audit_filter.campaign_id)}
        found = self._slots.find(query, {"_id": 1}, session=session)
        return [document["_id"] async for document in found]


def _note_conditions(
    audit_filter: AuditFilter, actions: list[str], after: AuditPosition | None
) -> list[Document]:
    conditions = [
        *has_id(audit_filter.slot_id, "slot"),
        *has_id(audit_filter.campaign_id, "campaign"),
        *has_id(audit_filter.user_id, "users"),
        *has_id(audit_filter.by, "by"),
        {"action": {"$in": actions}},
        *by_and_time(audit_filter),
    ]
    if after is not None:
        conditions += follows("at", after.at, after.id, -1)
    return conditions


def _history_to_entry(document: Document) -> AuditEntry:
    entry, item_id = document["history"], str(document["id"])
    action, status_before = audit_action_from_stored(entry["action"]), document["before"]
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
        meeting_start=entry.get("meetingStart"),
    )


def _to_status(stored: str | None) -> BookingStatus | None:
    # The log does not know whether the booking was live then.
    return next((status for status in BookingStatus if status.value == stored), None)


def note_to_entry(document: Document) -> AuditEntry:
    """Return the entry of the log that the document of an audit note describes."""
    users = [UserId(str(user)) for user in document.get("users", ())]
    return AuditEntry(
        AuditPosition(document["at"], str(document["_id"]), 0),
        audit_action_from_stored(document["action"]),
        UserId(str(document["by"])) if document["by"] else None,
        users[0] if len(users) == 1 else None,
        SlotId(str(document["slot"])) if "slot" in document else None,
        campaign_id=CampaignId(str(document["campaign"])) if "campaign" in document else None,
        resource=document.get("resource"),
        holiday_list=document.get("holidayList"),
        webhook=document.get("webhook"),
        edits=tuple(_to_edit(edit) for edit in document["edits"]),
    )


def _to_edit(document: Document) -> FieldEdit:
    user_id = UserId(str(document["user"])) if "user" in document else None
    return FieldEdit(document["field"], document["before"], document["after"], user_id)
