"""Imports of people in MongoDB: all of a file in one transaction, or nothing of it.

The collection `imports` holds one document, {_id: "people", version, at}. Every import turns its
version, so that of two imports one is first and the other looks again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from bson import ObjectId
from pymongo import UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError

from slotlock.domain.audit import Edit as FieldEdit
from slotlock.domain.audit import Happening
from slotlock.domain.notes import Note, person_edits
from slotlock.domain.people import Role, User, UserId
from slotlock.domain.people_plan import Edit, ImportPlan, NewPerson
from slotlock.stores.gate import Gate, listed
from slotlock.stores.mongo import OPERATION_TIMEOUT_MS, Database, Document
from slotlock.stores.notes import keep
from slotlock.stores.user_documents import SHOWN, new_person, user_of, words_of

# What is encoded at once keeps the process from serving others.
BATCH = 500
OVERTAKEN = {11000, 112}  # a duplicate key, a write conflict
PEOPLE = "people"
IMPORTED = ("email", "name", "groups")

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SeenPeople:
    """Those of some addresses that have an account, and the imports there were until then."""

    version: int
    by_email: dict[str, User]


class _StaleError(Exception):
    """Somebody else wrote first."""


class PeopleImports:
    """The way in for many people at once."""

    def __init__(self, database: Database, lists: Gate) -> None:
        self.lists = lists
        self._client = database.client
        self._database = database
        self._users = database["users"]
        self._imports = database["imports"]

    @listed
    async def look(self, emails: Sequence[str]) -> SeenPeople:
        """Who has these addresses now."""
        # The version first: an import that comes in between is noticed when this one is written.
        turned = await self._imports.find_one({"_id": PEOPLE})
        known: dict[str, User] = {}
        for batch in _batches(emails):
            found = self._users.find({"email": {"$in": batch}}, SHOWN)
            known |= {user.email: user for user in [user_of(each) async for each in found]}
        return SeenPeople(turned["version"] if turned else 0, known)

    @listed
    async def commit(
        self, plan: ImportPlan, seen: SeenPeople, now: datetime, by: UserId | None = None
    ) -> bool:
        """Write a plan if people still are as it was made for.

        False, and nothing written, when somebody else wrote first: look again, plan again.
        """
        with timeout(OPERATION_TIMEOUT_MS / 1000):
            try:
                async with (
                    self._client.start_session() as session,
                    await session.start_transaction(),
                ):
                    await self._write_all(plan, seen, now, by, session)
            except _StaleError:
                return False
            except PyMongoError as error:
                if _overtaken(error):
                    return False
                raise
        return True

    async def _write_all(
        self,
        plan: ImportPlan,
        seen: SeenPeople,
        now: datetime,
        by: UserId | None,
        session: AsyncClientSession,
    ) -> None:
        turned = await self._imports.update_one(
            {"_id": PEOPLE, "version": seen.version},
            {"$inc": {"version": 1}, "$set": {"at": now}},
            # The first import of all makes it; a second first one has the id against it.
            upsert=seen.version == 0,
            session=session,
        )
        if not (turned.matched_count or turned.upserted_id):
            raise _StaleError
        for people in _batches(plan.created):
            new = [_new_document(person, now) for person in people]
            await self._users.insert_many(new, session=session)
            begun = [person_edits(None, user_of(each), *IMPORTED) for each in new]
            await keep(self._database, [_note(begun, by, now)], session)
        for edits in _batches(plan.updated):
            updates = [_update(edit) for edit in edits]
            written = await self._users.bulk_write(updates, session=session)
            if written.matched_count < len(updates):
                raise _StaleError
            changes = [person_edits(edit.before, edit.after, *IMPORTED) for edit in edits]
            await keep(self._database, [_note(changes, by, now)], session)


def _batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    for start in range(0, len(items), BATCH):
        yield list(items[start : start + BATCH])


def _new_document(person: NewPerson, now: datetime) -> Document:
    document = new_person(person.name, person.email, Role.MEMBER, None, now)
    return {**document, "groups": list(person.groups)}


def _note(edits: Sequence[tuple[FieldEdit, ...]], by: UserId | None, now: datetime) -> Note:
    whose = tuple(each[0].user_id for each in edits if each and each[0].user_id)
    told = tuple(edit for each in edits for edit in each)
    return Note(now, by, Happening.PEOPLE_IMPORTED, told, user_ids=whose)


def _update(edit: Edit) -> UpdateOne:
    groups = list(edit.before.groups)
    guard: Document = {
        "_id": ObjectId(edit.before.id),
        "name": edit.before.name,
        "groups": groups or {"$in": [None, []]},
    }
    words = words_of(edit.name, edit.before.email)
    change = {"name": edit.name, "groups": list(edit.groups), "words": words}
    # Else MongoDB weighs the index of groups against that of ids, for each person anew.
    return UpdateOne(guard, {"$set": change}, hint="_id_")


def _overtaken(error: PyMongoError) -> bool:
    """Whether somebody else's write is all that is wrong; the transaction was not committed."""
    if isinstance(error, DuplicateKeyError) or error.has_error_label("TransientTransactionError"):
        return True
    return isinstance(error, BulkWriteError) and any(
        each["code"] in OVERTAKEN for each in error.details["writeErrors"]
    )
