"""Stores what lets a user in: the password, an invitation to set it, and a calendar token.

Only hashes are stored, so that a reader of the database cannot take over an account. A user has at
most one invitation, one reset by mail, and one calendar token. A write of the password deletes the
first two. A reset by mail, which everybody can request, replaces no invitation, and neither does an
invitation by mail that on paper: it is stored as a reset. Every request of a calendar reads the
token, so that a revoked one stops working at once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.commands import aggregate_in_one_batch
from slotlock.infrastructure.mongo.concurrency_limiter import (
    ConcurrencyLimiter,
    limited,
    limited_listing,
)
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.transactions import change_with_note, in_transaction
from slotlock.infrastructure.mongo.users.sessions import (
    EndedAccess,
    end_all_sessions,
    end_links,
    end_other_ways_in,
    other_sessions_query,
    serialize_user_sessions,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    MADE_LOGIN_NAME,
    PUBLIC_FIELDS,
    in_families_of,
    in_groups,
    to_user,
)

# Tokens that let their holder set a password.
PASSWORD_TOKENS = ("invitation", "passwordReset")
# Tokens that one command finds; each is a pipeline of its own.
TOKEN_BATCH_SIZE = 50
NO_ADDRESS = {"$not": re.compile("@")}  # of a login name


@value_object
class MailedReset:
    """A token that a mail to the address of a user contains."""

    user_id: UserId
    email: str
    token_hash: str
    mail: OutboxEntry


class _ResetVoidError(Exception):
    """A user cannot get the token, so that the transaction ends without effect."""


class InvitationRepository:
    """Stores the invitations of users without a password, and tokens that replace a password."""

    def __init__(
        self,
        database: Database,
        limiter: ConcurrencyLimiter,
        list_limiter: ConcurrencyLimiter,
        outbox: OutboxRepository,
    ) -> None:
        self.limiter = limiter
        self.list_limiter = list_limiter
        self._outbox = outbox
        self._database = database
        self._users = database["users"]
        self._find_batcher = Batcher(self._find_batch, TOKEN_BATCH_SIZE, is_outage=is_unavailable)

    @limited_listing
    async def find_invitable(
        self,
        group: str | None,
        roles: Sequence[Role],
        first: int,
        after: str | None,
        mailed_before: datetime | None = None,
        now: datetime | None = None,
    ) -> list[User]:
        """Return the next users without a password who are not banned, by login name.

        `group` is one group or several, as `5a, 5b`. The guardians of its users are among them.

        With `mailed_before`, those who got a mail since then are left out, and with `now` those
        without an address whose invitation is valid then.
        """
        query: Document = {
            **_invitable_filter(roles, mailed_before),
            **await in_families_of(self._users, in_groups(group)),
            **({} if after is None else {"email": {"$gt": after}}),
        }
        if now:
            query["$nor"].append({"email": NO_ADDRESS, **_on_paper(now)})
        found = self._users.find(query, PUBLIC_FIELDS, sort=[("email", 1)], limit=first)
        return [to_user(document) async for document in found]

    @limited_listing
    async def save(
        self,
        users: Mapping[str, User],
        roles: Sequence[Role],
        until: datetime,
        note: AuditNote | None = None,
        mails: Mapping[str, OutboxEntry] | None = None,
        *,
        mailed_before: datetime | None = None,
        only_mailed: bool = True,
    ) -> set[UserId]:
        """Replace the invitations of users, by the hash of the new one, and insert the mails.

        `only_mailed` says that nobody else shows the user what is mailed; an invitation on paper
        then stays, and works, too. Return the ids of the users who have the new ones. Users who set
        a password, were banned, got another role or address, or got a mail since `mailed_before`,
        in the meantime are skipped.
        """
        if not users:
            return set()
        mails, now = mails or {}, note.at if note else until
        updates = [
            each
            for hash_, user in users.items()
            for each in _invitation_updates(
                user,
                _invitable_filter(roles, mailed_before),
                {"hash": hash_, "until": until},
                now,
                is_mailed=hash_ in mails,
                only_mailed=only_mailed,
            )
        ]

        async def write(session: AsyncClientSession) -> set[UserId]:
            await self._users.bulk_write(updates, ordered=False, session=session)
            await insert_notes(self._database, [note], session)
            # A bulk write returns how many documents it changed, and not which ones.
            query = {"_id": {"$in": [ObjectId(user.id) for user in users.values()]}}
            hashes = {f"{name}.hash": 1 for name in PASSWORD_TOKENS}
            found = [each async for each in self._users.find(query, hashes, session=session)]
            saved = {d.get(name, {}).get("hash") for d in found for name in PASSWORD_TOKENS}
            sent = [mail for hash_, mail in mails.items() if hash_ in saved]
            await self._outbox.insert(sent, now, session)
            return {user.id for hash_, user in users.items() if hash_ in saved}

        return await in_transaction(self._database, write)

    @limited
    async def find_mailed_at(self, user_id: UserId) -> datetime | None:
        """Return when the user's invitation was mailed; None if it was not, or there is none."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"invitation.mailedAt": 1})
        at: datetime | None = (found or {}).get("invitation", {}).get("mailedAt")
        return at

    @limited
    async def forget_mail(self, user_id: UserId, until: datetime) -> None:
        """Let a user get another invitation by mail, unless they got one after this time."""
        query = {"_id": ObjectId(user_id), "invitation.mailedAt": {"$lte": until}}
        await self._users.update_one(query, {"$unset": {"invitation.mailedAt": ""}})

    @limited
    async def save_reset(
        self, user_id: UserId, hash_: str, until: datetime, by: UserId | None, now: datetime
    ) -> bool:
        """Replace the user's invitation by one that also replaces a password.

        Return False if the user is banned or does not exist. `by` is None for the command line.
        """
        invitation = {"hash": hash_, "until": until, "replacesPassword": True}
        note = AuditNote(now, by, NoteAction.PASSWORD_RESET_CREATED, (), user_ids=(user_id,))
        query = {"_id": ObjectId(user_id), "banned": None, "erasedAt": None}
        update = {"$set": {"invitation": invitation}}
        save = partial(self._users.find_one_and_update, query, update, {"_id": 1})
        return await change_with_note(self._database, save, note)

    @limited
    async def save_mailed_resets(self, resets: Sequence[MailedReset], now: datetime) -> None:
        """Store tokens that only a mail to the user's address contains, and the mails.

        Each replaces the previous one. Nothing is written of a user who does not exist, was banned,
        or has another address now.
        """
        if not await self._save_mailed_resets(resets, now) and len(resets) > 1:
            for reset in resets:
                await self._save_mailed_resets([reset], now)

    async def _save_mailed_resets(self, resets: Sequence[MailedReset], now: datetime) -> bool:
        updates = [
            UpdateOne(
                {"_id": ObjectId(each.user_id), "email": each.email, "banned": None},
                {
                    "$set": {
                        "passwordReset": {
                            "hash": each.token_hash,
                            "until": each.mail.expires_at,
                            "email": each.email,
                        }
                    }
                },
            )
            for each in resets
        ]

        async def write(session: AsyncClientSession) -> None:
            await self._outbox.insert([each.mail for each in resets], now, session)
            done = await self._users.bulk_write(updates, session=session)
            if done.matched_count < len(updates):
                raise _ResetVoidError

        try:
            await in_transaction(self._database, write)
        except _ResetVoidError:
            return False
        return True

    async def find(self, token_hash: str, now: datetime) -> User | None:
        """Return the invited user; None if the invitation is invalid or expired."""
        return await self._find_batcher.submit((token_hash, now))

    async def _find_batch(self, tokens: list[tuple[str, datetime]]) -> list[User | None]:
        first, *others = (
            [
                {"$match": valid_filter(*token)},
                {"$project": PUBLIC_FIELDS},
                {"$set": {"token": number}},
            ]
            for number, token in enumerate(tokens)
        )
        unions = [{"$unionWith": {"coll": "users", "pipeline": each}} for each in others]
        found = await aggregate_in_one_batch(self._users, [*first, *unions], len(tokens))
        users = {document["token"]: to_user(document) for document in found}
        return [users.get(number) for number in range(len(tokens))]

    @limited
    async def redeem(
        self,
        token_hash: str,
        password_hash: str,
        now: datetime,
        *,
        end_calendar_feed: bool = False,
        end_links_since: datetime | None = None,
        mails: Sequence[OutboxEntry] = (),
    ) -> tuple[User, EndedAccess] | None:
        """Set the password, once, and insert the mails about it.

        Return the user and what ended. All sessions do if it replaced a password, or ended a
        linked sign-in (`end_links`). Return None if the token is invalid or expired.
        """
        ended = ["withoutPassword", "selfRegistered", "emailVerification", *PASSWORD_TOKENS]
        if end_calendar_feed:
            ended.append("calendar")

        async def write(session: AsyncClientSession) -> tuple[User, EndedAccess] | None:
            document = await self._users.find_one_and_update(
                {**valid_filter(token_hash, now), "banned": None},
                {
                    "$set": {"passwordHash": password_hash},
                    "$unset": dict.fromkeys(ended, ""),
                },
                {**PUBLIC_FIELDS, **dict.fromkeys(PASSWORD_TOKENS, 1)},
                return_document=ReturnDocument.BEFORE,
                session=session,
            )
            if document is None:
                return None
            user, ended_sessions = replace(to_user(document), has_password=True), 0
            ended_links = await end_links(
                self._database, [user.id], end_links_since, user.id, now, session
            )
            if "withoutPassword" not in document or user.self_registered or ended_links:
                ended_sessions = await end_all_sessions(self._database, user.id, session)
            if user.self_registered:
                await end_other_ways_in(self._database, user.id, session)
            if _was_mailed(document, token_hash):
                verified = {"$set": {"verifiedEmail": user.login_name}}
                await self._users.update_one({"_id": document["_id"]}, verified, session=session)
                user = replace(user, email_verified=True, self_registered=False)
            await self._outbox.insert(mails, now, session)
            return user, EndedAccess(ended_sessions, ended_links)

        return await in_transaction(self._database, write)


