"""Imports of people in MongoDB: all of a file in one transaction, or nothing of it.

The collection `imports` holds one document, {_id: "people", version, at}. Every import turns its
version, so that of two imports one is first and the other looks again.

MongoDB rolls a transaction back with a write conflict also when its cache is full, of which nobody
else is to blame; see FAILED.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from bson import ObjectId
from pymongo import UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, NetworkTimeout, OperationFailure, PyMongoError

from slotlock.domain.audit import Edit as FieldEdit
from slotlock.domain.audit import Happening
from slotlock.domain.notes import Note, person_edits
from slotlock.domain.people import Role, User, UserId
from slotlock.domain.people_plan import Edit, ImportPlan, NewPerson
from slotlock.stores.batches import in_parts
from slotlock.stores.gate import Gate, listed
from slotlock.stores.mongo import OPERATION_TIMEOUT_MS, Database, Document, is_away
from slotlock.stores.notes import keep
from slotlock.stores.user_documents import SHOWN, new_person, user_of, words_of
from slotlock.stores.waiting_groups import WaitingGroups

# What is encoded at once keeps the process from serving others.
AT_ONCE = 500
DUPLICATE, WRITE_CONFLICT, TOO_LARGE_FOR_CACHE = 11000, 112, 388
# Interrupted by its time limit, or given up by MongoDB, which is told in three ways.
OUT_OF_TIME = {50, 251, 262, 290}
PEOPLE = "people"
IMPORTED = ("email", "name", "groups")


@dataclass(frozen=True, slots=True)
class SeenPeople:
    """Those of some addresses that have an account, and the imports there were until then."""

    version: int
    by_email: dict[str, User]


class Attempt(Enum):
    """What came of writing a plan: all of it was written, or nothing."""

    WRITTEN = auto()
    OVERTAKEN = auto()  # somebody else wrote first
    FAILED = auto()  # somebody else wrote, or there was no room or time: who looks again knows more
    TOO_MUCH = auto()  # more than there will be room for


class _StaleError(Exception):
    """Somebody else wrote first."""


class PeopleImports:
    """The way in for many people at once."""

    def __init__(self, database: Database, lists: Gate, waiting: WaitingGroups) -> None:
        self.lists = lists
        self._waiting = waiting
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
        for batch in in_parts(emails, AT_ONCE):
            found = self._users.find({"email": {"$in": batch}}, SHOWN)
            known |= {user.email: user for user in [user_of(each) async for each in found]}
        return SeenPeople(turned["version"] if turned else 0, known)

    @listed
    async def commit(
        self, plan: ImportPlan, seen: SeenPeople, now: datetime, by: UserId | None = None
    ) -> Attempt:
        """Write a plan if people still are as it was made for; else look again, plan again."""
        async with self._client.start_session() as session:
            try:
                async with await session.start_transaction():
                    # Only around the writes: what ran out of time has to be given up all the same.
                    with timeout(OPERATION_TIMEOUT_MS / 1000):
                        await self._turn(seen, now, session)
                        await self._write_all(plan, now, by, session)
            except _StaleError:
                return Attempt.OVERTAKEN
            except PyMongoError as error:
                attempt = _attempt(error)
                if attempt is None:
                    raise _unnamed(error) from None
                return attempt
        await self._waiting.soon(_regrouped(plan), now)
        return Attempt.WRITTEN

    async def _turn(self, seen: SeenPeople, now: datetime, session: AsyncClientSession) -> None:
        """Be the next import. Errors: _StaleError when another is, or is about to be."""
        try:
            turned = await self._imports.update_one(
                {"_id": PEOPLE, "version": seen.version},
                {"$inc": {"version": 1}, "$set": {"at": now}},
                # The first import of all makes it; a second first one has the id against it.
                upsert=seen.version == 0,
                session=session,
            )
        except OperationFailure as error:
            if _codes(error) & {DUPLICATE, WRITE_CONFLICT}:
                raise _StaleError from error
            raise
        if not (turned.matched_count or turned.upserted_id):
            raise _StaleError

    async def _write_all(
        self, plan: ImportPlan, now: datetime, by: UserId | None, session: AsyncClientSession
    ) -> None:
        for people in in_parts(plan.created, AT_ONCE):
            new = [_new_document(person, now) for person in people]
            await self._users.insert_many(new, session=session)
            begun = [person_edits(None, user_of(each), *IMPORTED) for each in new]
            await keep(self._database, [_note(begun, by, now)], session)
        for edits in in_parts(plan.updated, AT_ONCE):
            updates = [_update(edit) for edit in edits]
            written = await self._users.bulk_write(updates, session=session)
            if written.matched_count < len(updates):
                raise _StaleError
            changes = [person_edits(edit.before, edit.after, *IMPORTED) for edit in edits]
            await keep(self._database, [_note(changes, by, now)], session)
        await self._waiting.mark(_regrouped(plan), now, session)


def _regrouped(plan: ImportPlan) -> list[UserId]:
    return [edit.before.id for edit in plan.updated if edit.groups != edit.before.groups]


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
    change: Document = {"groups": list(edit.groups)}
    if edit.name != edit.before.name:
        change |= {"name": edit.name, "words": words_of(edit.name, edit.before.email)}
    # Else MongoDB weighs the index of groups against that of ids, for each person anew.
    return UpdateOne(guard, {"$set": change}, hint="_id_")


def _attempt(error: PyMongoError) -> Attempt | None:
    """What an error says of an import that was not written; None if it says nothing."""
    if error.has_error_label("UnknownTransactionCommitResult"):
        return None
    codes = _codes(error)
    if DUPLICATE in codes:
        return Attempt.OVERTAKEN
    if TOO_LARGE_FOR_CACHE in codes:
        return Attempt.TOO_MUCH
    # MongoDB does not always answer in time that the time is over.
    late = codes & OUT_OF_TIME or isinstance(error, NetworkTimeout)
    if late or WRITE_CONFLICT in codes or error.has_error_label("TransientTransactionError"):
        return Attempt.FAILED
    return None


def _codes(error: PyMongoError) -> set[int | None]:
    if isinstance(error, BulkWriteError):
        return {each["code"] for each in error.details["writeErrors"]}
    return {error.code} if isinstance(error, OperationFailure) else set()


def _unnamed(error: PyMongoError) -> PyMongoError:
    """An error as it may be logged: those of single documents quote names and addresses."""
    if is_away(error):
        return error
    codes = ", ".join(sorted(map(str, _codes(error))))
    return PyMongoError(f"people were not imported: {type(error).__name__} {codes}".rstrip())
