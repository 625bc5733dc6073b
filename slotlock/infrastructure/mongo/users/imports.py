"""Writes an import of users: the whole file in one transaction, or nothing of it.

    imports: {_id: "users", version, at}

Each import increments the version of this one document, so that two concurrent imports conflict and
the second one plans again. MongoDB also reports a write conflict if its cache is full, without any
other writer; see FAILED.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from bson import ObjectId
from pymongo import UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import NetworkTimeout, OperationFailure, PyMongoError

from slotlock.domain.audit.log import AuditAction, FieldEdit
from slotlock.domain.audit.notes import AuditNote, user_edits
from slotlock.domain.users.import_plan import ImportPlan, NewUser, UserUpdate
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import (
    DUPLICATE_KEY,
    OPERATION_TIMEOUT_MS,
    WRITE_CONFLICT,
    Database,
    Document,
    error_codes,
    is_commit_unknown,
    is_unavailable,
)
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.teams import remove_from_teams
from slotlock.infrastructure.mongo.users.documents import (
    EMAIL_INDEX,
    PUBLIC_FIELDS,
    stored_words_of,
    to_new_document,
    to_user,
)
from slotlock.infrastructure.mongo.users.sessions import end_sessions_of_all
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync

# Encoding a batch blocks the event loop.
IMPORT_BATCH_SIZE = 500
TOO_LARGE_FOR_CACHE = 388
# Interrupted by its time limit, or aborted by MongoDB, for which there are three codes.
TIMEOUT_CODES = {50, 251, 262, 290}
IMPORT_ID = "users"
# What the audit log says of an account.
NOTED_OF_CREATED = ("email", "name", "groups")
NOTED_OF_UPDATED = (*NOTED_OF_CREATED, "hasPassword")
# What the user who registered the account could still use, and that nobody knows this user.
CLEARED_BY_CLAIM = ("passwordHash", "invitation", "calendar", "selfRegistered")


@dataclass(frozen=True, slots=True)
class UserSnapshot:
    """The users with some addresses, and the version of the imports when they were loaded."""

    version: int
    users_by_email: dict[str, User]


class ImportAttempt(Enum):
    """Whether a plan was written, as a whole."""

    WRITTEN = auto()
    CONFLICT = auto()  # another writer was first
    FAILED = auto()  # a conflict, a full cache or a timeout: a repetition may succeed
    TOO_LARGE = auto()  # larger than the cache of MongoDB


class _ImportConflictError(Exception):
    """Another writer was first."""


class UserImportWriter:
    """Loads what an import plan is based on, and writes the plan."""

    def __init__(
        self,
        database: Database,
        list_limiter: ConcurrencyLimiter,
        waitlist_groups: WaitlistGroupSync,
        required: RequiredIndexes,
    ) -> None:
        self.list_limiter = list_limiter
        self._waitlist_groups = waitlist_groups
        self._required = required
        self._client = database.client
        self._database = database
        self._users = database["users"]
        self._imports = database["imports"]

    @limited_listing
    async def load_snapshot(self, emails: Sequence[str]) -> UserSnapshot:
        """Return the users with these addresses."""
        # The version is read first, so that a concurrent import makes it outdated.
        document = await self._imports.find_one({"_id": IMPORT_ID})
        users: dict[str, User] = {}
        for batch in chunked(emails, IMPORT_BATCH_SIZE):
            found = self._users.find({"email": {"$in": batch}}, PUBLIC_FIELDS)
            users |= {user.email: user for user in [to_user(each) async for each in found]}
        return UserSnapshot(document["version"] if document else 0, users)

    @limited_listing
    async def commit(
        self, plan: ImportPlan, snapshot: UserSnapshot, now: datetime, by: UserId | None = None
    ) -> ImportAttempt:
        """Write a plan if the users have not changed since the snapshot."""
        self._required.require(EMAIL_INDEX)
        async with self._client.start_session() as session:
            try:
                async with await session.start_transaction():
                    # Only for the writes: after a timeout, the abort needs time as well.
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
        """Increment the version. Raises _ImportConflictError if another import did."""
        try:
            result = await self._imports.update_one(
                {"_id": IMPORT_ID, "version": snapshot.version},
                {"$inc": {"version": 1}, "$set": {"at": now}},
                # The first import inserts the document; a concurrent one has a duplicate key.
                upsert=snapshot.version == 0,
                session=session,
            )
        except OperationFailure as error:
            if error_codes(error) & {DUPLICATE_KEY, WRITE_CONFLICT}:
                raise _ImportConflictError from error
            raise
        if not (result.matched_count or result.upserted_id):
            raise _ImportConflictError

    async def _write_all(
        self, plan: ImportPlan, now: datetime, by: UserId | None, session: AsyncClientSession
    ) -> None:
        for new_users in chunked(plan.created, IMPORT_BATCH_SIZE):
            documents = [_new_user_to_document(new_user, now) for new_user in new_users]
            await self._users.insert_many(documents, session=session)
            edits = [user_edits(None, to_user(each), *NOTED_OF_CREATED) for each in documents]
            await insert_notes(self._database, [_import_note(edits, by, now)], session)
        for updates in chunked(plan.updated, IMPORT_BATCH_SIZE):
            result = await self._users.bulk_write(list(map(_to_update, updates)), session=session)
            if result.matched_count < len(updates):
                raise _ImportConflictError
            edits = [user_edits(each.before, each.after, *NOTED_OF_UPDATED) for each in updates]
            await insert_notes(self._database, [_import_note(edits, by, now)], session)
            claimed_ids = [each.before.id for each in updates if each.is_claim]
            if claimed_ids:
                await end_sessions_of_all(self._database, claimed_ids, session)
                await remove_from_teams(self._database, claimed_ids, session)
        await self._waitlist_groups.mark_pending(_user_ids_with_new_groups(plan), now, session)


def _user_ids_with_new_groups(plan: ImportPlan) -> list[UserId]:
    return [each.before.id for each in plan.updated if each.groups != each.before.groups]


def _new_user_to_document(new_user: NewUser, now: datetime) -> Document:
    document = to_new_document(new_user.name, new_user.email, Role.MEMBER, None, now)
    return {**document, "groups": list(new_user.groups)}


def _import_note(
    edits: Sequence[tuple[FieldEdit, ...]], by: UserId | None, now: datetime
) -> AuditNote:
    user_ids = tuple(each[0].user_id for each in edits if each and each[0].user_id)
    all_edits = tuple(edit for each in edits for edit in each)
    return AuditNote(now, by, AuditAction.USERS_IMPORTED, all_edits, user_ids=user_ids)


def _to_update(user_update: UserUpdate) -> UpdateOne:
    before = user_update.before
    unchanged: Document = {
        "_id": ObjectId(before.id),
        "name": before.name,
        "groups": list(before.groups) or {"$in": [None, []]},
        # The role decides who may change the user.
        "role": before.role.value,
        "erasedAt": None,
    }
    change: Document = {"groups": list(user_update.groups)}
    if user_update.name != before.name:
        change |= {
            "name": user_update.name,
            "searchWords": stored_words_of(user_update.name, before.email),
        }
    update: Document = {"$set": change}
    if user_update.is_claim:
        unchanged["selfRegistered"] = True
        change["withoutPassword"] = True
        update["$unset"] = dict.fromkeys(CLEARED_BY_CLAIM, "")
    # Without the hint, MongoDB compares the index of groups with that of ids again for each user.
    return UpdateOne(unchanged, update, hint="_id_")


def _to_attempt(error: PyMongoError) -> ImportAttempt | None:
    """Return the result that an error stands for; None if it is another error."""
    if is_commit_unknown(error):
        return None
    codes = error_codes(error)
    if DUPLICATE_KEY in codes:
        return ImportAttempt.CONFLICT
    if TOO_LARGE_FOR_CACHE in codes:
        return ImportAttempt.TOO_LARGE
    # MongoDB does not always report in time that the time is over.
    is_timeout = codes & TIMEOUT_CODES or isinstance(error, NetworkTimeout)
    if is_timeout or WRITE_CONFLICT in codes or error.has_error_label("TransientTransactionError"):
        return ImportAttempt.FAILED
    return None


def _redacted(error: PyMongoError) -> PyMongoError:
    """Return an error that may be logged: errors of documents quote names and addresses."""
    if is_unavailable(error):
        return error
    codes = ", ".join(sorted(map(str, error_codes(error))))
    return PyMongoError(f"users were not imported: {type(error).__name__} {codes}".rstrip())