def _invitation_updates(
    user: User,
    invitable: Document,
    token: Document,
    now: datetime,
    *,
    is_mailed: bool,
    only_mailed: bool,
) -> list[UpdateOne]:
    """Return the updates of a user, of which one at most applies."""
    query = {"_id": ObjectId(user.id), "email": user.login_name, **invitable}
    if not (is_mailed and only_mailed):
        shown = {**token, **({"mailedAt": now} if is_mailed else {})}
        changes: list[tuple[Document, Document]] = [(query, {"invitation": shown})]
    else:
        mailed, on_paper = {**token, "email": user.login_name}, _on_paper(now)
        changes = [
            ({**query, **on_paper}, {"passwordReset": mailed, "invitation.mailedAt": now}),
            ({**query, "$nor": [on_paper]}, {"invitation": {**mailed, "mailedAt": now}}),
        ]
    # Without the hint, MongoDB compares several indexes again for each user.
    return [UpdateOne(each, {"$set": change}, hint="_id_") for each, change in changes]


def _on_paper(now: datetime) -> Document:
    """Return the filter for users whose invitation is valid, and not only in a mail."""
    return {"invitation.until": {"$gt": now}, "invitation.email": None}


def _invitable_filter(roles: Sequence[Role], mailed_before: datetime | None) -> Document:
    """Return the filter for users who can be invited.

    Users with a password or an identity are excluded: an invitation would let someone else into
    the account.
    """
    allowed = [role.value for role in roles]
    recent = {"$not": {"$gte": mailed_before}}
    return {
        "withoutPassword": True,
        "identities": None,
        "banned": None,
        "role": {"$in": allowed},
        "$nor": [MADE_LOGIN_NAME],
        **({"invitation.mailedAt": recent} if mailed_before else {}),
    }


