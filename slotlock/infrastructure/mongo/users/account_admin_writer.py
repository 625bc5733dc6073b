"""Changes of accounts by organizers, admins and operators, bans included, each with a note."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import AuditNote, note_user_change
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.account_admin_rules import LastAdmin
from slotlock.domain.users.dependents import GuardianRefusal, guardian_refusal, namesake_refusal
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.sessions import (
    EndedAccess,
    end_all_sessions,
    end_links,
    end_other_ways_in,
    end_ways_in_of_banned,
    set_session_roles,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    EMAIL_INDEX,
    NOT_SIGNED_IN,
    PUBLIC_FIELDS,
    guardians_field,
    list_fields_of,
    to_new_document,
    to_user,
)

BAN_FIELDS = dict.fromkeys(("banned", "bannedAt", "bannedBy", "banReason"), "")
# What was sent to an address, or waits for what was.
ADDRESS_TOKENS = ("invitation", "passwordReset", "emailVerification")
MAX_FORMER_LOGIN_NAMES = 20


@value_object
class InvitedUser:
    """An account to create without a password, with the hash of its invitation's token, if any."""

    name: str
    login_name: str
    role: Role
    groups: tuple[str, ...]
    invitation_hash: str | None
    invitation_until: datetime
    guardians: tuple[UserId, ...] = ()
    family_name: str | None = None


@value_object
class LoginNameTaken:
    """Another account has the login name."""


