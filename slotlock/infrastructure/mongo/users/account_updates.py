"""Changes accounts together with the sessions that depend on them: passwords and bans."""

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
    """Changes passwords of users who know the old one."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
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
    ) -> int | None:
        """Replace the hash and end all other sessions. Return how many ended.

        Return None, and write nothing, if the old hash has changed or the session has ended.
        """

        async def write(session: AsyncClientSession) -> int | None:
            await serialize_user_sessions(self._database, user_id, session)
            own_session: Document = {"_id": session_id, "user": ObjectId(user_id)}
            # A write, not a read, so that it conflicts with a concurrent end of the session.
            counted = await self._sessions.update_one(
                own_session, {"$inc": {"passwordChanges": 1}}, session=session
            )
            with_old_hash: Document = {"_id": ObjectId(user_id), "passwordHash": old_hash}
            update: Document = {"$set": {"passwordHash": new_hash}}
            if end_calendar_feed:
                update["$unset"] = {"calendar": ""}
            replaced = await self._users.update_one(with_old_hash, update, session=session)
            if not (counted.matched_count and replaced.matched_count):
                await session.abort_transaction()
                return None
            others = other_sessions_query(user_id, session_id)
            return (await self._sessions.delete_many(others, session=session)).deleted_count

        return await in_transaction(self._database, write)


@dataclass(frozen=True, slots=True)
class AuditInfo:
    """The action, the actor and the time that the audit note of a change contains."""

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
        self._sessions = database["sessions"]

    @limited
    async def ban(
        self, expected: User, by: UserId, reason: str | None, now: datetime
    ) -> User | None:
        """Ban a user and end all their sessions. Return None if the user changed meanwhile.

        A second ban replaces the reason and does not change the time of the ban.
        """
        ban: Document = {} if reason is None else {"banReason": reason}
        if not expected.banned:
            ban |= {"bannedAt": now, "bannedBy": ObjectId(by)}

        async def write(session: AsyncClientSession) -> User | None:
            await sessions.serialize_user_sessions(self._database, expected.id, session)
            update = {"$set": {"banned": True, **ban}}
            audit_info = AuditInfo(AuditAction.BANNED, by, now)
            banned = await update_user(
                self._database, _unchanged_filter(expected), update, audit_info, session
            )
            if banned is not None:
                await self._sessions.delete_many(
                    sessions.user_sessions_query(expected.id), session=session
                )
            return banned

        return await in_transaction(self._database, write)

    @limited
    async def find_banned_since(self, since: datetime, limit: int) -> list[tuple[UserId, UserId]]:
        """Return the users who were banned after a time, latest first, each with the actor."""
        found = self._users.find(
            {"bannedAt": {"$gt": since}}, {"bannedBy": 1}, sort=[("bannedAt", -1)], limit=limit
        )
        return [(UserId(str(d["_id"])), UserId(str(d["bannedBy"]))) async for d in found]

    @limited
    async def unban(self, expected: User, by: UserId, now: datetime) -> User | None:
        """Lift a ban. Return the user; None if the user changed meanwhile."""
        ban_fields = dict.fromkeys(("banned", "bannedAt", "bannedBy", "banReason"), "")
        audit_info = AuditInfo(AuditAction.UNBANNED, by, now)
        return await in_transaction(
            self._database,
            lambda session: update_user(
                self._database,
                _unchanged_filter(expected),
                {"$unset": ban_fields},
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