def valid_filter(token_hash: str, now: datetime) -> Document:
    """Return the filter for the user whose password the token sets now."""
    invited: Document = {"invitation.hash": token_hash, "invitation.until": {"$gt": now}}
    mailed: Document = {"passwordReset.hash": token_hash, "passwordReset.until": {"$gt": now}}
    return {
        "$or": [
            {**invited, "$or": [{"withoutPassword": True}, {"invitation.replacesPassword": True}]},
            # A reader of the mails to an earlier address must not get the account.
            {**mailed, "$expr": {"$eq": ["$passwordReset.email", "$email"]}},
        ]
    }


def _was_mailed(document: Document, token_hash: str) -> bool:
    """Return whether only a mail to the user's address contained the token."""
    tokens = (document.get(name, {}) for name in PASSWORD_TOKENS)
    return any(
        each.get("hash") == token_hash and each.get("email") == document["email"] for each in tokens
    )


class CalendarTokenRepository:
    """Stores at most one calendar token for each user."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]

    @limited
    async def save(self, user_id: UserId, token_hash: str, now: datetime) -> None:
        """Replace the user's token, with a note. A write that arrives late replaces no newer token.

        Nothing is written after a claim or an erasure, which ended the session and the token.
        """
        has_way_in = [{"withoutPassword": None}, {"identities.key": {"$exists": True}}]
        user: Document = {"_id": ObjectId(user_id), "erasedAt": None, "$or": has_way_in}
        change = {"$set": {"calendar": {"hash": token_hash, "at": now}}}
        action = NoteAction.CALENDAR_FEED_CREATED
        note = AuditNote(now, user_id, action, (), user_ids=(user_id,))
        # A retry means that a concurrent change of the token was written, so the loop ends.
        while found := await self._users.find_one(user, {"calendar.hash": 1}):
            unchanged = {**user, "calendar.hash": found.get("calendar", {}).get("hash")}
            if (await self._users.update_one(unchanged, change)).matched_count:
                # Nobody learns the token if this fails.
                await insert_notes(self._database, [note], None)
                return

    @limited
    async def delete(self, user_id: UserId) -> bool:
        """Delete the user's token. Return False if there was none."""
        query = {"_id": ObjectId(user_id), "calendar.hash": {"$exists": True}}
        result = await self._users.update_one(query, {"$unset": {"calendar": ""}})
        return result.modified_count == 1

    @limited
    async def find_created_at(self, user_id: UserId) -> datetime | None:
        """Return when the user's token was created; None if there is none."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"calendar.at": 1})
        at: datetime | None = (found or {}).get("calendar", {}).get("at")
        return at

    @limited
    async def find_user(self, token_hash: str) -> User | None:
        """Return the user with this token; None if there is none, or if the user is banned."""
        found = await self._users.find_one(
            {"calendar.hash": token_hash, "banned": None}, PUBLIC_FIELDS
        )
        return to_user(found) if found else None


class PasswordWriter:
    """Changes passwords of users who know the old one."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, outbox: OutboxRepository
    ) -> None:
        self.limiter = limiter
        self._outbox = outbox
        self._database = database
        self._users = database["users"]
        self._sessions = database["sessions"]

    @limited
    async def find_hash(self, user_id: UserId) -> str | None:
        """Return the hash of a user's password; None without a user or a password."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"passwordHash": 1})
        return found.get("passwordHash") if found else None

    @limited
    async def update(
        self,
        user_id: UserId,
        session_id: str,
        old_hash: str,
        new_hash: str,
        *,
        end_calendar_feed: bool = False,
        end_links_since: datetime | None = None,
        mails: Sequence[OutboxEntry] = (),
        now: datetime,
    ) -> EndedAccess | None:
        """Replace the hash, end all other sessions and insert the mails. Return what ended.

        Linked sign-ins end as in `end_links`. Return None, and write nothing, if the old hash has
        changed or the session has ended.
        """

        async def write(session: AsyncClientSession) -> EndedAccess | None:
            await serialize_user_sessions(self._database, user_id, session)
            own_session: Document = {"_id": session_id, "user": ObjectId(user_id)}
            # A write, not a read, so that it conflicts with a concurrent end of the session.
            counted = await self._sessions.update_one(
                own_session, {"$inc": {"passwordChanges": 1}}, session=session
            )
            with_old_hash: Document = {"_id": ObjectId(user_id), "passwordHash": old_hash}
            ended = (*PASSWORD_TOKENS, *(["calendar"] if end_calendar_feed else []))
            update: Document = {
                "$set": {"passwordHash": new_hash},
                "$unset": dict.fromkeys(ended, ""),
            }
            replaced = await self._users.update_one(with_old_hash, update, session=session)
            if not (counted.matched_count and replaced.matched_count):
                await session.abort_transaction()
                return None
            await self._outbox.insert(mails, now, session)
            links = await end_links(
                self._database, [user_id], end_links_since, user_id, now, session
            )
            others = other_sessions_query(user_id, session_id)
            ended_sessions = await self._sessions.delete_many(others, session=session)
            return EndedAccess(ended_sessions.deleted_count, links)

        return await in_transaction(self._database, write)
