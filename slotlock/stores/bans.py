"""Bans in MongoDB: a ban and the end of all sessions are one write."""

from datetime import datetime

from bson import ObjectId
from pymongo import ReturnDocument, timeout
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.people import User, UserId
from slotlock.stores import sessions
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import OPERATION_TIMEOUT_MS, Database, Document
from slotlock.stores.user_documents import SHOWN, user_of


class Bans:
    """Who may not come in any more."""

    def __init__(self, database: Database, gate: Gate) -> None:
        self.gate = gate
        self._client = database.client
        self._users = database["users"]
        self._sessions = database["sessions"]

    @gated
    async def ban(self, seen: User, by: UserId, reason: str | None, now: datetime) -> User | None:
        """The person, banned and signed out; None when they are not as they were looked at.

        Banned again, they stay banned since the first time, and a new reason takes the old one's
        place.
        """
        ban: Document = {} if reason is None else {"banReason": reason}
        if not seen.banned:
            ban |= {"bannedAt": now, "bannedBy": ObjectId(by)}

        async def write(session: AsyncClientSession) -> User | None:
            banned = await self._change(seen, {"$set": {"banned": True, **ban}}, session)
            if banned is not None:
                await self._sessions.delete_many(sessions.of_person(seen.id), session=session)
            return banned

        # Without a limit of its own with_transaction goes on for two minutes.
        with timeout(OPERATION_TIMEOUT_MS / 1000):
            async with self._client.start_session() as session:
                return await session.with_transaction(write)

    @gated
    async def unban(self, seen: User) -> User | None:
        """The person as one of all again; None when they are not as they were looked at."""
        marks = dict.fromkeys(("banned", "bannedAt", "bannedBy", "banReason"), "")
        return await self._change(seen, {"$unset": marks}, None)

    async def _change(
        self, seen: User, update: Document, session: AsyncClientSession | None
    ) -> User | None:
        # Who may do this depends on the role, which may have changed meanwhile.
        guard = {"_id": ObjectId(seen.id), "role": seen.role.value, "bannedAt": seen.banned_at}
        document = await self._users.find_one_and_update(
            guard, update, SHOWN, return_document=ReturnDocument.AFTER, session=session
        )
        return user_of(document) if document else None
