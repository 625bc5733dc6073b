"""Notes of organisers' acts in MongoDB, written in the transaction of the act itself.

{_id, at, by, do, edits: [{field, before, after, user?}], slot?, campaign?, users?: [id]}
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from bson import ObjectId
from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit import AuditEntry, AuditFilter, AuditPosition, Edit, Happening
from slotlock.domain.bookings import SlotId
from slotlock.domain.notes import Note
from slotlock.domain.people import UserId
from slotlock.domain.terms import CampaignId
from slotlock.stores.mongo import OPERATION_TIMEOUT_MS, Database, Document

Result = TypeVar("Result")

NEWEST = [("at", -1), ("_id", -1)]


async def together(
    database: Database, write: Callable[[AsyncClientSession], Awaitable[Result]]
) -> Result:
    """Carry out a transaction."""
    # Without a limit of its own with_transaction goes on for two minutes.
    with timeout(OPERATION_TIMEOUT_MS / 1000):
        async with database.client.start_session() as session:
            return await session.with_transaction(write)


async def keep(
    database: Database, notes: Iterable[Note | None], session: AsyncClientSession
) -> None:
    """Keep notes of what the transaction of this session does."""
    if documents := [note_document(note) for note in notes if note is not None]:
        await database["notes"].insert_many(documents, session=session)


def note_document(note: Note) -> Document:
    """The document of a note."""
    document: Document = {
        "_id": ObjectId(),
        "at": note.at,
        "by": note.by and ObjectId(note.by),
        "do": note.what.value,
        "edits": [_edit_document(edit) for edit in note.edits],
    }
    if note.slot_id:
        document["slot"] = ObjectId(note.slot_id)
    if note.campaign_id:
        document["campaign"] = ObjectId(note.campaign_id)
    if note.user_ids:
        document["users"] = [ObjectId(user_id) for user_id in note.user_ids]
    return document


def _edit_document(edit: Edit) -> Document:
    whose = {"user": ObjectId(edit.user_id)} if edit.user_id else {}
    return {"field": edit.field, "before": edit.before, "after": edit.after, **whose}


class Notes:
    """What organisers did. Read for the log, in its turn and its session."""

    def __init__(self, database: Database) -> None:
        self._notes = database["notes"]

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        for name in ("do", "by", "slot", "campaign", "users"):
            await self._notes.create_index([(name, 1), *NEWEST], name=name)

    async def newest(
        self,
        wanted: AuditFilter,
        after: AuditPosition | None,
        most: int,
        session: AsyncClientSession,
    ) -> list[AuditEntry]:
        """The newest notes that somebody looks for."""
        query = {"$and": _conditions(wanted, after)}
        found = self._notes.find(query, sort=NEWEST, limit=most, session=session)
        return [_entry(document) async for document in found]


def _conditions(wanted: AuditFilter, after: AuditPosition | None) -> list[Document]:
    named = {
        "slot": wanted.slot_id,
        "campaign": wanted.campaign_id,
        "users": wanted.user_id,
        "by": wanted.by,
    }
    conditions: list[Document] = [{name: ObjectId(id_)} for name, id_ in named.items() if id_]
    if wanted.by_nobody:
        conditions.append({"by": None})
    asked = Happening if wanted.what is None else wanted.what
    conditions.append({"do": {"$in": sorted(each.value for each in asked if each.noted)}})
    if wanted.since is not None:
        conditions.append({"at": {"$gte": wanted.since}})
    if wanted.before is not None:
        conditions.append({"at": {"$lt": wanted.before}})
    if after is not None:
        here = {"at": after.at, "_id": {"$lt": ObjectId(after.id)}}
        conditions += [{"at": {"$lte": after.at}}, {"$or": [{"at": {"$lt": after.at}}, here]}]
    return conditions


def _entry(document: Document) -> AuditEntry:
    users = [UserId(str(user)) for user in document.get("users", ())]
    return AuditEntry(
        AuditPosition(document["at"], str(document["_id"]), 0),
        Happening(document["do"]),
        UserId(str(document["by"])) if document["by"] else None,
        users[0] if len(users) == 1 else None,
        SlotId(str(document["slot"])) if "slot" in document else None,
        campaign_id=CampaignId(str(document["campaign"])) if "campaign" in document else None,
        edits=tuple(_edit(edit) for edit in document["edits"]),
    )


def _edit(document: Document) -> Edit:
    user_id = UserId(str(document["user"])) if "user" in document else None
    return Edit(document["field"], document["before"], document["after"], user_id)
