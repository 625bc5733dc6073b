"""Runs functions in transactions of MongoDB, and inserts what is written together."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import OPERATION_TIMEOUT_MS, Database, Document

if TYPE_CHECKING:
    from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord

Result = TypeVar("Result")


async def in_transaction(
    database: Database, write: Callable[[AsyncClientSession], Awaitable[Result]]
) -> Result:
    """Run `write` in a transaction, which stores all or nothing, and return its result.

    `write` runs again after a conflict with another transaction, for at most 5 s in all. Without
    this limit, `with_transaction` would continue for two minutes.
    """
    with timeout(OPERATION_TIMEOUT_MS / 1000):
        async with database.client.start_session() as session:
            return await session.with_transaction(write)


async def change_with_note(
    database: Database,
    change: Callable[..., Awaitable[Document | None]],
    note: AuditNote | Callable[[Document], AuditNote | None] | None,
) -> bool:
    """Change one document with its note, or nothing. Return False if there is no such document.

    `change` is a `find_one_and_*` without its session; the note may depend on what it returns.
    """

    async def write(session: AsyncClientSession) -> bool:
        found = await change(session=session)
        if found is not None:
            made = note(found) if callable(note) else note
            await insert_notes(database, [made], session)
        return found is not None

    return await in_transaction(database, write)


async def insert_unless_taken(
    database: Database,
    collection: str,
    document: Document,
    note: AuditNote | None = None,
    record: "IdempotencyRecord | None" = None,
    insert_more: Callable[[AsyncClientSession], Awaitable[object]] | None = None,
) -> bool:
    """Insert a document with its audit note and the record of its idempotency key, or nothing.

    `insert_more` inserts what else belongs to the document, with the session of its note.

    Return False if a unique value of it is taken, or the key has a record, in the meantime.
    """

    async def write(session: AsyncClientSession | None = None) -> None:
        await database[collection].insert_one(document, session=session)
        if session is not None:
            await insert_notes(database, [note], session)
            if record is not None:
                # It imports every outcome of the domain, of which a command for accounts needs few.
                from slotlock.infrastructure.mongo.idempotency.records import insert_record

                await insert_record(database, record, session)
            if insert_more is not None:
                await insert_more(session)

    try:
        if note is None and record is None:
            await write()
        else:
            await in_transaction(database, write)
    except DuplicateKeyError:
        return False
    return True
