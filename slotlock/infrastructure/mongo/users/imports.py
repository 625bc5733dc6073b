"""Imports of people in MongoDB: all of a file in one transaction, or nothing of it.

The collection `imports` holds one document, {_id: "users", version, at}. Every import turns its
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

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.audit.log import FieldEdit as FieldEdit
from slotlock.domain.audit.notes import AuditNote, user_edits
from slotlock.domain.users.import_plan import ImportPlan, NewUser, UserUpdate
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import (
    OPERATION_TIMEOUT_MS,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.users.documents import (
    PUBLIC_FIELDS,
    search_words_of,
    to_new_document,
    to_user,
)
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync

# What is encoded at once keeps the process from serving others.
IMPORT_BATCH_SIZE = 500
DUPLICATE_KEY, WRITE_CONFLICT, TOO_LARGE_FOR_CACHE = 11000, 112, 388
# Interrupted by its time limit, or given up by MongoDB, which is told in three ways.
TIMEOUT_CODES = {50, 251, 262, 290}
IMPORT_ID = "users"
IMPORTED_FIELDS = ("email", "name", "groups")


@dataclass(frozen=True, slots=True)
class UserSnapshot:
    """Those of some addresses that have an account, and the imports there were until then."""

    version: int
    users_by_email: dict[str, User]


class ImportAttempt(Enum):
    """What came of writing a plan: all of it was written, or nothing."""

    WRITTEN = auto()
    CONFLICT = auto()  # somebody else wrote first
    FAILED = auto()  # somebody else wrote, or there was no room or time: who looks again knows more
    TOO_LARGE = auto()  # more than there will be room for


class _ImportConflictError(Exception):
    """Somebody else wrote first."""


class UserImportWriter:
    """The way in for many people at once."""

    def __init__(
        self,
        database: Database,
        list_limiter: ConcurrencyLimiter,
        waitlist_groups: WaitlistGroupSync,
    ) -> None:
        self.list_limiter = list_limiter
        self._waitlist_groups = waitlist_groups
        self._client = database.client
        self._database = database
        self._users = database["users"]
        self._imports = database["imports"]

    @limited_listing
    async def load_snapshot(self, emails: Sequence[str]) -> UserSnapshot:
        """Who has these addresses now."""
        # The version first: an import that comes in between is noticed when this one is written.
        turned = await self._imports.find_one({"_id": IMPORT_ID})
        known: dict[str, User] = {}
        for batch in chunked(emails, IMPORT_BATCH_SIZE):
            found = self._users.find({"email": {"$in": batch}}, PUBLIC_FIELDS)
            known |= {user.email: user for user in [to_user(each) async for each in found]}
        return UserSnapshot(turned["version"] if turned else 0, known)

    @limited_listing
    async def commit(
        self, plan: ImportPlan, snapshot: UserSnapshot, now: datetime, by: UserId | None = None
    ) -> ImportAttempt:
        """Write a plan if people still are as it was made for; else look again, plan again."""
        async with self._client.start_session() as session:
            try:
                async with await session.start_transaction():
                    # Only around the writes: what ran out of time has to be given up all the same.
                    with timeout(OPERATION_TIMEOUT_MS / 1000):
                        await self._bump_version(snapshot, now, session)
                        await self._write_all(plan, now, by, session)
            except _ImportConflictError:
                return ImportAttempt.CONFLICT
            except PyMongoError as error:
                attempt = _to_attempt(error)
                if attempt is None:
                    raise _redacted(error) from None
                return attempt
        await self._waitlist_groups.sync_now(_user_ids_with_new_groups(plan), now)
        return ImportAttempt.WRITTEN

    async def _bump_version(
        self, snapshot: UserSnapshot, now: datetime, session: AsyncClientSession
    ) -> None:
        """Be the next import. Errors: _StaleError when another is, or is about to be."""
        try:
            turned = await self._imports.update_one(
                {"_id": IMPORT_ID, "version": snapshot.version},
                {"$inc": {"version": 1}, "$set": {"at": now}},
                # The first import of all makes it; a second first one has the id against it.
                upsert=snapshot.version == 0,
                session=session,
            )
        except OperationFailure as error:
            if _error_codes(error) & {DUPLICATE_KEY, WRITE_CONFLICT}:
                raise _ImportConflictError from error
            raise
        if not (turned.matched_count or turned.upserted_id):
            raise _ImportConflictError

    async def _write_all(
        self, plan: ImportPlan, now: datetime, by: UserId | None, session: AsyncClientSession
    ) -> None:
        for people in chunked(plan.created, IMPORT_BATCH_SIZE):
            new = [_new_user_to_document(person, now) for person in people]
            await self._users.insert_many(new, session=session)
            begun = [user_edits(None, to_user(each), *IMPORTED_FIELDS) for each in new]
            await insert_notes(self._database, [_import_note(begun, by, now)], session)
        for edits in chunked(plan.updated, IMPORT_BATCH_SIZE):
            updates = [_user_update(edit) for edit in edits]
            written = await self._users.bulk_write(updates, session=session)
            if written.matched_count < len(updates):
                raise _ImportConflictError
            changes = [user_edits(edit.before, edit.after, *IMPORTED_FIELDS) for edit in edits]
            await insert_notes(self._database, [_import_note(changes, by, now)], session)
        await self._waitlist_groups.mark_pending(_user_ids_with_new_groups(plan), now, session)


def _user_ids_with_new_groups(plan: ImportPlan) -> list[UserId]:
    return [edit.before.id for edit in plan.updated if edit.groups != edit.before.groups]


def _new_user_to_document(new_user: NewUser, now: datetime) -> Document:
    document = to_new_document(new_user.name, new_user.email, Role.MEMBER, None, now)
    return {**document, "groups": list(new_user.groups)}


def _import_note(
    edits: Sequence[tuple[FieldEdit, ...]], by: UserId | None, now: datetime
) -> AuditNote:
    whose = tuple(each[0].user_id for each in edits if each and each[0].user_id)
    told = tuple(edit for each in edits for edit in each)
    return AuditNote(now, by, AuditAction.USERS_IMPORTED, told, user_ids=whose)


def _user_update(user_update: UserUpdate) -> UpdateOne:
    groups = list(user_update.before.groups)
    guard: Document = {
        "_id": ObjectId(user_update.before.id),
        "name": user_update.before.name,
        "groups": groups or {"$in": [None, []]},
    }
    change: Document = {"groups": list(user_update.groups)}
    if user_update.name != user_update.before.name:
        change |= {
            "name": user_update.name,
            "searchWords": search_words_of(user_update.name, user_update.before.email),
        }
    # Else MongoDB weighs the index of groups against that of ids, for each person anew.
    return UpdateOne(guard, {"$set": change}, hint="_id_")


def _to_attempt(error: PyMongoError) -> ImportAttempt | None:
    """What an error says of an import that was not written; None if it says nothing."""
    if error.has_error_label("UnknownTransactionCommitResult"):
        return None
    codes = _error_codes(error)
    if DUPLICATE_KEY in codes:
        return ImportAttempt.CONFLICT
    if TOO_LARGE_FOR_CACHE in codes:
        return ImportAttempt.TOO_LARGE
    # MongoDB does not always answer in time that the time is over.
    late = codes & TIMEOUT_CODES or isinstance(error, NetworkTimeout)
    if late or WRITE_CONFLICT in codes or error.has_error_label("TransientTransactionError"):
        return ImportAttempt.FAILED
    return None


def _error_codes(error: PyMongoError) -> set[int | None]:
    if isinstance(error, BulkWriteError):
        return {each["code"] for each in error.details["writeErrors"]}
    return {error.code} if isinstance(error, OperationFailure) else set()


def _redacted(error: PyMongoError) -> PyMongoError:
    """An error as it may be logged: those of single documents quote names and addresses."""
    if is_unavailable(error):
        return error
    codes = ", ".join(sorted(map(str, _error_codes(error))))
    return PyMongoError(f"people were not imported: {type(error).__name__} {codes}".rstrip())
