"""Resources, and the slots that use them.

    resources: {_id: name, version, nameKey, foldedName, kind?, leader?, formerNames?: [name]}

The version counts the slots that began to name the resource, so that of two concurrent ones only
one is written. `nameKey` is unique. `foldedName` is what a search finds a part of. Ids and links
that contain a former name still find the resource, unless another one has that name now. `leader`
is the id of a user.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import AuditNote, note_resource_change
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.resources.resource import (
    MAX_BUSY_SPANS,
    FreeBusy,
    Resource,
    ResourceKind,
    free_busy,
    name_key,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.folding import search_key
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import RESOURCES_CONCURRENCY, Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.document_parts import (
    leader_field,
    resource_to_document,
    to_resource,
)
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of
from slotlock.infrastructure.mongo.slots.slot_query import find_states
from slotlock.infrastructure.mongo.slots.write_set import ResourceVersion
from slotlock.infrastructure.mongo.transactions import (
    change_with_note,
    in_transaction,
    insert_unless_taken,
)

PARTIAL_NAME_KEY = {"partialFilterExpression": {"nameKey": {"$exists": True}}}
RESOURCE_INDEXES = indexes_of(
    "resources",
    {
        "name_key": ([("nameKey", 1)], {"unique": True, **PARTIAL_NAME_KEY}),
        "former_names": ([("formerNames", 1)], {"sparse": True}),
        "leader": ([("leader", 1)], {"sparse": True}),
    },
)
UNIQUE_INDEX = "resources.name_key"
# A refusal of an unknown name compares it with so many names.
MAX_COMPARED_NAMES = 1_000
MAX_SHOWN_USERS = 10
MAX_FORMER_NAMES = 20
NOT_CANCELLED = {"status": {"$ne": SlotStatus.CANCELLED.value}}


class DuplicateNameError(Exception):
    """Another resource has the name, in whatever capitals."""


class ResourceRepository:
    """Stores resources, and finds the slots that use them."""

    def __init__(self, database: Database, required: RequiredIndexes) -> None:
        self.limiter = ConcurrencyLimiter(RESOURCES_CONCURRENCY)
        self._required = required
        self._database = database
        self._resources = database["resources"]
        self._slots = database["slots"]

    @limited
    async def find_overlapping(
        self, names: Sequence[str], start: datetime, end: datetime
    ) -> tuple[Sequence[ResourceVersion], Sequence[SlotState]]:
        """Return the published slots of resources that overlap a period, and their versions.

        The versions are read first, so that a slot that is added afterwards makes one outdated.
        """
        found = self._resources.find({"_id": {"$in": list(names)}}, {"version": 1})
        numbers = {document["_id"]: document["version"] async for document in found}
        query = _occupied_query({"$in": list(names)}, start, end)
        slots = await find_states(self._slots, query, start, sort=[("start", 1)])
        return [ResourceVersion(name, numbers.get(name)) for name in names], slots

    @limited
    async def find_all(self, names: Collection[str]) -> Mapping[str, Resource]:
        """Return the resources of names, each by the name that was asked for.

        A name that no resource has in this spelling finds one that differs in capitals only, or
        one that had the name before.
        """
        keys, each = {name_key(name) for name in names}, {"$in": list(names)}
        query = {"$or": [{"_id": each}, {"nameKey": {"$in": list(keys)}}, {"formerNames": each}]}
        documents = await self._resources.find(query).to_list()
        exact = {document["_id"]: to_resource(document) for document in documents}
        by_key = {document.get("nameKey"): to_resource(document) for document in documents}
        former = {
            name: to_resource(document)
            for document in documents
            for name in document.get("formerNames", ())
        }
        found = {
            name: exact.get(name) or by_key.get(name_key(name)) or former.get(name)
            for name in names
        }
        return {name: resource for name, resource in found.items() if resource is not None}

    @limited
    async def find_names(self) -> Sequence[str]:
        """Return the names of all resources, at most `MAX_COMPARED_NAMES`."""
        found = self._resources.find({}, {"_id": 1}, limit=MAX_COMPARED_NAMES)
        return [document["_id"] async for document in found]

    @limited
    async def find_led(self, leader: UserId) -> Sequence[str]:
        """Return the names of the resources that a user leads."""
        return await self._find_led(leader)

    @limited
    async def find_led_slots(
        self, leader: UserId, slot_ids: Collection[SlotId], ends_after: datetime
    ) -> dict[SlotId, tuple[str, ...]]:
        """Return those of these slots that a user leads and that end after a time.

        They are published, as their campaigns are. Each has the groups that leaders book.
        """
        names = await self._find_led(leader)
        if not names:
            return {}
        query = {
            "_id": {"$in": list(map(ObjectId, slot_ids))},
            "resource": {"$in": names},
            "status": SlotStatus.PUBLISHED.value,
            "campaign.published": {"$ne": False},
            "end": {"$gt": ends_after},
        }
        found = self._slots.find(query, {"campaign.leaderGroups": 1}, hint="_id_")
        return {
            SlotId(str(slot["_id"])): tuple((slot.get("campaign") or {}).get("leaderGroups", ()))
            async for slot in found
        }

    async def _find_led(self, leader: UserId) -> list[str]:
        found = self._resources.find({"leader": ObjectId(leader)}, {"_id": 1})
        return [document["_id"] async for document in found]

    @limited
    async def remove_leader(self, user_id: UserId) -> None:
        """Take the slots of all resources from a user who led them."""
        query = {"leader": ObjectId(user_id)}
        await self._resources.update_many(query, {"$unset": {"leader": ""}})

    @limited
    async def page(
        self, text: str, kind: ResourceKind | None, first: int, after_key: str | None
    ) -> Page[tuple[str, Resource]]:
        """Return the next resources by name whose name contains a text, each with its key."""
        query = _list_query(text, kind, after_key or "")
        found = self._resources.find(query, sort=[("nameKey", 1)], limit=first + 1)
        items = [(document["nameKey"], to_resource(document)) async for document in found]
        return Page.of(items, first)

    @limited
    async def count(self, text: str, kind: ResourceKind | None, limit: int) -> int:
        """Return the number of resources whose name contains a text, at most `limit`."""
        return await self._resources.count_documents(_list_query(text, kind, ""), limit=limit)

    @limited
    async def insert(self, resource: Resource, note: AuditNote | None = None) -> bool:
        """Insert a resource with a note. Return False if one has the name, in whatever capitals."""
        self._required.require(UNIQUE_INDEX)
        document = resource_to_document(resource)
        return await insert_unless_taken(self._database, "resources", document, note)

    @limited
    async def update(self, resource: Resource, by: UserId, now: datetime) -> bool:
        """Change the kind and the leader of a resource, with a note.

        Return False if there is no such resource.
        """
        query, update = {"_id": resource.name}, _change(resource)
        return await change_with_note(
            self._database,
            partial(self._resources.find_one_and_update, query, update),
            lambda found: note_resource_change(to_resource(found), resource, by, now),
        )

    @limited
    async def rename(self, name: str, renamed: Resource, by: UserId, now: datetime) -> bool:
        """Give a resource another name, also in its slots. Return False if there is none.

        Slots that are over or cancelled follow the others, which are written together with the
        resource and a note. A slot that begins to name the resource meanwhile gives it a new
        version: one of both fails.

        Raises:
            DuplicateNameError: another resource has the new name.
        """
        self._required.require(UNIQUE_INDEX)
        unfinished = {"end": {"$gt": now}, **NOT_CANCELLED}
        change = _renaming(name, renamed.name, now)

        async def write(session: AsyncClientSession) -> bool:
            found = await self._resources.find_one_and_delete({"_id": name}, session=session)
            if found is None:
                return False
            before = to_resource(found)
            found.pop("leader", None)
            others = {"formerNames": name}
            await self._resources.update_many(others, {"$pull": others}, session=session)
            document = {
                **found,
                "_id": renamed.name,
                "version": found["version"] + 1,
                "nameKey": name_key(renamed.name),
                "foldedName": search_key(renamed.name),
                "kind": renamed.kind.value,
                **leader_field(renamed),
                "formerNames": [*found.get("formerNames", ()), name][-MAX_FORMER_NAMES:],
            }
            await self._resources.insert_one(document, session=session)
            await self._slots.update_many({"resource": name, **unfinished}, change, session=session)
            note = note_resource_change(before, renamed, by, now)
            await insert_notes(self._database, [note], session)
            return True

        try:
            if not await in_transaction(self._database, write):
                return False
        except DuplicateKeyError as error:
            raise DuplicateNameError from error
        await self._slots.update_many({"resource": name, "$nor": [unfinished]}, change)
        return True

    @limited
    async def delete(
        self, name: str, now: datetime, note: AuditNote | None = None
    ) -> Sequence[SlotId]:
        """Delete a resource, with a note, unless slots that are not over use it.

        Return some of these slots.

        A slot that begins to name it meanwhile gives it a new version: one of both fails.
        """
        unfinished = {"resource": name, "end": {"$gt": now}, **NOT_CANCELLED}

        async def write(session: AsyncClientSession) -> Sequence[SlotId]:
            deleted = await self._resources.delete_one({"_id": name}, session=session)
            found = self._slots.find(unfinished, {"_id": 1}, limit=MAX_SHOWN_USERS, session=session)
            users = [SlotId(str(document["_id"])) async for document in found]
            if users:
                await session.abort_transaction()
            elif deleted.deleted_count:
                await insert_notes(self._database, [note], session)
            return users

        return await in_transaction(self._database, write)

    @limited
    async def find_busy(
        self, names: Sequence[str], start: datetime, end: datetime
    ) -> Sequence[FreeBusy]:
        """Return when published slots occupy resources in a period."""
        found = []
        for name in names:
            slots = self._slots.find(
                _occupied_query(name, start, end),
                {"start": 1, "end": 1, "meetings": 1},
                sort=[("start", 1)],
                limit=MAX_BUSY_SPANS + 1,
            )
            meetings = [(SlotId(str(slot["_id"])), _to_meetings(slot)) async for slot in slots]
            found.append(free_busy(name, meetings, start, end))
        return found


def _change(resource: Resource) -> Document:
    """Return the update that gives a resource its kind and its leader."""
    led = leader_field(resource)
    removed = {} if led else {"$unset": {"leader": ""}}
    return {"$set": {"kind": resource.kind.value, **led}, **removed}


def _renaming(name: str, new_name: str, now: datetime) -> list[Document]:
    """Return the update of slots that replaces a name of a resource."""
    old, new, revision = {"$literal": name}, {"$literal": new_name}, {"$ifNull": ["$revision", 0]}
    replaced = {"$cond": [{"$eq": ["$$this", old]}, new, "$$this"]}
    in_list = {"$map": {"input": "$resource", "in": replaced}}
    changes: Document = {
        "resource": {"$cond": [{"$isArray": "$resource"}, in_list, new]},
        "version": {"$add": ["$version", 1]},
        "changedAt": {"$max": ["$changedAt", now]},
        # Calendars show the names of resources.
        "revision": {"$add": [revision, 1]},
        "revisedAt": now,
    }
    return [{"$set": changes}]


def _occupied_query(resource: object, start: datetime, end: datetime) -> Document:
    """Return the query for the published slots of resources that overlap a period."""
    status = SlotStatus.PUBLISHED.value
    return {"resource": resource, "status": status, "start": {"$lt": end}, "end": {"$gt": start}}


def _list_query(text: str, kind: ResourceKind | None, after_key: str) -> Document:
    query: Document = {"nameKey": {"$gt": after_key}}
    if text:
        query["foldedName"] = {"$regex": re.escape(search_key(normalize_line(text)))}
    if kind is not None:
        query["kind"] = kind.value if kind is not ResourceKind.OTHER else {"$in": ["other", None]}
    return query


def _to_meetings(slot: Document) -> Sequence[Meeting]:
    meetings = slot.get("meetings") or [slot]
    return [Meeting(each["start"], each["end"]) for each in meetings]