class AccountAdminWriter:
    """Creates, edits and resets accounts on behalf of others."""

    def __init__(
        self,
        database: Database,
        limiter: ConcurrencyLimiter,
        required: RequiredIndexes,
        outbox: OutboxRepository,
    ) -> None:
        self.limiter = limiter
        self._outbox = outbox
        self._database = database
        self._users = database["users"]
        self._required = required

    @limited
    async def insert(
        self,
        new: InvitedUser,
        by: UserId,
        now: datetime,
        to_mail: Callable[[User], OutboxEntry] | None = None,
    ) -> User | UserNotFound | GuardianRefusal | None:
        """Insert an invited user without a password, and the mail with the token, if there is one.

        Return None if the login name is taken.
        """
        self._required.require(EMAIL_INDEX)
        invitation = {
            "hash": new.invitation_hash,
            "until": new.invitation_until,
            **({"mailedAt": now} if to_mail else {}),
        }
        document = {
            **to_new_document(new.name, new.login_name, new.role, None, now, new.family_name),
            **({"groups": list(new.groups)} if new.groups else {}),
            **({"invitation": invitation} if new.invitation_hash else {}),
            **guardians_field(new.guardians),
        }
        user = to_user(document)
        note = note_user_change(None, user, NoteAction.USER_CREATED, by, now)
        mails = [to_mail(user)] if to_mail else []

        async def write(session: AsyncClientSession) -> User | UserNotFound | GuardianRefusal:
            guardians = new.guardians
            refusal = await refuse_guardians(self._database, user.id, guardians, session, user)
            if refusal:
                return refusal
            await self._users.insert_one(document, session=session)
            await insert_notes(self._database, [note], session)
            await self._outbox.insert(mails, now, session)
            return user

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:
            return None

    @limited
    async def update(
        self,
        expected: User,
        name: str,
        login_name: str,
        phone: str | None,
        guardians: tuple[UserId, ...],
        by: UserId,
        now: datetime,
        mails: Sequence[OutboxEntry] = (),
        family_name: str | None = None,
    ) -> User | LoginNameTaken | UserNotFound | GuardianRefusal | None:
        """Change what an account says of its user. Return None if the user changed.

        A new login name ends the tokens that were sent to the old address. The mails about it are
        inserted.
        """
        self._required.require(EMAIL_INDEX)
        query: Document = {
            "_id": ObjectId(expected.id),
            "role": expected.role.value,
            "name": expected.name,
            "email": expected.login_name,
            "familyName": expected.family_name,
            "phone": expected.phone,
            "guardians": [ObjectId(each) for each in expected.guardians] or None,
            "erasedAt": None,
        }
        in_lists = list_fields_of(name, login_name, family_name or expected.family_name)
        update: Document = {"$set": {"name": name, "email": login_name, **in_lists}, "$unset": {}}
        if family_name:
            update["$set"]["familyName"] = family_name
        if phone:
            update["$set"]["phone"] = phone
        else:
            update["$unset"]["phone"] = ""
        if guardians:
            update["$set"] |= guardians_field(guardians)
        else:
            update["$unset"]["guardians"] = ""
        if login_name != expected.login_name:
            update["$unset"] |= dict.fromkeys(ADDRESS_TOKENS, "")
            # Who may give an account another address depends on whether its user has signed in.
            query |= {} if expected.has_signed_in else NOT_SIGNED_IN
        info = AuditInfo(NoteAction.USER_EDITED, by, now)
        added = [each for each in guardians if each not in expected.guardians]
        is_other = added or fold(name) != fold(expected.name)
        after = replace(expected, name=name, login_name=login_name, guardians=guardians)
        other = after if is_other else None

        async def write(
            session: AsyncClientSession,
        ) -> User | UserNotFound | GuardianRefusal | None:
            refusal = await refuse_guardians(self._database, expected.id, added, session, other)
            return refusal or await update_login_name(
                self._database, self._outbox, query, update, info, mails, session
            )

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:
            return LoginNameTaken()

    @limited
    async def vouch(self, expected: User, by: UserId, now: datetime) -> User | None:
        """Remove the mark of a user who registered. Return None if the user changed meanwhile."""
        if not expected.self_registered:
            return expected
        query: Document = {
            "_id": ObjectId(expected.id),
            "role": expected.role.value,
            "email": expected.login_name,
            "selfRegistered": True,
            "erasedAt": None,
        }
        update = {"$unset": {"selfRegistered": ""}}
        info = AuditInfo(NoteAction.VOUCHED_FOR, by, now)
        return await in_transaction(
            self._database,
            lambda session: update_user(self._database, query, update, info, session),
        )

    @limited
    async def set_role(
        self,
        user_id: UserId,
        role: Role,
        by: UserId | None,
        now: datetime,
        *,
        ends_other_ways: bool = False,
    ) -> User | LastAdmin | None:
        """Set a user's role, also in their open sessions.

        Return None without a user, and for one with guardians, who stays a member.

        It ends an open invitation, which was made for the old role. It also vouches for them. With
        `ends_other_ways`, it also ends the password and the sessions, which somebody else may have.
        """
        unset = ["invitation", "selfRegistered"]
        update: Document = {"$set": {"role": role.value}}
        if ends_other_ways:
            unset += ["passwordHash", "passwordReset", "emailVerification", "calendar"]
            update["$set"]["withoutPassword"] = True
        update["$unset"] = dict.fromkeys(unset, "")
        info = AuditInfo(NoteAction.ROLE_SET, by, now)

        async def write(session: AsyncClientSession) -> User | LastAdmin | None:
            query: Document = {"_id": ObjectId(user_id), "erasedAt": None}
            if role is not Role.MEMBER:
                query["guardians"] = None
            is_admin = {**query, "role": Role.ADMIN.value}
            was_admin = await self._users.find_one(is_admin, {"_id": 1}, session=session)
            changed = await update_user(self._database, query, update, info, session)
            if changed is None:
                return None
            loses_admin = was_admin and role is not Role.ADMIN
            if loses_admin and not await has_other_admin(self._database, user_id, session):
                await session.abort_transaction()
                return LastAdmin(user_id)
            if ends_other_ways:
                await end_all_sessions(self._database, user_id, session)
            else:
                await set_session_roles(self._database, user_id, role, session)
            return changed

        return await in_transaction(self._database, write)

    @limited
    async def end_sessions(
        self,
        user_id: UserId,
        by: UserId,
        now: datetime,
        end_links_since: datetime | None,
        *,
        end_calendar_feed: bool = False,
    ) -> EndedAccess:
        """End all sessions of a user, and linked sign-ins as in `end_links`. Return what ended."""
        feed: Document = {"_id": ObjectId(user_id), "calendar": {"$exists": end_calendar_feed}}
        note = AuditNote(now, by, NoteAction.SESSIONS_ENDED, (), user_ids=(user_id,))

        async def write(session: AsyncClientSession) -> EndedAccess:
            ended = await end_all_sessions(self._database, user_id, session)
            end_feed = {"$unset": {"calendar": ""}}
            feeds = await self._users.update_one(feed, end_feed, session=session)
            has_ended = bool(ended or feeds.modified_count)
            await insert_notes(self._database, [note] * has_ended, session)
            links = await end_links(self._database, [user_id], end_links_since, by, now, session)
            return EndedAccess(ended, links)

        return await in_transaction(self._database, write)

    @limited
    async def replace_password(
        self,
        user_id: UserId,
        password_hash: str,
        now: datetime,
        mails: Sequence[OutboxEntry] = (),
        end_links_since: datetime | None = None,
    ) -> bool:
        """Set a password, end all sessions and insert the mails about it.

        Linked sign-ins end as in `end_links`. Return False if the user was erased meanwhile.
        """
        note = AuditNote(now, None, NoteAction.PASSWORD_SET, (), user_ids=(user_id,))
        update = {
            "$set": {"passwordHash": password_hash},
            "$unset": dict.fromkeys(("withoutPassword", "selfRegistered", *ADDRESS_TOKENS), ""),
        }

        async def write(session: AsyncClientSession) -> bool:
            query = {"_id": ObjectId(user_id), "erasedAt": None}
            before = await self._users.find_one_and_update(
                query, update, {"selfRegistered": 1}, session=session
            )
            if before is None:
                return False
            if "selfRegistered" in before:
                await end_other_ways_in(self._database, user_id, session)
            await end_all_sessions(self._database, user_id, session)
            await end_links(self._database, [user_id], end_links_since, None, now, session)
            await insert_notes(self._database, [note], session)
            await self._outbox.insert(mails, now, session)
            return True

        return await in_transaction(self._database, write)


