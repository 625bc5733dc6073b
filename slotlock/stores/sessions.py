"""Signed-in sessions in MongoDB: the one file that knows the shape of a session's document.

    {_id, user, role, refresh, expiresAt}

A session is the family of all refresh tokens that descend from one sign-in. `refresh` names the
only one that is still good; `expiresAt` moves on with each rotation, and a TTL index cleans up.
"""

import secrets
from datetime import datetime

from bson import ObjectId

from slotlock.domain.people import Role, UserId
from slotlock.stores.batches import Batches
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import PEOPLE_GATE, Database, Document


def of_person(user_id: UserId) -> Document:
    """The query for all sessions of a person."""
    return {"user": ObjectId(user_id)}


class Sessions:
    """Who is signed in."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(PEOPLE_GATE)
        self._sessions = database["sessions"]
        self._roles = Batches(self._read_roles)

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        await self._sessions.create_index("expiresAt", expireAfterSeconds=0, name="expiry")
        await self._sessions.create_index("user", name="user")

    @gated
    async def open(self, user_id: UserId, role: Role, refresh: str, expires_at: datetime) -> str:
        """A new session's id."""
        session_id = secrets.token_urlsafe(16)
        await self._sessions.insert_one(
            {
                "_id": session_id,
                "user": ObjectId(user_id),
                "role": role.value,
                "refresh": refresh,
                "expiresAt": expires_at,
            }
        )
        return session_id

    async def role_in(self, session_id: str) -> Role | None:
        """The role of the session's person as of now, or None when the session has ended."""
        return await self._roles.do(session_id)

    async def _read_roles(self, session_ids: list[str]) -> list[Role | None]:
        found = self._sessions.find({"_id": {"$in": session_ids}}, {"role": 1})
        roles = {document["_id"]: Role(document["role"]) async for document in found}
        return [roles.get(session_id) for session_id in session_ids]

    @gated
    async def rotate(self, session_id: str, old: str, new: str, expires_at: datetime) -> bool:
        """Replace the refresh token if `old` is the one that is good. Two at once: one succeeds."""
        rotated = await self._sessions.update_one(
            {"_id": session_id, "refresh": old},
            {"$set": {"refresh": new, "expiresAt": expires_at}},
        )
        return rotated.modified_count == 1

    @gated
    async def end(self, session_id: str) -> None:
        """End a session with all its refresh tokens."""
        await self._sessions.delete_one({"_id": session_id})

    @gated
    async def end_all(self, user_id: UserId) -> None:
        """End every session of a person."""
        await self._sessions.delete_many(of_person(user_id))

    @gated
    async def set_role(self, user_id: UserId, role: Role) -> None:
        """Let the person's open sessions know their new role."""
        await self._sessions.update_many(of_person(user_id), {"$set": {"role": role.value}})
