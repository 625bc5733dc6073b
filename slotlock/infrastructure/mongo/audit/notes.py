"""Stores audit notes, each in the transaction of the change that it describes.

audit_notes: {_id, at, by, action, edits: [{field, before, after, user?}], slot?, campaign?,
users?: [id], resource?: name, schemaVersion}
"""

from collections.abc import Iterable

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.log import AuditAction, AuditEntry, AuditFilter, AuditPosition, FieldEdit
from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.expressions import Pipeline
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.schema.versions import with_schema_version
from slotlock.infrastructure.stored_enums import from_stored

NEWEST_FIRST = [("at", -1), ("_id", -1)]
AUDIT_NOTE_INDEXES = indexes_of(
    "audit_notes",
    {
        name: ([(name, 1), *NEWEST_FIRST], {})
        for name in ("action", "by", "slot", "campaign", "users")
    },
)


async def insert_notes(
    database: Database, notes: Iterable[AuditNote | None], session: AsyncClientSession
) -> None:
    """Insert notes of the changes that the transaction of this session makes."""
    if documents := [note_to_document(note) for note in notes if note is not None]:
        await database["audit_notes"].insert_many(documents, session=session)


def note_to_document(note: AuditNote) -> Document:
    """Return the document of a note."""
    document: Document = {
        "_id": ObjectId(),
        "at": note.at,
        "by": note.by and ObjectId(note.by),
        "action": note.action.value,
        "edits": [_edit_to_subdocument(edit) for edit in note.edits],
    }
    if note.slot_id:
        document["slot"] = ObjectId(note.slot_id)
    if note.campaign_id:
        document["campaign"] = ObjectId(note.campaign_id)
    if note.user_ids:
        document["users"] = [ObjectId(user_id) for user_id in note.user_ids]
    if note.resource:
        document["resource"] = note.resource
    return with_schema_version("audit_notes", document)


def _edit_to_subdocument(edit: FieldEdit) -> Document:
    user = {"user": ObjectId(edit.user_id)} if edit.user_id else {}
    return {"field": edit.field, "before": edit.before, "after": edit.after, **user}


class AuditNoteRepository:
    """Finds audit notes, within the snapshot in which the audit log is read."""

    def __init__(self, database: Database) -> None:
        self._notes = database["audit_notes"]

    async def find_newest(
        self,
        audit_filter: AuditFilter,
        after: AuditPosition | None,
        limit: int,
        session: AsyncClientSession,
    ) -> list[AuditEntry]:
        """Return the newest notes that the filter selects."""
        actions = await self._find_actions(audit_filter, session)
        if not actions:
            return []
        query = {"$and": _note_conditions(audit_filter, actions, after)}
        found = self._notes.find(query, sort=NEWEST_FIRST, limit=limit, session=session)
        return [_to_entry(document) async for document in found]

    async def _find_actions(
        self, audit_filter: AuditFilter, session: AsyncClientSession
    ) -> list[str]:
        """Return the stored actions that the filter selects, also those of a newer version.

        With all actions named, the index of actions sorts the notes.
        """
        stages: Pipeline = [{"$sort": {"action": 1}}, {"$group": {"_id": "$action"}}]
        found = await self._notes.aggregate(stages, session=session)
        stored = [document["_id"] async for document in found]
        wanted = AuditAction if audit_filter.actions is None else audit_filter.actions
        return sorted(each for each in stored if from_stored(each, AuditAction.OTHER) in wanted)


def _note_conditions(
    audit_filter: AuditFilter, actions: list[str], after: AuditPosition | None
) -> list[Document]:
    ids = {
        "slot": audit_filter.slot_id,
        "campaign": audit_filter.campaign_id,
        "users": audit_filter.user_id,
        "by": audit_filter.by,
    }
    conditions: list[Document] = [{name: ObjectId(id_)} for name, id_ in ids.items() if id_]
    if audit_filter.system_only:
        conditions.append({"by": None})
    conditions.append({"action": {"$in": actions}})
    if audit_filter.since is not None:
        conditions.append({"at": {"$gte": audit_filter.since}})
    if audit_filter.before is not None:
        conditions.append({"at": {"$lt": audit_filter.before}})
    if after is not None:
        same_time = {"at": after.at, "_id": {"$lt": ObjectId(after.id)}}
        older = {"$or": [{"at": {"$lt": after.at}}, same_time]}
        conditions += [{"at": {"$lte": after.at}}, older]
    return conditions


def _to_entry(document: Document) -> AuditEntry:
    users = [UserId(str(user)) for user in document.get("users", ())]
    return AuditEntry(
        AuditPosition(document["at"], str(document["_id"]), 0),
        from_stored(document["action"], AuditAction.OTHER),
        UserId(str(document["by"])) if document["by"] else None,
        users[0] if len(users) == 1 else None,
        SlotId(str(document["slot"])) if "slot" in document else None,
        campaign_id=CampaignId(str(document["campaign"])) if "campaign" in document else None,
        resource=document.get("resource"),
        edits=tuple(_to_edit(edit) for edit in document["edits"]),
    )


def _to_edit(document: Document) -> FieldEdit:
    user_id = UserId(str(document["user"])) if "user" in document else None
    return FieldEdit(document["field"], document["before"], document["after"], user_id)
