"""Stores the outbox.

    outbox: {_id: "kind:subject:version[:endpoint]", channel, kind, at, state, attempts, createdAt,
             dueAt?, user?, slot?, booking?, group?, lead?, data?, confidential?: true, expiresAt?,
             recipient?, note?, doneAt?, leasedBy?, dependents?: [user]}

`dueAt` exists while an entry waits: for its time, or while it is being sent, for the end of its
lease. Entries that are sent with another one have its id as `lead`, and no `dueAt`. `leasedBy` is
the command that took the lease last. `dependents` are the users whom the entry is about, if `user`
is a guardian of them.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from bson import ObjectId
from pymongo import UpdateMany, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.cursor import AsyncCursor
from pymongo.errors import BulkWriteError

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.notifications.outbox import (
    LEASE,
    UNDELIVERABLE,
    Channel,
    Delivery,
    OutboxEntry,
    OutboxState,
    next_delay,
    to_note,
)
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import DUPLICATE_KEY, Database, Document, error_codes
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.tasks import Signal

log = logging.getLogger("slotlock.outbox")

RETENTION = timedelta(days=30)
UNREADABLE_DELAY = timedelta(hours=1)
# How the note of such an entry begins.
UNREADABLE = "cannot be read: "
# What a damaged document, or one of a newer release, raises.
READ_ERRORS = (KeyError, ValueError, TypeError, AttributeError)
_Item = TypeVar("_Item")
# The entries of an attempt, what it led to, and when.
_Result = tuple[Sequence[OutboxEntry], Delivery, datetime]
# Those that are sent with another one follow it, and a secret that was sent is deleted.
CAN_BE_SENT: Document = {"lead": None, "data": {"$exists": True}}
UNSENT: Document = {
    "state": {"$in": [OutboxState.FAILED.value, OutboxState.SUPPRESSED.value]},
    "$or": [{"state": OutboxState.FAILED.value}, {"note": UNDELIVERABLE}],
}
NEWEST_FIRST = [("at", -1), ("_id", -1)]
PARTIAL_DUE = {"partialFilterExpression": {"dueAt": {"$exists": True}}}
PARTIAL_WEBHOOK_DUE = {
    "partialFilterExpression": {
        "data.webhook": {"$exists": True},
        "dueAt": {"$exists": True},
    }
}
PARTIAL_DEPENDENTS = {"partialFilterExpression": {"dependents": {"$exists": True}}}
PARTIAL_GROUP = {"partialFilterExpression": {"group": {"$exists": True}}}
OUTBOX_INDEXES = indexes_of(
    "outbox",
    {
        "due": ([("channel", 1), ("dueAt", 1)], PARTIAL_DUE),
        "webhook_due": ([("data.webhook", 1), ("dueAt", 1)], PARTIAL_WEBHOOK_DUE),
        "group": ([("group", 1), ("lead", 1)], PARTIAL_GROUP),
        "newest": (NEWEST_FIRST, {}),
        "state": ([("state", 1), *NEWEST_FIRST], {}),
        "user": ([("user", 1), *NEWEST_FIRST], {}),
        "dependents": ([("dependents", 1), *NEWEST_FIRST], PARTIAL_DEPENDENTS),
        "slot": ([("slot", 1), *NEWEST_FIRST], {}),
        "expiry": ([("createdAt", 1)], {"expireAfterSeconds": int(RETENTION.total_seconds())}),
    },
)


@value_object
class OutboxFilter:
    """The entries to list; a field that is None does not restrict the list.

    What is about a user went to the user, or to a guardian of the user.
    """

    state: OutboxState | None = None
    channel: Channel | None = None
    user_id: UserId | None = None
    slot_id: SlotId | None = None
    kind: str | None = None
    since: datetime | None = None
    about_id: UserId | None = None


class OutboxRepository:
    """Inserts entries, lets one worker at a time send each, and records the result."""

    def __init__(self, database: Database) -> None:
        self._outbox = database["outbox"]
        # Sent when this process inserts entries: its senders look for them at once.
        self.inserted = Signal()
        self._finish_batcher: Batcher[_Result, OutboxState] = Batcher(self._finish_batch)

    async def insert(
        self,
        entries: Iterable[OutboxEntry],
        now: datetime,
        session: AsyncClientSession | None = None,
    ) -> int:
        """Insert those of the entries that are not there yet. Return how many these were.

        With a session, all of them must be new: they are part of its transaction.
        """
        documents = [_to_document(entry, now) for entry in entries]
        if not documents:
            return 0
        try:
            return await self._insert(documents, session)
        finally:
            self.inserted.send()

    async def _insert(self, documents: list[Document], session: AsyncClientSession | None) -> int:
        try:
            done = await self._outbox.insert_many(
                documents, ordered=session is not None, session=session
            )
        except BulkWriteError as error:
            if session is not None or error_codes(error) - {DUPLICATE_KEY}:
                raise
            return len(documents) - len(error.details["writeErrors"])
        return len(done.inserted_ids)

    async def find_due(self, channel: Channel, now: datetime, limit: int) -> list[OutboxEntry]:
        """Return the entries that wait no longer, also those whose lease ran out."""
        query = {"channel": channel.value, "dueAt": {"$lte": now}}
        found = self._outbox.find(query, sort=[("dueAt", 1)], limit=limit)
        return await self._read(await found.to_list(), now)

    async def find_due_by_webhook(
        self, now: datetime, full: Iterable[str], limit: int
    ) -> list[OutboxEntry]:
        """Return entries that wait no longer, up to `limit` of each webhook that is not full.

        The entries of a full webhook are not read, however many these are.
        """
        entries, after = list[OutboxEntry](), ""
        while True:
            query = {"data.webhook": {"$gt": after, "$nin": [*full]}, "dueAt": {"$lte": now}}
            order = [("data.webhook", 1), ("dueAt", 1)]
            page = await self._outbox.find(query, sort=order, limit=limit).to_list()
            if len(page) < limit:
                return [*entries, *await self._read(page, now)]
            webhooks = [document["data"]["webhook"] for document in page]
            if webhooks[0] != webhooks[-1]:  # the last one may have more
                page = page[: webhooks.index(webhooks[-1])]
            entries += await self._read(page, now)
            after = page[-1]["data"]["webhook"]

    async def _read(self, documents: Sequence[Document], now: datetime) -> list[OutboxEntry]:
        """Return the entries of due documents. One that cannot be read holds up no other.

        It is read again an hour later: a process of a newer version may understand it.
        """
        entries = []
        for document in documents:
            try:
                entries.append(to_outbox_entry(document))
            except READ_ERRORS as error:
                log.warning("could not read %s of the outbox: %r", document["_id"], error)
                later = {"dueAt": now + UNREADABLE_DELAY, "note": f"{UNREADABLE}{error!r}"}
                query = {"_id": document["_id"], "dueAt": document["dueAt"]}
                await self._outbox.update_one(query, {"$set": later})
        return entries

    async def lease(self, due: Sequence[OutboxEntry], now: datetime) -> list[list[OutboxEntry]]:
        """Begin to send due entries, each with those of its group that were not sent before.

        Return the entries of each mail or call, the due one first; none of those for which another
        worker was first. A later attempt sends the same entries again.
        """
        token = ObjectId()
        changes = {"state": OutboxState.SENDING.value, "dueAt": now + LEASE, "leasedBy": token}
        done = await self._outbox.bulk_write(
            [
                UpdateOne(
                    {"_id": entry.id, "dueAt": entry.due_at},
                    {"$set": changes, "$inc": {"attempts": 1}},
                )
                for entry in due
            ],
            ordered=False,
        )
        if done.modified_count < len(due):
            ids = {"$in": [entry.id for entry in due]}
            leased = self._outbox.find({"_id": ids, "leasedBy": token}, {"_id": 1})
            own = {document["_id"] async for document in leased}
            due = [entry for entry in due if entry.id in own]
        leads = [
            replace(
                entry,
                state=OutboxState.SENDING,
                due_at=now + LEASE,
                attempts=entry.attempts + 1,
            )
            for entry in due
        ]
        followers = await self._join([lead for lead in leads if lead.group is not None])
        return [[lead, *followers[lead.id]] for lead in leads]

    async def _join(self, leads: Sequence[OutboxEntry]) -> defaultdict[str, list[OutboxEntry]]:
        """Return the entries that are sent with these, the oldest first, by the id of the lead.

        At its first attempt, a lead takes those of its group that wait.
        """
        found: defaultdict[str, list[OutboxEntry]] = defaultdict(list)
        new = {lead.group: lead.id for lead in leads if lead.attempts == 1}
        waiting = {"lead": None, "state": OutboxState.QUEUED.value, "attempts": 0}
        cursor = self._outbox.find({"group": {"$in": [*new]}, **waiting}, {"group": 1})
        groups = {document["group"] async for document in cursor} if new else set()
        if groups:
            sending = {"state": OutboxState.SENDING.value}
            await self._outbox.bulk_write(
                [
                    UpdateMany(
                        {"group": group, **waiting},
                        {"$set": {**sending, "lead": new[group]}, "$unset": {"dueAt": ""}},
                    )
                    for group in groups
                ]
            )
        joined = [lead for lead in leads if lead.group in groups or lead.attempts > 1]
        if joined:
            ids, names = [lead.id for lead in joined], [lead.group for lead in joined]
            cursor = self._outbox.find({"group": {"$in": names}, "lead": {"$in": ids}})
            entries = await read_first(cursor, to_outbox_entry)
            for entry in sorted(entries, key=lambda entry: entry.at):
                found[entry.lead_id or ""].append(entry)
        return found

    async def finish(
        self, entries: Sequence[OutboxEntry], delivery: Delivery, now: datetime
    ) -> OutboxState:
        """Record what an attempt to send these led to, the lead first.

        Return the state that follows. Concurrent results are one command.
        """
        return await self._finish_batcher.submit((entries, delivery, now))

    async def _finish_batch(self, items: list[_Result]) -> list[OutboxState]:
        updates: list[UpdateOne | UpdateMany] = []
        states = []
        for entries, delivery, now in items:
            lead, delay = entries[0], next_delay(entries[0], delivery)
            state = delivery.state
            if state is OutboxState.QUEUED and delay is None:
                state = OutboxState.FAILED
            states.append(state)
            fields: Document = {"state": state.value, "note": to_note(delivery.note)}
            if delivery.recipient:
                fields["recipient"] = delivery.recipient
            updates.append(UpdateOne(*_finished(lead, fields, delivery, delay, now)))
            if len(entries) > 1:
                followers = {"group": lead.group, "lead": lead.id}
                updates.append(UpdateMany(followers, {"$set": fields}))
        await self._outbox.bulk_write(updates, ordered=False)
        return states

    async def retry(self, entry_id: str, now: datetime) -> bool:
        """Queue an unsent entry, or one that waits for its next attempt; False if there is none."""
        can_retry = {"$or": [{"state": OutboxState.QUEUED.value}, UNSENT]}
        query = {"_id": entry_id, **can_retry, **CAN_BE_SENT}
        return bool((await self._outbox.update_one(query, _queued_again(now))).matched_count)

    async def find_unsent(self, outbox_filter: OutboxFilter, limit: int) -> list[OutboxEntry]:
        """Return entries that the filter selects and that can be sent again, the newest first.

        They failed, or were suppressed because of an undeliverable address.
        """
        query = {"$and": [UNSENT, _to_query(outbox_filter)], **CAN_BE_SENT}
        found = self._outbox.find(query, sort=NEWEST_FIRST, limit=limit)
        return await read_first(found, to_outbox_entry)

    async def retry_all(self, ids: Sequence[str], now: datetime) -> int:
        """Queue unsent entries. Return how many these were."""
        query = {"_id": {"$in": list(ids)}, **UNSENT}
        return (await self._outbox.update_many(query, _queued_again(now))).modified_count

    async def find(self, entry_id: str) -> OutboxEntry | None:
        """Return an entry; None if there is none that can be read."""
        found = self._outbox.find({"_id": entry_id}, limit=1)
        return next(iter(await read_first(found, to_outbox_entry)), None)

    async def page(
        self, outbox_filter: OutboxFilter, first: int, after: Position | None = None
    ) -> Page[OutboxEntry]:
        """Return the next `first` entries that the filter selects, the newest first."""
        query = _to_query(outbox_filter)
        if after is not None:
            same = {"at": after.start, "_id": {"$lt": after.id}}
            # One `$or` of ranges of indexes, so that MongoDB merges and sorts nothing.
            query["$or"] = [
                {**user, **earlier}
                for user in query.get("$or", [{}])
                for earlier in ({"at": {"$lt": after.start}}, same)
            ]
        found = self._outbox.find(query, sort=NEWEST_FIRST, batch_size=first + 1)
        entries = await read_first(found, to_outbox_entry, first + 1)
        return Page.of(entries, first)

    async def count(self, outbox_filter: OutboxFilter, limit: int) -> int:
        """Return how many entries the filter selects, at most `limit`."""
        query = _to_query(outbox_filter)
        return await self._outbox.count_documents(query or {"at": {"$exists": True}}, limit=limit)

    async def count_unsent(self) -> Mapping[OutboxState, int]:
        """Return how many entries wait, are being sent, and have failed."""
        states = (OutboxState.QUEUED, OutboxState.SENDING, OutboxState.FAILED)
        return {
            state: await self._outbox.count_documents({"state": state.value}) for state in states
        }

    async def find_note(self, prefix: str) -> str | None:
        """Return the note of the newest queued entry whose note begins so."""
        query = {"state": OutboxState.QUEUED.value, "note": {"$regex": f"^{re.escape(prefix)}"}}
        found = await self._outbox.find_one(query, {"note": 1}, sort=NEWEST_FIRST)
        return found["note"] if found else None

    async def find_oldest(self) -> datetime | None:
        """Return when what the oldest open entry is about happened; None without such an entry."""
        found = await self._outbox.find_one({"dueAt": {"$exists": True}}, sort=[("at", 1)])
        return found["at"] if found else None


async def read_first(
    cursor: AsyncCursor[Document],
    to_item: Callable[[Document], _Item],
    limit: int | None = None,
) -> list[_Item]:
    """Return the first items of a cursor, at most `limit`, without those that cannot be read."""
    items = list[_Item]()
    async with cursor:
        async for document in cursor:
            try:
                items.append(to_item(document))
            except READ_ERRORS as error:
                log.warning("could not read %s: %r", document["_id"], error)
            if len(items) == limit:
                break
    return items


def _queued_again(now: datetime) -> Document:
    fields = {"state": OutboxState.QUEUED.value, "dueAt": now, "attempts": 1}
    return {"$set": fields, "$unset": {"doneAt": ""}}


def _finished(
    lead: OutboxEntry,
    fields: Document,
    delivery: Delivery,
    delay: timedelta | None,
    now: datetime,
) -> tuple[Document, Document]:
    """Return the filter and the update that record what an attempt led to."""
    if delay is None:
        removed = {"dueAt": "", **({"data": ""} if lead.is_confidential else {})}
        return {"_id": lead.id}, {"$set": {**fields, "doneAt": now}, "$unset": removed}
    attempts = max(lead.attempts - delivery.is_outage, 1)
    # A lease that ran out belongs to another worker.
    query = {"_id": lead.id, "dueAt": lead.due_at}
    return query, {"$set": {**fields, "dueAt": now + delay, "attempts": attempts}}


def _to_query(outbox_filter: OutboxFilter) -> Document:
    about = outbox_filter.about_id and ObjectId(outbox_filter.about_id)
    values: Document = {
        "state": outbox_filter.state and outbox_filter.state.value,
        "channel": outbox_filter.channel and outbox_filter.channel.value,
        "user": outbox_filter.user_id and ObjectId(outbox_filter.user_id),
        "slot": outbox_filter.slot_id and ObjectId(outbox_filter.slot_id),
        "kind": outbox_filter.kind,
        "at": outbox_filter.since and {"$gte": outbox_filter.since},
        "$or": about and [{"user": about}, {"dependents": about}],
    }
    return {name: value for name, value in values.items() if value is not None}


def _to_document(entry: OutboxEntry, now: datetime) -> Document:
    optional: Document = {
        "user": entry.user_id and ObjectId(entry.user_id),
        "slot": entry.slot_id and ObjectId(entry.slot_id),
        "booking": entry.booking_id and ObjectId(entry.booking_id),
        "group": entry.group,
        "expiresAt": entry.expires_at,
        "recipient": entry.recipient,
        "dependents": [ObjectId(each) for each in entry.dependents] or None,
        "confidential": entry.is_confidential or None,
    }
    return {
        "_id": entry.id,
        "channel": entry.channel.value,
        "kind": entry.kind,
        "at": entry.at,
        "dueAt": entry.due_at,
        "state": entry.state.value,
        "attempts": 0,
        "data": dict(entry.data),
        "createdAt": now,
        **{name: value for name, value in optional.items() if value is not None},
    }


def to_outbox_entry(document: Mapping[str, Any]) -> OutboxEntry:
    """Return the entry that a document describes."""
    find = document.get
    fields = ("user", "slot", "booking")
    ids = {name: str(document[name]) for name in fields if name in document}
    return OutboxEntry(
        document["_id"],
        Channel(document["channel"]),
        document["kind"],
        document["at"],
        document.get("dueAt", document["at"]),
        UserId(ids["user"]) if "user" in ids else None,
        SlotId(ids["slot"]) if "slot" in ids else None,
        BookingId(ids["booking"]) if "booking" in ids else None,
        find("group"),
        find("data", {}),
        "confidential" in document,
        find("expiresAt"),
        OutboxState(document["state"]),
        document["attempts"],
        find("lead"),
        find("recipient"),
        find("note"),
        find("doneAt"),
        tuple(UserId(str(each)) for each in find("dependents", ())),
    )