async def has_other_admin(database: Database, user_id: UserId, session: AsyncClientSession) -> bool:
    """Return whether there is another admin, who stays one until this transaction commits.

    The write makes concurrent transactions conflict that each take the role from the last other
    admin. A read would let both commit.
    """
    other: Document = {
        "_id": {"$ne": ObjectId(user_id)},
        "role": Role.ADMIN.value,
        "banned": None,
    }
    touch = {"$set": {"adminCheckedBy": ObjectId()}}
    return bool((await database["users"].update_one(other, touch, session=session)).matched_count)


async def refuse_guardians(
    database: Database,
    user_id: UserId,
    added: Sequence[UserId],
    session: AsyncClientSession,
    other: User | None = None,
) -> UserNotFound | GuardianRefusal | None:
    """Return why these cannot become guardians of a user; None if they can until the commit.

    An `other` user than before, by the name or the guardians, must not be one that these have: a
    client may repeat a request, and a file could not tell them apart.
    """
    ids = [ObjectId(each) for each in (other.guardians if other else added)]
    if not ids:
        return None
    relevant = {"$or": [{"_id": {"$in": ids}}, {"guardians": {"$in": [*ids, ObjectId(user_id)]}}]}
    found = database["users"].find(relevant, PUBLIC_FIELDS, session=session)
    users = {user.id: user async for user in (to_user(each) async for each in found)}
    if other and (namesake := namesake_refusal(other, users.values())):
        return namesake
    for each in added:
        guardian = users.get(each)
        if guardian is None or guardian.erased:
            return UserNotFound(each)
        if refusal := guardian_refusal(user_id, guardian, users.values()):
            return refusal
    await mark_checked(database, ids, session)
    return None


async def mark_checked(
    database: Database,
    ids: Sequence[ObjectId],
    session: AsyncClientSession,
    expected: Document | None = None,
) -> int:
    """Make concurrent transactions conflict that change these users, or give them dependents.

    Return how many there are, and are as expected.
    """
    touch = {"$set": {"guardianCheckedBy": ObjectId()}}
    query: Document = {"_id": {"$in": ids}, **(expected or {})}
    return (await database["users"].update_many(query, touch, session=session)).matched_count


async def has_admin(database: Database) -> bool:
    """Return whether any account is an admin and not banned."""
    query: Document = {"role": Role.ADMIN.value, "banned": None}
    return await database["users"].find_one(query, {"_id": 1}) is not None


@value_object
class AuditInfo:
    """The action, the actor and the time that the audit note of a change contains."""

    action: NoteAction
    by: UserId | None
    now: datetime


