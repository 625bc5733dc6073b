"""Signed-in sessions in MongoDB: the one file that knows the shape of a session's document.

    sessions  {_id, user, role, refresh, createdAt, expiresAt, agent?, changes?}
    signins   {_id: user, turns}

A session is the family of all refresh tokens that descend from one sign-in. `refresh` names the
only one that is still good; `expiresAt` moves on with each rotation, and a TTL index cleans up.
`changes` counts the changes of password made in it. What a person's `turns` are for is told at
`take_turn`.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.people import Role, User, UserId
from slotlock.stores.batches import Batches, in_parts
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import PEOPLE_GATE, Database, Document
from slotlock.stores.notes import together
from slotlock.stores.user_documents import SHOWN, user_of

# Of one person; who signs in once more loses the oldest.
MOST_SESSIONS = 100
OLDER = [("user", 1), ("createdAt", -1)]


@dataclass(frozen=True, slots=True)
class SignIn:
    """Somebody signs in: their first refresh token, until when it is good, and what they showed.

    `password_hash` is that of the password they showed; None where it was no password.
    """

    user_id: UserId
    refresh: str
    at: datetime
    expires_at: datetime
    agent: str | None = None
    password_hash: str | None = None


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session as its person may see it; `agent` is what the client that signed in calls itself.

    `created_at` is None for those from before it was kept.
    """

    id: str
    created_at: datetime | None
    expires_at: datetime
    agent: str | None


def of_person(user_id: UserId) -> Document:
    """The query for all sessions of a person."""
    return {"user": ObjectId(user_id)}


def of_others(user_id: UserId, session_id: str) -> Document:
    """The query for all sessions of a person but one."""
    return {**of_person(user_id), "_id": {"$ne": session_id}}


async def take_turn(database: Database, user_id: UserId, session: AsyncClientSession) -> int:
    """Let this transaction and every other that takes a turn for this person come one by one.

    A sign-in reads what it writes nothing of (the password, a ban, the role), and who changes that
    ends sessions that they must have seen: without turns each could miss the other. Returns how
    many turns there were, this one included.
    """
    taken = await database["signins"].find_one_and_update(
        {"_id": ObjectId(user_id)},
        {"$inc": {"turns": 1}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
        session=session,
    )
    return int(taken["turns"]) if taken else 0


async def give_role(
    database: Database, user_id: UserId, role: Role, session: AsyncClientSession
) -> None:
    """Let the person's open sessions, and those that are being opened, know their new role."""
    await take_turn(database, user_id, session)
    update = {"$set": {"role": role.value}}
    await database["sessions"].update_many(of_person(user_id), update, session=session)


class Sessions:
    """Who is signed in."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(PEOPLE_GATE)
        self._watching = Gate(1)
        self._database = database
        self._sessions = database["sessions"]
        self._roles = Batches(self._read_roles)

    async def prepare(self) -> None:
        """Create the collections and indexes that are missing."""
        await self._sessions.create_index("expiresAt", expireAfterSeconds=0, name="expiry")
        await self._sessions.create_index(OLDER, name="person")
        await self._database["signins"].create_index("_id")

    @gated
    async def open(self, sign_in: SignIn) -> tuple[str, User] | None:
        """A new session's id and its person as they are now.

        None when they were banned or set another password since they were looked at.
        """
        session_id = secrets.token_urlsafe(16)
        shown = {"passwordHash": sign_in.password_hash} if sign_in.password_hash else {}
        query = {"_id": ObjectId(sign_in.user_id), "banned": None, **shown}

        async def write(session: AsyncClientSession) -> User | None:
            turns = await take_turn(self._database, sign_in.user_id, session)
            found = await self._database["users"].find_one(query, SHOWN, session=session)
            if found is None:
                return None
            user = user_of(found)
            document = _new_session(session_id, sign_in, user.role)
            await self._sessions.insert_one(document, session=session)
            if turns > MOST_SESSIONS:  # each session took one
                await self._end_oldest(user.id, session)
            return user

        user = await together(self._database, write)
        return (session_id, user) if user else None

    async def _end_oldest(self, user_id: UserId, session: AsyncClientSession) -> None:
        found = self._sessions.find(
            of_person(user_id), {"_id": 1}, sort=OLDER, skip=MOST_SESSIONS, session=session
        )
        if oldest := [document["_id"] async for document in found]:
            await self._sessions.delete_many({"_id": {"$in": oldest}}, session=session)

    async def role_in(self, session_id: str) -> Role | None:
        """The role of the session's person as of now, or None when the session has ended."""
        return await self._roles.do(session_id)

    async def roles_in(self, session_ids: Sequence[str]) -> dict[str, Role]:
        """The roles in those of the sessions that are open; requests need not wait for this."""
        found: dict[str, Role] = {}
        for some in in_parts(session_ids):
            found |= await self._watching.carry(partial(self._find_roles, some))
        return found

    async def _read_roles(self, session_ids: list[str]) -> list[Role | None]:
        roles = await self._find_roles(list(set(session_ids)))
        return [roles.get(session_id) for session_id in session_ids]

    async def _find_roles(self, session_ids: Sequence[str]) -> dict[str, Role]:
        # All in the first answer: by default it brings 101, and the rest costs a question more.
        size = len(session_ids)
        query = {"_id": {"$in": session_ids}}
        found = self._sessions.find(query, {"role": 1}, batch_size=size + 1)
        return {document["_id"]: Role(document["role"]) async for document in found}

    @gated
    async def open_ones(self, user_id: UserId, now: datetime) -> list[OpenSession]:
        """A person's open sessions, the newest first."""
        query = {**of_person(user_id), "expiresAt": {"$gt": now}}
        found = self._sessions.find(query, sort=OLDER, limit=MOST_SESSIONS)
        return [
            OpenSession(d["_id"], d.get("createdAt"), d["expiresAt"], d.get("agent"))
            async for d in found
        ]

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
    async def end_others(self, user_id: UserId, session_id: str) -> int:
        """End every session of a person but this one; how many there were."""
        return (await self._sessions.delete_many(of_others(user_id, session_id))).deleted_count


def _new_session(session_id: str, sign_in: SignIn, role: Role) -> Document:
    return {
        "_id": session_id,
        "user": ObjectId(sign_in.user_id),
        "role": role.value,
        "refresh": sign_in.refresh,
        "createdAt": sign_in.at,
        "expiresAt": sign_in.expires_at,
        **({} if sign_in.agent is None else {"agent": sign_in.agent}),
    }
