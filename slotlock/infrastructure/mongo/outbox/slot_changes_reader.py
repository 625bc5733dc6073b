"""Reads what changed in slots since a time, and stores how far the changes were read.

    outbox_checkpoints: {_id: channel, at, startedAt, token, unread?: [{what, reason, at}]}

`token` is where the change stream continues. All that was written before `at` was read, and nothing
that happened before `startedAt` is sent: that is when the outbox was first used. `unread` are the
latest documents that could not be read.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from bson import ObjectId
from pymongo.errors import OperationFailure, PyMongoError

from slotlock.domain.audit.audit_log import AuditEntry, NoteAction
from slotlock.domain.booking.booking import Booking, EndedWaitlistEntry, SlotId
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.notifications.outbox import Channel
from slotlock.domain.notifications.slot_changes import SlotChanges
from slotlock.domain.notifications.webhook_messages import SiteChanges
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit.audit_log_queries import note_to_entry
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeStream
from slotlock.infrastructure.mongo.client import (
    Database,
    Document,
    error_codes,
    is_unavailable,
)
from slotlock.infrastructure.mongo.document_parts import to_terms
from slotlock.infrastructure.mongo.slots.booking_documents import (
    to_ended_booking,
    to_ended_waitlist_entry,
)
from slotlock.infrastructure.mongo.slots.slot_documents import LOADED_FIELDS, to_slot_state

Item = TypeVar("Item")
# Nobody wants to hear of what happened longer ago, for example while mail was off.
MAX_CHECKPOINT_AGE = timedelta(days=7)
# The clocks of two processes differ by less.
MAX_ID_SKEW = timedelta(seconds=30)
MAX_UNREAD = 20
_SITE_ACTIONS = [
    NoteAction.CAMPAIGN_CREATED.value,
    NoteAction.CAMPAIGN_PUBLISHED.value,
    NoteAction.USER_ERASED.value,
    NoteAction.DRAW_CLOSED.value,
    NoteAction.DRAW_PUBLISHED.value,
]
# CappedPositionLost, CloseChangeStream, InvalidResumeToken, ChangeStreamFatalError, -HistoryLost.
_LOST_CODES = {136, 222, 260, 280, 286}


@value_object
class Checkpoint:
    """How far the changes were read."""

    at: datetime
    started_at: datetime
    token: Document | None = None


@value_object
class Unread:
    """A document that could not be read at a time, so that nothing about it was sent."""

    what: str
    reason: str
    at: datetime


def is_history_lost(error: Exception) -> bool:
    """Return whether a stream cannot go on, because MongoDB no longer has the changes."""
    return isinstance(error, PyMongoError) and bool(error_codes(error) & _LOST_CODES)


class SlotChangesReader:
    """Finds the changed bookings of slots, live and ended."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._checkpoints = database["outbox_checkpoints"]

    async def open_stream(self, checkpoint: Checkpoint) -> tuple[ChangeStream, bool]:
        """Open a change stream, and return whether it continues after the checkpoint.

        It does not if there is no token, or if MongoDB cannot use it.
        """
        stream = ChangeStream(self._database)
        if checkpoint.token is not None:
            try:
                await stream.open(checkpoint.token)
            except OperationFailure as error:
                if is_unavailable(error):
                    raise
            else:
                return stream, True
        await stream.open()
        return stream, False

    async def load_checkpoint(self, channel: Channel, now: datetime) -> Checkpoint:
        """Return how far the changes were read: all of them, if that was never or too long ago."""
        found = await self._checkpoints.find_one({"_id": channel.value})
        if found is None or found["at"] < now - MAX_CHECKPOINT_AGE:
            return Checkpoint(now, now)
        return Checkpoint(found["at"], found["startedAt"], found["token"])

    async def save_checkpoint(self, channel: Channel, checkpoint: Checkpoint) -> None:
        """Store how far the changes were read."""
        fields = {
            "at": checkpoint.at,
            "startedAt": checkpoint.started_at,
            "token": checkpoint.token,
        }
        await self._checkpoints.update_one({"_id": channel.value}, {"$set": fields}, upsert=True)

    async def begin(self, channel: Channel, now: datetime) -> None:
        """Let the next reader begin now, unless it continues after an earlier one."""
        await self._checkpoints.update_one(
            {"_id": channel.value, "at": {"$lt": now - MAX_CHECKPOINT_AGE}},
            {"$set": {"at": now, "startedAt": now, "token": None}},
        )
        await self._checkpoints.update_one(
            {"_id": channel.value},
            {"$setOnInsert": {"at": now, "startedAt": now, "token": None}},
            upsert=True,
        )

    async def record_unread(self, channel: Channel, unread: Unread) -> None:
        """Record what could not be read, in place of an earlier record about the same."""
        document = {"what": unread.what, "reason": unread.reason, "at": unread.at}
        newest = {"$each": [document], "$slice": -MAX_UNREAD}
        query = {"_id": channel.value}
        await self._checkpoints.update_one(query, {"$pull": {"unread": {"what": unread.what}}})
        await self._checkpoints.update_one(query, {"$push": {"unread": newest}})

    async def find_unread(self, since: datetime) -> list[Unread]:
        """Return what could not be read since then."""
        query = {"_id": {"$in": [channel.value for channel in Channel]}}
        return [
            Unread(each["what"], each["reason"], each["at"])
            async for document in self._checkpoints.find(query, {"unread": 1})
            for each in document.get("unread", ())
            if each["at"] >= since
        ]

    async def read_site(
        self, since: datetime, now: datetime
    ) -> tuple[SiteChanges, Mapping[str, Exception]]:
        """Return what happened since then to campaigns and users, and what cannot be read of it."""
        query: Document = {"action": {"$in": _SITE_ACTIONS}, "at": {"$gte": since}}
        notes = await self._database["audit_notes"].find(query).to_list()
        open_between = {
            "terms.published": True,
            "terms.opensAt": {"$lte": now},
            "terms.closesAt": {"$gte": since},
        }
        fields = {"name": 1, "terms": 1}
        campaigns = await self._database["campaigns"].find(open_between, fields).to_list()
        read_campaigns, bad_campaigns = _read_each("campaign", campaigns, _to_campaign)
        entries, bad_notes = _read_each("audit_note", notes, note_to_entry)
        new_users = await self._find_new_users(since, now)
        changes = SiteChanges(since, now, read_campaigns, entries, new_users)
        return changes, {**bad_campaigns, **bad_notes}

    async def _find_new_users(
        self, since: datetime, now: datetime
    ) -> list[tuple[UserId, datetime]]:
        # Ids begin with the time of the process that made them.
        made_at = datetime.now(UTC) - (now - since) - MAX_ID_SKEW
        query = {"_id": {"$gte": ObjectId.from_datetime(made_at)}, "createdAt": {"$gte": since}}
        found = self._database["users"].find(query, {"createdAt": 1})
        return [(UserId(str(each["_id"])), each["createdAt"]) async for each in found]

    async def find_changed_since(self, since: datetime) -> list[SlotId]:
        """Return all slots that changed since then. This scans the slots."""
        found = self._database["slots"].find({"changedAt": {"$gte": since}}, {"_id": 1})
        return [SlotId(str(document["_id"])) async for document in found]

    async def read(self, slot_ids: Sequence[SlotId], since: datetime) -> list[SlotChanges]:
        """Return what changed in these slots since then."""
        ids = [ObjectId(slot_id) for slot_id in slot_ids]
        notes = await self._find_notes(ids, since)
        edited_ids = [ObjectId(slot_id) for slot_id in notes]
        projection = _projection(since, edited_ids)
        slots = self._database["slots"].find({"_id": {"$in": ids}}, projection)
        states = [to_slot_state(document) async for document in slots]
        ended = await self._find_ended(ids, since)
        ended_entries = await self._find_ended_entries(ids, since)
        return [
            SlotChanges(
                since,
                state,
                tuple(ended.get(state.id, ())),
                tuple(ended_entries.get(state.id, ())),
                tuple(notes.get(state.id, ())),
            )
            for state in states
        ]

    async def _find_ended(
        self, ids: list[ObjectId], since: datetime
    ) -> dict[SlotId, list[Booking]]:
        query = {"slot": {"$in": ids}, "endedAt": {"$gte": since}}
        by_slot: defaultdict[SlotId, list[Booking]] = defaultdict(list)
        async for document in self._database["ended_bookings"].find(query):
            booking = to_ended_booking(document)
            by_slot[booking.slot_id].append(booking)
        return by_slot

    async def _find_ended_entries(
        self, ids: list[ObjectId], since: datetime
    ) -> dict[SlotId, list[EndedWaitlistEntry]]:
        query = {"slot": {"$in": ids}, "at": {"$gte": since}}
        by_slot: defaultdict[SlotId, list[EndedWaitlistEntry]] = defaultdict(list)
        async for document in self._database["ended_waitlist_entries"].find(query):
            ended = to_ended_waitlist_entry(document)
            by_slot[ended.entry.slot_id].append(ended)
        return by_slot

    async def _find_notes(
        self, ids: list[ObjectId], since: datetime
    ) -> dict[SlotId, list[AuditEntry]]:
        query = {"slot": {"$in": ids}, "at": {"$gte": since}}
        by_slot: defaultdict[SlotId, list[AuditEntry]] = defaultdict(list)
        async for document in self._database["audit_notes"].find(query, sort=[("at", 1)]):
            by_slot[SlotId(str(document["slot"]))].append(note_to_entry(document))
        return by_slot


