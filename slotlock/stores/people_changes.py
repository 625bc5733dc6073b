"""Changes of one person, each with a note of it in the same transaction."""

from dataclasses import dataclass
from datetime import datetime

from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit import Happening
from slotlock.domain.notes import person_note
from slotlock.domain.people import User, UserId
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import keep
from slotlock.stores.user_documents import SHOWN, user_of


@dataclass(frozen=True, slots=True)
class Noting:
    """What is noted of a change: what it is, who makes it, and when."""

    what: Happening
    by: UserId | None
    now: datetime


async def change_person(
    database: Database,
    query: Document,
    update: Document,
    noting: Noting,
    session: AsyncClientSession,
) -> User | None:
    """The person as the change leaves them; None when the query finds nobody."""
    found = await database["users"].find_one_and_update(query, update, SHOWN, session=session)
    if found is None:
        return None
    changed = await database["users"].find_one({"_id": found["_id"]}, SHOWN, session=session)
    if changed is None:
        return None
    after = user_of(changed)
    note = person_note(user_of(found), after, noting.what, noting.by, noting.now)
    await keep(database, [note], session)
    return after
