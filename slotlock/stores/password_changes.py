"""Changing a password in MongoDB: the new one, and the end of all other sessions, in one write."""

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.people import UserId
from slotlock.stores.gate import ConcurrencyLimiter, limited
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import in_transaction
from slotlock.stores.sessions import other_sessions_query, serialize_user_sessions


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
            kept = await self._sessions.update_one(own, {"$inc": {"changes": 1}}, session=session)
            whose: Document = {"_id": ObjectId(user_id), "passwordHash": old_hash}
            update = {"$set": {"passwordHash": new_hash}}
            changed = await self._users.update_one(whose, update, session=session)
            if not (kept.matched_count and changed.matched_count):
                await session.abort_transaction()
                return None
            others = other_sessions_query(user_id, session_id)
            return (await self._sessions.delete_many(others, session=session)).deleted_count

        return await in_transaction(self._database, write)
