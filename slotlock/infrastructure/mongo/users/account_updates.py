"""Bans in MongoDB: a ban and the end of all sessions are one write."""

from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.audit.notes import note_user_change
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users import sessions
from slotlock.infrastructure.mongo.users.documents import PUBLIC_FIELDS, to_user
from slotlock.infrastructure.mongo.users.sessions import (
    other_sessions_query,
    serialize_user_sessions,
)


class PasswordWriter:
    """Changes of passwords by who knows the old one."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]
        self._sessions = database["sessions"]

    @limited
    async def find_hash(self, user_id: UserId) -> str | None:
        """The hash of a person's password; None for nobody, and for who never set one."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"passwordHash": 1})
        return found.get("passwordHash") if found else None

    @limited
    async def update(
        self, user_id: UserId, session_id: str, old_hash: str, new_hash: str
    ) -> int | None:
        """Change the hash from `old` to `new`; how many other sessions that ended.

        None, and nothing is written, when `old` is not theirs any more or their session has ended.
        """

        async def write(session: AsyncClientSession) -> int | None:
            await serialize_user_sessions(self._database, user_id, session)
            own: Document = {"_id": session_id, "user": ObjectId(user_id)}
            # Written, not only read: else an end of this session could come between.
            kept = await self._sessions.update_one(
                own, {"$inc": {"passwordChanges": 1}}, session=session
            )
            whose: Document = {"_id": ObjectId(user_id), "passwordHash": old_hash}
            update = {"$set": {"passwordHash": new_hash}}
            changed = await self._users.update_one(whose, update, session=session)
            if not (kept.matched_count and changed.matched_count):
                await session.abort_transaction()
                return None
            others = other_sessions_query(user_id, session_id)
            return (await self._sessions.delete_many(others, session=session)).deleted_count

        return await in_transaction(self._database, write)


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


class BanWriter:
    """Who may not come in any more."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]
        self._sessions = database["sessions"]

    @limited
    async def ban(
        self, expected: User, by: UserId, reason: str | None, now: datetime
    ) -> User | None:
        """The person, banned and signed out; None when they are not as they were looked at.

        Banned again, they stay banned since the first time, and a new reason takes the old one's
        place.
        """
        ban: Document = {} if reason is None else {"banReason": reason}
        if not expected.banned:
            ban |= {"bannedAt": now, "bannedBy": ObjectId(by)}

        async def write(session: AsyncClientSession) -> User | None:
            await sessions.serialize_user_sessions(self._database, expected.id, session)
            update = {"$set": {"banned": True, **ban}}
            noting = AuditInfo(AuditAction.BANNED, by, now)
            banned = await update_user(
                self._database, _unchanged_filter(expected), update, noting, session
            )
            if banned is not None:
                await self._sessions.delete_many(
                    sessions.user_sessions_query(expected.id), session=session
                )
            return banned

        return await in_transaction(self._database, write)

    @limited
    async def find_banned_since(self, since: datetime, limit: int) -> list[tuple[UserId, UserId]]:
        """Who was banned after then, the last ones first, and by whom."""
        found = self._users.find(
            {"bannedAt": {"$gt": since}}, {"bannedBy": 1}, sort=[("bannedAt", -1)], limit=limit
        )
        return [(UserId(str(d["_id"])), UserId(str(d["bannedBy"]))) async for d in found]

    @limited
    async def unban(self, expected: User, by: UserId, now: datetime) -> User | None:
        """The person as one of all again; None when they are not as they were looked at."""
        marks = dict.fromkeys(("banned", "bannedAt", "bannedBy", "banReason"), "")
        noting = AuditInfo(AuditAction.UNBANNED, by, now)
        return await in_transaction(
            self._database,
            lambda session: update_user(
                self._database, _unchanged_filter(expected), {"$unset": marks}, noting, session
            ),
        )


def _unchanged_filter(expected: User) -> Document:
    # Who may do this depends on the role, which may have changed meanwhile.
    return {
        "_id": ObjectId(expected.id),
        "role": expected.role.value,
        "bannedAt": expected.banned_at,
    }