async def update_login_name(
    database: Database,
    outbox: OutboxRepository,
    query: Document,
    update: Document,
    audit_info: AuditInfo,
    mails: Sequence[OutboxEntry],
    session: AsyncClientSession,
    *,
    assigns_invitations: bool = True,
) -> User | None:
    """Update a user, note the change and insert the mails about it, within a transaction.

    With `assigns_invitations`, the old login name was the user's: it is stored, and the open
    invitations of teams to it follow the user. Return None if there is no such user.
    """
    changed = await update_user(database, query, update, audit_info, session)
    if changed is not None:
        await outbox.insert(mails, audit_info.now, session)
    if changed is not None and assigns_invitations and changed.login_name != query["email"]:
        # The repository of teams imports the outcomes of all commands.
        from slotlock.infrastructure.mongo.team_repository import assign_invitations

        await assign_invitations(database, changed.id, query["email"], session)
        former = {"$each": [query["email"]], "$slice": -MAX_FORMER_LOGIN_NAMES}
        await database["users"].update_one(
            {"_id": ObjectId(changed.id)},
            {"$push": {"formerLoginNames": former}},
            session=session,
        )
    return changed


async def update_user(
    database: Database,
    query: Document,
    update: Document,
    audit_info: AuditInfo,
    session: AsyncClientSession,
) -> User | None:
    """Update a user and note the change. Return the updated user; None if there is no such user."""
    before = await database["users"].find_one_and_update(
        query, update, PUBLIC_FIELDS, session=session
    )
    if before is None:
        return None
    changed = await database["users"].find_one(
        {"_id": before["_id"]}, PUBLIC_FIELDS, session=session
    )
    if changed is None:
        return None
    after = to_user(changed)
    note = note_user_change(
        to_user(before), after, audit_info.action, audit_info.by, audit_info.now
    )
    await insert_notes(database, [note], session)
    return after


class BanWriter:
    """Bans users and lifts bans."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]

    @limited
    async def ban(
        self,
        expected: User,
        by: UserId,
        reason: str | None,
        now: datetime,
    ) -> User | None:
        """Ban a user and end their sessions and new links. Return None if the user changed.

        A second ban replaces the reason and does not change the time of the ban.
        """
        write = partial(self._write_ban, expected, by, reason, now)
        return await in_transaction(self._database, write)

    @limited
    async def ban_unless_last_admin(
        self, expected: User, reason: str | None, now: datetime
    ) -> User | LastAdmin | None:
        """Ban a user for the command line: everybody else who bans an admin is one."""

        async def write(session: AsyncClientSession) -> User | LastAdmin | None:
            is_admin = expected.role is Role.ADMIN
            if is_admin and not await has_other_admin(self._database, expected.id, session):
                return LastAdmin(expected.id)
            return await self._write_ban(expected, None, reason, now, session)

        return await in_transaction(self._database, write)

    async def _write_ban(
        self,
        expected: User,
        by: UserId | None,
        reason: str | None,
        now: datetime,
        session: AsyncClientSession,
    ) -> User | None:
        ban: Document = {} if reason is None else {"banReason": reason}
        # Also of a user whom a sync banned: from now on, only organizers lift this ban.
        ban["bannedBy"] = ObjectId(by) if by else None
        if not expected.banned:
            ban["bannedAt"] = now
        update, info = {"$set": {"banned": True, **ban}}, AuditInfo(NoteAction.BANNED, by, now)
        unchanged = _unchanged_filter(expected)
        banned = await update_user(self._database, unchanged, update, info, session)
        if banned is not None:
            await end_ways_in_of_banned(self._database, [expected.id], by, now, session)
        return banned

    @limited
    async def find_banned_since(self, since: datetime, limit: int) -> list[tuple[UserId, UserId]]:
        """Return the users who were banned after a time, latest first, each with the actor.

        The actor of a ban by the command line is the user.
        """
        found = self._users.find(
            {"bannedAt": {"$gt": since}}, {"bannedBy": 1}, sort=[("bannedAt", -1)], limit=limit
        )
        return [
            (UserId(str(each["_id"])), UserId(str(each.get("bannedBy") or each["_id"])))
            async for each in found
        ]

    @limited
    async def unban(self, expected: User, by: UserId | None, now: datetime) -> User | None:
        """Lift a ban. Return the user; None if the user changed meanwhile."""
        audit_info = AuditInfo(NoteAction.UNBANNED, by, now)
        return await in_transaction(
            self._database,
            lambda session: update_user(
                self._database,
                _unchanged_filter(expected),
                {"$unset": BAN_FIELDS},
                audit_info,
                session,
            ),
        )


def _unchanged_filter(expected: User) -> Document:
    # The role decides who may ban the user, and may have changed meanwhile.
    return {
        "_id": ObjectId(expected.id),
        "role": expected.role.value,
        "bannedAt": expected.banned_at,
    }
