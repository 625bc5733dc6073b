"""Writes an import of users: the whole file in one transaction, or nothing of it.

    imports: {_id: "users", version, at}

Each import increments the version of this one document, so that two concurrent imports conflict and
the second one plans again. MongoDB also reports a write conflict if its cache is full, without any
other writer; see FAILED.

After its writes, the transaction checks who acts for whom, as a single account may have got a
guardian since the plan was made. Like who names a guardian, it writes to the guardians. It checks
and writes to new leaders alike, who may have been banned.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from enum import Enum, auto
from itertools import chain

from bson import ObjectId
from pymongo import UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

from slotlock.domain.audit.audit_log import FieldEdit, NoteAction
from slotlock.domain.audit.audit_notes import (
    AuditNote,
    note_resource_change,
    note_user_change,
    user_edits,
)
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.columns import SUBJECT
from slotlock.domain.user_files.identities import IdentityChange
from slotlock.domain.user_files.leaders import LeaderChange
from slotlock.domain.user_files.plan import ImportPlan, Membership, NewUser, UserUpdate
from slotlock.domain.user_files.sync_plan import GONE_REASON
from slotlock.domain.users.dependents import MAX_DEPENDENTS
from slotlock.domain.users.identity import Identity, LinkedIdentity
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
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
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.document_parts import leader_field, to_resource
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.users.account_admin_writer import BAN_FIELDS, mark_checked
from slotlock.infrastructure.mongo.users.account_claims import FIELDS_UNSET_BY_CLAIM
from slotlock.infrastructure.mongo.users.sessions import (
    end_sessions_of_all,
    end_ways_in_of_banned,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    EMAIL_INDEX,
    IDENTITY_INDEX,
    NOT_SIGNED_IN,
    PUBLIC_FIELDS,
    guardians_field,
    keys_of_issuer,
    list_fields_of,
    to_linked_identities,
    to_new_document,
    to_user,
)
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync

# Encoding a batch blocks the event loop.
IMPORT_BATCH_SIZE = 500
# A file of a few new pupils leaves out all others of their classes.
MAX_LEAVERS = 1_000
MAX_CAMPAIGNS = 500
TOO_LARGE_FOR_CACHE = 388
# Interrupted by its time limit, or aborted by MongoDB, for which there are three codes.
TIMEOUT_CODES = {50, 251, 262, 290}
IMPORT_ID = "users"
SNAPSHOT_FIELDS = PUBLIC_FIELDS | {"synced": 1, "bannedBy": 1, "identities": 1}
del SNAPSHOT_FIELDS["identities.at"]  # MongoDB rejects a field besides a part of it
# What the audit log says of an account.
NOTED_OF_CREATED = ("email", "username", "name", "groups", "phone", "guardians")
NOTED_OF_UPDATED = (*NOTED_OF_CREATED, "hasPassword", "selfRegistered")


@value_object
class UserSnapshot:
    """The users with some login names, and the version of the imports when they were loaded.

    There are also the dependents of these users, if they were asked for. `linked` are the
    identities of all of them, and of those who have some identities. `resources` are all, if they
    were asked for.

    `managed` are those whom a file of all users named, and a sync banned `banned_by_sync`.
    """

    version: int
    users_by_login_name: dict[str, User]
    managed: frozenset[UserId] = frozenset()
    banned_by_sync: frozenset[UserId] = frozenset()
    linked: Mapping[UserId, Sequence[LinkedIdentity]] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()


class ImportAttempt(Enum):
    """Whether a plan was written, as a whole."""

    WRITTEN = auto()
    CONFLICT = auto()  # another writer was first
    FAILED = auto()  # a conflict or a full cache: a repetition may succeed
    TIMED_OUT = auto()  # a repetition may succeed on a machine with less to do, or a new primary
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
    async def load_snapshot(
        self,
        login_names: Sequence[str],
        identities: Sequence[Identity] = (),
        *,
        with_managed: bool = False,
        with_dependents: bool = False,
        with_resources: bool = False,
    ) -> UserSnapshot:
        """Return the users with these login names or identities, and managed ones for a sync.

        Their dependents are a second read.
        """
        # The version is read first, so that a concurrent import makes it outdated.
        document = await self._imports.find_one({"_id": IMPORT_ID})
        queries: list[Document] = [
            {"email": {"$in": batch}} for batch in chunked(login_names, IMPORT_BATCH_SIZE)
        ]
        keys = [each.key for each in identities]
        queries += [{"identities.key": {"$in": of}} for of in chunked(keys, IMPORT_BATCH_SIZE)]
        if with_managed:
            queries.append({"synced": True})
        users: dict[str, User] = {}
        linked: dict[UserId, tuple[LinkedIdentity, ...]] = {}
        managed, banned_by_sync = set[UserId](), set[UserId]()

        async def read(queries: Iterable[Document]) -> None:
            for query in queries:
                async for found in self._users.find(query, SNAPSHOT_FIELDS):
                    user = to_user(found)
                    users[user.login_name] = user
                    if own := to_linked_identities(found):
                        linked[user.id] = own
                    if "synced" in found:
                        managed.add(user.id)
                    if found.get("bannedBy") == found["_id"]:
                        banned_by_sync.add(user.id)

        await read(queries)
        if with_dependents:
            ids = [ObjectId(user.id) for user in users.values()]
            await read({"guardians": {"$in": of}} for of in chunked(ids, IMPORT_BATCH_SIZE))
        resources: tuple[Resource, ...] = ()
        if with_resources:
            every = self._database["resources"].find({"nameKey": {"$gt": ""}})
            resources = tuple([to_resource(each) async for each in every])
        version = document["version"] if document else 0
        return UserSnapshot(
            version, users, frozenset(managed), frozenset(banned_by_sync), linked, resources
        )

    @limited_listing
    async def find_leavers(self, login_names: Sequence[str], groups: Iterable[str]) -> list[User]:
        """Return members of these groups with other login names, by login name.

        There are at most `MAX_LEAVERS`, and no banned or erased users.
        """
        query: Document = {
            "groups": {"$in": list(groups)},
            "email": {"$nin": login_names},
            "role": Role.MEMBER.value,
            "banned": None,
        }
        found = self._users.find(query, PUBLIC_FIELDS).sort("email", 1).limit(MAX_LEAVERS)
        return [to_user(document) async for document in found]

    @limited_listing
    async def find_groups(self) -> list[str]:
        """Return the groups of all users, and those that the latest campaigns are for or limit."""
        # The index has null for a user without groups.
        found: list[str] = await self._users.distinct("groups", {"groups": {"$gt": ""}})
        fields = {"terms.groupLimits.group": 1, "terms.eligibleGroups": 1}
        latest = [("terms.opensAt", -1), ("_id", -1)]
        campaigns = self._database["campaigns"].find({}, fields, sort=latest, limit=MAX_CAMPAIGNS)
        async for each in campaigns:
            found += [limit["group"] for limit in each["terms"].get("groupLimits", ())]
            found += [
                group for groups in each["terms"].get("eligibleGroups", ()) for group in groups
            ]
        return found

    @limited_listing
    async def find_future_bookings(
        self, users: Sequence[User], now: datetime
    ) -> dict[UserId, list[tuple[datetime, str]]]:
        """Return the start and title of the slots, not over yet, that these users have booked."""
        booked: dict[UserId, list[tuple[datetime, str]]] = {}
        for batch in chunked([ObjectId(user.id) for user in users], IMPORT_BATCH_SIZE):
            query: Document = {
                "bookings.user": {"$in": batch},
                "end": {"$gt": now},
                "status": {"$ne": SlotStatus.CANCELLED.value},
            }
            fields = {"start": 1, "title": 1, "bookings.user": 1}
            async for slot in self._database["slots"].find(query, fields).sort("start", 1):
                for user in {each["user"] for each in slot["bookings"]}.intersection(batch):
                    of_user = booked.setdefault(UserId(str(user)), [])
                    of_user.append((slot["start"], slot["title"]))
        return booked

    @limited_listing
    async def commit(
        self, plan: ImportPlan, snapshot: UserSnapshot, now: datetime, by: UserId | None = None
    ) -> ImportAttempt:
        """Write a plan if the users have not changed since the snapshot."""
        self._required.require(EMAIL_INDEX)
        if plan.names_identities:
            self._required.require(IDENTITY_INDEX)
        async with self._client.start_session() as session:
            try:
                async with await session.start_transaction():
                    # Only for the writes: after a timeout, the abort needs time as well.
                    with timeout(OPERATION_TIMEOUT_MS / 1000):
                        await self._bump_version(snapshot, now, session)
                        await self._write_all(plan, snapshot, now, by, session)
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
        self,
        plan: ImportPlan,
        snapshot: UserSnapshot,
        now: datetime,
        by: UserId | None,
        session: AsyncClientSession,
    ) -> None:
        ids = {name: user.id for name, user in snapshot.users_by_login_name.items()}
        mark: Document = {} if plan.membership is None else {"synced": True}
        # First, because other accounts may get them.
        for removals in chunked(_identity_removals(plan), IMPORT_BATCH_SIZE):
            result = await self._users.bulk_write(removals, session=session)
            if result.matched_count < len(removals):
                raise _ImportConflictError
        for new_users in chunked(plan.created, IMPORT_BATCH_SIZE):
            documents = [_new_user_to_document(each, ids, now) | mark for each in new_users]
            await self._users.insert_many(documents, session=session)
            edits = [
                user_edits(None, to_user(each), *NOTED_OF_CREATED)
                + _subject_edits(UserId(str(each["_id"])), IdentityChange(new_user.identity))
                for each, new_user in zip(documents, new_users, strict=True)
            ]
            await insert_notes(self._database, [_import_note(edits, by, now)], session)
        for updates in chunked(plan.updated, IMPORT_BATCH_SIZE):
            changes = [_to_update(each, ids) for each in updates]
            result = await self._users.bulk_write(changes, session=session)
            if result.matched_count < len(updates):
                raise _ImportConflictError
            edits = [
                user_edits(each.before, _after(each, ids), *NOTED_OF_UPDATED)
                + _subject_edits(each.before.id, each.identities)
                for each in updates
            ]
            await insert_notes(self._database, [_import_note(edits, by, now)], session)
            claimed_ids = [each.before.id for each in updates if each.is_claim]
            if claimed_ids:
                await end_sessions_of_all(self._database, claimed_ids, session)
                # The repository of teams imports the outcomes of all commands.
                from slotlock.infrastructure.mongo.team_repository import remove_from_teams

                await remove_from_teams(self._database, claimed_ids, session)
        await self._waitlist_groups.mark_pending(_user_ids_with_new_groups(plan), now, session)
        await self._write_leaders(plan.leaders, ids, now, by, session)
        if plan.membership is not None:
            await self._write_membership(plan.membership, now, session)
        leaders = {ids[each.login_name] for each in plan.leaders if each.login_name}
        await self._check_able(map(ObjectId, leaders), {"banned": None}, session)
        await self._check_guardians(plan, snapshot, ids, session)

    async def _check_able(
        self, users: Iterable[ObjectId], able: Document, session: AsyncClientSession
    ) -> None:
        """Check that others left users able to be what the plan makes of them, until the commit.

        Raises _ImportConflictError.
        """
        for batch in chunked([*users], IMPORT_BATCH_SIZE):
            if await mark_checked(self._database, batch, session, able) < len(batch):
                raise _ImportConflictError

    async def _check_guardians(
        self,
        plan: ImportPlan,
        snapshot: UserSnapshot,
        ids: Mapping[str, UserId],
        session: AsyncClientSession,
    ) -> None:
        """Check that others left the new guardians as they were, and let nobody change them.

        `ids` has the users of the snapshot and of the plan. Raises _ImportConflictError if one was
        banned, or got a guardian or another dependent, or if a new dependent got a dependent. So it
        does if a dependent has another name, which may be that of a child of the file.
        """
        known = snapshot.users_by_login_name
        added = [ObjectId(ids[name]) for name in _added_guardians(plan, ids) if name in known]
        await self._check_able(added, {"guardians": None, "banned": None}, session)
        changed = [each.before for each in plan.updated if each.guardians]
        new_dependents = [ObjectId(user.id) for user in changed if not user.guardians]
        names = {user.id: user.name for user in known.values()}
        names |= {each.before.id: each.name for each in plan.updated}
        dependents, has_other_name = dict[ObjectId, list[ObjectId]](), False
        for batch in chunked([*added, *new_dependents], IMPORT_BATCH_SIZE):
            query: Document = {"guardians": {"$in": batch}}
            fields = {"guardians": 1, "name": 1}
            async for each in self._users.find(query, fields, session=session):
                dependents[each["_id"]], name = each["guardians"], each["name"]
                has_other_name |= name != names.get(UserId(str(each["_id"])), name)
        counts = Counter(chain.from_iterable(dependents.values()))
        if (
            has_other_name
            or not dependents.keys() <= {ObjectId(each) for each in ids.values()}
            or any(counts[each] > MAX_DEPENDENTS for each in added)
            or any(counts[each] for each in new_dependents)
        ):
            raise _ImportConflictError

    async def _write_leaders(
        self,
        changes: Sequence[LeaderChange],
        ids: Mapping[str, UserId],
        now: datetime,
        by: UserId | None,
        session: AsyncClientSession,
    ) -> None:
        """Change who leads resources. Raises _ImportConflictError if one has changed."""
        notes = []
        for each in changes:
            before, leader = each.resource, ids[each.login_name] if each.login_name else None
            after = replace(before, leader=leader)
            unchanged = {"_id": before.name, "leader": None, **leader_field(before)}
            led = leader_field(after)
            update = {"$set": led} if led else {"$unset": {"leader": ""}}
            result = await self._database["resources"].update_one(
                unchanged, update, session=session
            )
            if not result.matched_count:
                raise _ImportConflictError
            notes.append(note_resource_change(before, after, by, now))
        await insert_notes(self._database, notes, session)

    async def _write_membership(
        self, membership: Membership, now: datetime, session: AsyncClientSession
    ) -> None:
        """Mark the named accounts, lift bans of those who returned, and ban those who are gone."""
        of_sync: Document = {"$expr": {"$eq": ["$bannedBy", "$_id"]}}
        managed_member: Document = {"synced": True, "role": Role.MEMBER.value}
        ban: Document = {"banned": True, "bannedAt": now, "bannedBy": "$_id"}
        unmark: Document = {"$unset": "synced"}
        banning = [{"$set": {**ban, "banReason": {"$literal": GONE_REASON}}}, unmark]
        gone = membership.gone if membership.bans_gone else ()
        unbanned = [user for user in gone if not user.banned]
        banned = [user for user in gone if user.banned]
        update = self._update_all
        await update(membership.named, {}, {"$set": {"synced": True}}, session)
        await update(membership.returned, of_sync, {"$unset": BAN_FIELDS}, session)
        await update(unbanned, {**managed_member, "banned": None}, banning, session)
        # An organizer banned them, whose reason stays.
        await update(banned, {**managed_member, "banned": True}, [unmark], session)
        if unbanned:
            ids = [user.id for user in unbanned]
            await end_ways_in_of_banned(self._database, ids, None, now, session)
        changes = [
            (NoteAction.UNBANNED, user, replace(user, banned_at=None, ban_reason=None))
            for user in membership.returned
        ]
        changes += [
            (NoteAction.BANNED, user, replace(user, banned_at=now, ban_reason=GONE_REASON))
            for user in unbanned
        ]
        notes = [
            note_user_change(user, after, action, None, now) for action, user, after in changes
        ]
        await insert_notes(self._database, notes, session)

    async def _update_all(
        self,
        users: Sequence[User],
        query: Document,
        update: Document | Sequence[Document],
        session: AsyncClientSession,
    ) -> None:
        """Update these users. Raises _ImportConflictError if one does not match the query."""
        for batch in chunked([ObjectId(user.id) for user in users], IMPORT_BATCH_SIZE):
            unchanged = {"_id": {"$in": batch}, "erasedAt": None, **query}
            result = await self._users.update_many(unchanged, update, session=session)
            if result.matched_count < len(batch):
                raise _ImportConflictError


def _user_ids_with_new_groups(plan: ImportPlan) -> list[UserId]:
    return [each.before.id for each in plan.updated if each.groups != each.before.groups]


def _new_user_to_document(new_user: NewUser, ids: dict[str, UserId], now: datetime) -> Document:
    """Return the document of a new user, whose id the users after it may need."""
    document = to_new_document(
        new_user.name, new_user.login_name, Role.MEMBER, None, now, new_user.family_name
    )
    identities = {"identities": [{"key": new_user.identity.key}]} if new_user.identity else {}
    phone = {"phone": new_user.phone} if new_user.phone else {}
    ids[new_user.login_name] = UserId(str(document["_id"]))
    guardians = guardians_field([ids[each] for each in new_user.guardians])
    return {**document, "groups": list(new_user.groups), **identities, **phone, **guardians}


def _added_guardians(plan: ImportPlan, ids: Mapping[str, UserId]) -> set[str]:
    """Return the login names of those who become the guardians of somebody."""
    of_new = chain.from_iterable(each.guardians for each in plan.created)
    of_known = (
        name
        for each in plan.updated
        for name in each.guardians or ()
        if ids[name] not in each.before.guardians
    )
    return {*of_new, *of_known}


def _after(update: UserUpdate, ids: Mapping[str, UserId]) -> User:
    """Return the user after an update, with the ids of the guardians."""
    if update.guardians is None:
        return update.after
    return replace(update.after, guardians=tuple(ids[each] for each in update.guardians))


def _identity_removals(plan: ImportPlan) -> list[UpdateOne]:
    """Return the updates that remove identities: those of a claimed account, or unused ones."""
    removals = []
    for update in plan.updated:
        if update.identities is None or not update.identities.removed:
            continue
        keys = {"$in": [each.key for each in update.identities.removed]}
        unchanged: Document = {"_id": ObjectId(update.before.id)}
        if not update.is_claim:
            used = {"$elemMatch": {"key": keys, "at": {"$ne": None}}}
            unchanged["identities"] = {"$not": used}
        removal = {"$pull": {"identities": {"key": keys}}}
        removals.append(UpdateOne(unchanged, removal, hint="_id_"))
    return removals


def _subject_edits(user_id: UserId, change: IdentityChange | None) -> tuple[FieldEdit, ...]:
    """Return the edit of the subject of a user for the audit log."""
    if change is None or change == IdentityChange(None):
        return ()
    before = ", ".join(each.key for each in change.removed) or None
    after = change.added.key if change.added else None
    return (FieldEdit(SUBJECT, before, after, user_id),)


def _import_note(
    edits: Sequence[tuple[FieldEdit, ...]], by: UserId | None, now: datetime
) -> AuditNote:
    user_ids = tuple(each[0].user_id for each in edits if each and each[0].user_id)
    all_edits = tuple(edit for each in edits for edit in each)
    return AuditNote(now, by, NoteAction.USERS_IMPORTED, all_edits, user_ids=user_ids)


def _to_update(user_update: UserUpdate, ids: Mapping[str, UserId]) -> UpdateOne:
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
    if user_update.family_name:
        change["familyName"] = user_update.family_name
    if user_update.phone != before.phone and user_update.phone:
        change["phone"] = user_update.phone
    change |= guardians_field([ids[each] for each in user_update.guardians or ()])
    unset = {"guardians": ""} if user_update.guardians == () else {}
    name, family_name = user_update.name, user_update.family_name
    if (name, family_name) != (before.name, before.family_name):
        change |= {"name": name, **list_fields_of(name, before.login_name, family_name)}
    update: Document = {"$set": change}
    added = user_update.identities.added if user_update.identities else None
    if user_update.choice is not None:
        unchanged["selfRegistered"] = True
        unset["selfRegistered"] = ""
    if user_update.is_claim:
        change["withoutPassword"] = True
        if user_update.name == before.name:  # the file may have no names
            change["claimed"] = True
        if added:
            change["identities"] = [{"key": added.key}]
        unset |= {each: "" for each in FIELDS_UNSET_BY_CLAIM if each not in change}
    elif added:
        # The user may have signed in with another subject of this provider meanwhile.
        unchanged["identities.key"] = {"$not": keys_of_issuer(added.issuer)}
        unchanged |= {} if before.has_signed_in else NOT_SIGNED_IN
        update["$push"] = {"identities": {"key": added.key}}
    update |= {"$unset": unset} if unset else {}
    # Without the hint, MongoDB compares the index of groups with that of ids again for each user.
    return UpdateOne({**unchanged, **_same_guardians(user_update)}, update, hint="_id_")


def _same_guardians(update: UserUpdate) -> Document:
    """Return the condition that nobody else has changed the guardians that an update changes."""
    if update.guardians is None:
        return {}
    return {"guardians": None, **guardians_field(update.before.guardians)}


def _to_attempt(error: PyMongoError) -> ImportAttempt | None:
    """Return the result that an error stands for; None if it is another error."""
    if is_commit_unknown(error):
        return None
    codes = error_codes(error)
    if DUPLICATE_KEY in codes:
        return ImportAttempt.CONFLICT
    if TOO_LARGE_FOR_CACHE in codes:
        return ImportAttempt.TOO_LARGE
    # MongoDB does not always report in time that the time is over, and may be lost meanwhile.
    if codes & TIMEOUT_CODES or isinstance(error, ConnectionFailure):
        return ImportAttempt.TIMED_OUT
    if WRITE_CONFLICT in codes or error.has_error_label("TransientTransactionError"):
        return ImportAttempt.FAILED
    return None


def _redacted(error: PyMongoError) -> PyMongoError:
    """Return an error that may be logged: errors of documents quote names and addresses."""
    if is_unavailable(error):
        return error
    codes = ", ".join(sorted(map(str, error_codes(error))))
    return PyMongoError(f"users were not imported: {type(error).__name__} {codes}".rstrip())
