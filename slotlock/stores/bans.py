"""Bans in MongoDB: a ban and the end of all sessions are one write."""

from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit import AuditAction
from slotlock.domain.people import User, UserId
from slotlock.stores import sessions
from slotlock.stores.gate import ConcurrencyLimiter, limited
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import in_transaction
from slotlock.stores.people_changes import AuditInfo, update_user


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