def _projection(since: datetime, edited_ids: list[ObjectId]) -> Document:
    """Return the projection to the live bookings and waitlist entries that changed since then.

    Of the slots that organizers changed, it has all bookings: their users hear of it.
    """
    is_edited = {"$in": ["$_id", edited_ids]}
    # A plain booking has no history.
    changed_at = {"$ifNull": [{"$max": "$$this.history.at"}, "$$this.at"]}
    is_changed = {"$or": [is_edited, {"$gte": [changed_at, since]}]}
    return {
        **dict.fromkeys(LOADED_FIELDS, 1),
        "bookings": {"$filter": {"input": "$bookings", "cond": is_changed}},
        "waitlist": {"$filter": {"input": "$waitlist", "cond": {"$gte": ["$$this.since", since]}}},
    }


def _read_each(
    kind: str, documents: Sequence[Document], read: Callable[[Document], Item]
) -> tuple[list[Item], dict[str, Exception]]:
    """Return what the documents describe, and the errors of those that cannot be read."""
    items, problems = list[Item](), dict[str, Exception]()
    for document in documents:
        try:
            items.append(read(document))
        except Exception as error:
            problems[f"{kind}_{document['_id']}"] = error
    return items, problems


def _to_campaign(document: Document) -> Campaign:
    terms = to_terms(document["terms"])
    return Campaign(terms.campaign_id, document["name"], terms)
