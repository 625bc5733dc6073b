"""Bans in MongoDB: a ban and the end of all sessions are one write."""

from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit import Happening
from slotlock.domain.people import User, UserId
from slotlock.stores import sessions
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import together
from slotlock.stores.people_changes import Noting, change_person


class Bans:
    """Who may not come in any more."""

    def __init__(self, database: Database, gate: Gate) -> None:
        self.gate = gate
        self._database = database
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
            await sessions.take_turn(self._database, seen.id, session)
            update = {"$set": {"banned": True, **ban}}
            noting = Noting(Happening.BANNED, by, now)
            banned = await change_person(self._database, _as_seen(seen), update, noting, session)
            if banned is not None:
                await self._sessions.delete_many(sessions.of_person(seen.id), session=session)
            return banned

        return await together(self._database, write)

    @gated
    async def since(self, then: datetime, most: int) -> list[tuple[UserId, UserId]]:
        """Who was banned after then, the last ones first, and by whom."""
        found = self._users.find(
            {"bannedAt": {"$gt": then}}, {"bannedBy": 1}, sort=[("bannedAt", -1)], limit=most
        )
        return [(UserId(str(d["_id"])), UserId(str(d["bannedBy"]))) async for d in found]

    @gated
    async def unban(self, seen: User, by: UserId, now: datetime) -> User | None:
        """The person as one of all again; None when they are not as they were looked at."""
        marks = dict.fromkeys(("banned", "bannedAt", "bannedBy", "banReason"), "")
        noting = Noting(Happening.UNBANNED, by, now)
        return await together(
            self._database,
            lambda session: change_person(
                self._database, _as_seen(seen), {"$unset": marks}, noting, session
            ),
        )


def _as_seen(seen: User) -> Document:
    # Who may do this depends on the role, which may have changed meanwhile.
    return {"_id": ObjectId(seen.id), "role": seen.role.value, "bannedAt": seen.banned_at}
