"""Changes of one person, each with a note of it in the same transaction."""

from dataclasses import dataclass
from datetime import datetime

from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit import AuditAction
from slotlock.domain.notes import note_user_change
from slotlock.domain.people import User, UserId
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import insert_notes
from slotlock.stores.user_documents import PUBLIC_FIELDS, to_user


@dataclass(frozen=True, slots=True)
class AuditInfo:
    """What is noted of a change: what it is, who makes it, and when."""

    action: AuditAction
    by: UserId | None
    now: datetime


async def update_user(
    database: Database,
    query: Document,
    update: Document,
    audit_info: AuditInfo,
    session: AsyncClientSession,
) -> User | None:
    """The person as the change leaves them; None when the query finds nobody."""
    found = await database["users"].find_one_and_update(
        query, update, PUBLIC_FIELDS, session=session
    )
    if found is None:
        return None
    changed = await database["users"].find_one(
        {"_id": found["_id"]}, PUBLIC_FIELDS, session=session
    )
    if changed is None:
        return None
    after = to_user(changed)
    note = note_user_change(to_user(found), after, audit_info.action, audit_info.by, audit_info.now)
    await insert_notes(database, [note], session)
    return after
