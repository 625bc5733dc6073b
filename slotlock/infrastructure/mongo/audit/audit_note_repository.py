"""Stores audit notes, each in the transaction of the change that it describes.

audit_notes: {_id, at, by, action, edits: [{field, before, after, user?}], slot?, campaign?,
users?: [id], resource?: name, holidayList?: name, webhook?: server,
schemaVersion}
"""

from collections.abc import Iterable

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_log import FieldEdit
from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.document_parts import with_schema_version
from slotlock.infrastructure.mongo.indexes.index import indexes_of

NEWEST_FIRST = [("at", -1), ("_id", -1)]
AUDIT_NOTE_INDEXES = indexes_of(
    "audit_notes",
    {
        name: ([(name, 1), *NEWEST_FIRST], {})
        for name in ("action", "by", "slot", "campaign", "users")
    },
)


async def insert_notes(
    database: Database, notes: Iterable[AuditNote | None], session: AsyncClientSession | None
) -> None:
    """Insert notes of the changes that the transaction of this session makes, if there is one."""
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
    if note.holiday_list:
        document["holidayList"] = note.holiday_list
    if note.webhook:
        document["webhook"] = note.webhook
    return with_schema_version("audit_notes", document)


def _edit_to_subdocument(edit: FieldEdit) -> Document:
    user = {"user": ObjectId(edit.user_id)} if edit.user_id else {}
    return {"field": edit.field, "before": edit.before, "after": edit.after, **user}
