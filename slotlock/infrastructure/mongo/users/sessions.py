"""Stores the sessions of signed-in users.

    sessions          {_id, user, role, refreshTokenId, createdAt, expiresAt, userAgent?,
                       passwordChanges?, rotation?: {from, to, at, answeredAt?},
                       identity?, providerSession?}
    session_versions  {_id: user, version}

A session is the family of all refresh tokens that descend from one sign-in.
`refreshTokenId` names the only token that is still valid. Each rotation moves `expiresAt`, and a
TTL index deletes expired sessions. `rotation` is the last one: the ids of the token that was
exchanged and of its successor, when that was, and when a client first got the successor.
`passwordChanges` counts the password changes made in a session. `identity` is the key of the one
that opened the session, and `providerSession` the issuer, a blank and the id of the session there.
`serialize_user_sessions` explains the versions.
"""

import secrets
from collections.abc import Awaitable, Sequence
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne, WriteConcern
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_notes import note_sign_in
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.identity import DISTRUSTED_LINK_AGE, Identity
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.batching import Batcher, chunked
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import (
    USERS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import find_in_one_batch
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.user_documents import PUBLIC_FIELDS, to_user

# For each user. One more sign-in ends the oldest session.
MAX_SESSIONS = 100
_ROLES = {role.value: role for role in Role}
NEWEST_FIRST = [("user", 1), ("createdAt", -1)]
PARTIAL_PROVIDER = {"partialFilterExpression": {"providerSession": {"$exists": True}}}
SESSION_INDEXES = indexes_of(
    "sessions",
    {
        "expiry": ([("expiresAt", 1)], {"expireAfterSeconds": 0}),
        "user": (NEWEST_FIRST, {}),
        "provider_session": ([("providerSession", 1)], PARTIAL_PROVIDER),
    },
)
# It has no other index. With it, the collection exists before the first transaction uses it.
SESSION_VERSION_INDEXES = indexes_of("session_versions", {"_id_": ([("_id", 1)], {})})


@value_object
class NewSession:
    """A sign-in: the first refresh token, its expiry, and the client.

    `password_hash` is the hash of the password that was checked; None if there was no password.
    `identity` is the key of the one that signed in, and `provider_session` is the session there.
    """

    user_id: UserId
    refresh_token_id: str
    at: datetime
    expires_at: datetime
    user_agent: str | None = None
    password_hash: str | None = None
    identity: str | None = None
    provider_session: str | None = None


@value_object
class Rotation:
    """The id of a session's valid refresh token, and when it replaced its predecessor."""

    token_id: str
    at: datetime


@value_object
class SessionRecord:
    """A session as its user may see it. The client sends its `user_agent`.

    `created_at` is None for sessions that were opened before it was stored.
    """

    id: str
    created_at: datetime | None
    expires_at: datetime
    user_agent: str | None


def user_sessions_query(user_id: UserId) -> Document:
    """Return the query for all sessions of a user."""
    return {"user": ObjectId(user_id)}


def other_sessions_query(user_id: UserId, session_id: str) -> Document:
    """Return the query for all sessions of a user but one."""
    return {**user_sessions_query(user_id), "_id": {"$ne": session_id}}


async def serialize_user_sessions(
    database: Database, user_id: UserId, session: AsyncClientSession
) -> int:
    """Make this transaction conflict with every other one that calls this for the user.

    A sign-in only reads the password, the ban and the role. A change of these ends or updates the
    sessions it finds. Without a conflict, each could miss the other. Return the user's new version:
    how many such transactions there were, including this one.
    """
    document = await database["session_versions"].find_one_and_update(
        {"_id": ObjectId(user_id)},
        {"$inc": {"version": 1}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
        session=session,
    )
    return int(document["version"]) if document else 0


async def set_session_roles(
    database: Database, user_id: UserId, role: Role, session: AsyncClientSession
) -> None:
    """Store the user's new role in the open sessions, and in those that are being opened."""
    await serialize_user_sessions(database, user_id, session)
    update = {"$set": {"role": role.value}}
    await database["sessions"].update_many(user_sessions_query(user_id), update, session=session)


async def end_all_sessions(database: Database, user_id: UserId, session: AsyncClientSession) -> int:
    """End all sessions of a user, also those that are being opened. Return how many ended."""
    await serialize_user_sessions(database, user_id, session)
    query = user_sessions_query(user_id)
    return (await database["sessions"].delete_many(query, session=session)).deleted_count


async def end_sessions_of_all(
    database: Database, user_ids: Sequence[UserId], session: AsyncClientSession
) -> None:
    """End all sessions of these users, as `end_all_sessions` does for one."""
    ids = [ObjectId(user_id) for user_id in user_ids]
    bumps = [UpdateOne({"_id": each}, {"$inc": {"version": 1}}, upsert=True) for each in ids]
    await database["session_versions"].bulk_write(bumps, session=session)
    await database["sessions"].delete_many({"user": {"$in": ids}}, session=session)


async def end_other_ways_in(
    database: Database, user_id: UserId, session: AsyncClientSession
) -> None:
    """End what the user who registered an account could still use after a new password."""
    ended = {"$unset": {"calendar": "", "identities": ""}}
    await database["users"].update_one({"_id": ObjectId(user_id)}, ended, session=session)


@value_object
class EndedAccess:
    """How many sessions, and how many linked sign-ins at providers, a change ended."""

    sessions: int
    sign_ins: int = 0


async def end_links(
    database: Database,
    user_ids: Sequence[UserId],
    since: datetime | None,
    by: UserId | None,
    now: datetime,
    session: AsyncClientSession,
) -> int:
    """End the sign-ins at providers that sessions of users linked since a time, each with a note.

    Without the time, none ends. Return how many ended.
    """
    if since is None:
        return 0
    recent: Document = {"linked": True, "at": {"$gte": since}}
    query = {
        "_id": {"$in": [ObjectId(each) for each in user_ids]},
        "identities": {"$elemMatch": recent},
    }
    found = database["users"].find(query, {"identities": 1}, session=session)
    notes = [
        note_sign_in(Identity.of_key(each["key"]), None, UserId(str(user["_id"])), by, now)
        async for user in found
        for each in user["identities"]
        if "linked" in each and each["at"] >= since
    ]
    if notes:
        ended = {"$pull": {"identities": recent}}
        await database["users"].update_many(query, ended, session=session)
    await insert_notes(database, notes, session)
    return len(notes)


async def end_ways_in_of_banned(
    database: Database,
    user_ids: Sequence[UserId],
    by: UserId | None,
    now: datetime,
    session: AsyncClientSession,
) -> None:
    """End the sessions of banned users, and their new links: ways in again after the ban."""
    await end_sessions_of_all(database, user_ids, session)
    await end_links(database, user_ids, now - DISTRUSTED_LINK_AGE, by, now, session)


class SessionRepository:
    """Opens, finds and ends sessions."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(USERS_CONCURRENCY)
        self._recheck_limiter = ConcurrencyLimiter(1)
        self._database = database
        self._sessions = database["sessions"]
        self._role_batcher = Batcher(self._read_role_batch, is_outage=is_unavailable)

    @limited
    async def open(self, new_session: NewSession) -> tuple[str, User] | None:
        """Open a session. Return its id, and the user as stored now.

        Return None if the user was banned, or changed the password, since it was checked.
        """
        session_id = secrets.token_urlsafe(16)
        same_hash = {"passwordHash": new_session.password_hash} if new_session.password_hash else {}
        linked = {"identities.key": new_session.identity} if new_session.identity else {}
        query = {"_id": ObjectId(new_session.user_id), "banned": None, **same_hash, **linked}

        async def write(session: AsyncClientSession) -> User | None:
            version = await serialize_user_sessions(self._database, new_session.user_id, session)
            found = await self._database["users"].find_one(query, PUBLIC_FIELDS, session=session)
            if found is None:
                return None
            user = to_user(found)
            document = session_to_document(session_id, new_session, user.role)
            await self._sessions.insert_one(document, session=session)
            if version > MAX_SESSIONS:  # each session incremented it
                await self._end_oldest(user.id, session)
            return user

        user = await in_transaction(self._database, write)
        return (session_id, user) if user else None

    @limited
    async def was_opened_at_provider(self, session_id: str, since: datetime) -> bool:
        """Return whether a sign-in at a provider opened the session after a time."""
        query = {"_id": session_id, "createdAt": {"$gte": since}, "identity": {"$exists": True}}
        return await self._sessions.find_one(query, {"_id": 1}) is not None

    async def _end_oldest(self, user_id: UserId, session: AsyncClientSession) -> None:
        found = self._sessions.find(
            user_sessions_query(user_id),
            {"_id": 1},
            sort=NEWEST_FIRST,
            skip=MAX_SESSIONS,
            session=session,
        )
        if oldest := [document["_id"] async for document in found]:
            await self._sessions.delete_many({"_id": {"$in": oldest}}, session=session)

    def find_role(self, session_id: str) -> Awaitable[Role | None]:
        """Return the current role of the session's user; None if the session has ended."""
        return self._role_batcher.submit_nowait(session_id)

    async def find_roles(self, session_ids: Sequence[str]) -> dict[str, Role]:
        """Return the roles of those sessions that are open, without delaying requests."""
        found: dict[str, Role] = {}
        for batch in chunked(session_ids):
            found |= await self._recheck_limiter.run(partial(self._find_roles, batch))
        return found

    async def _read_role_batch(self, session_ids: list[str]) -> list[Role | None]:
        roles = await self._find_roles(list(set(session_ids)))
        return [roles.get(session_id) for session_id in session_ids]

    async def _find_roles(self, session_ids: Sequence[str]) -> dict[str, Role]:
        query = {"_id": {"$in": session_ids}}
        found = await find_in_one_batch(self._sessions, query, {"role": 1}, len(session_ids))
        return {document["_id"]: _ROLES[document["role"]] for document in found}

    @limited
    async def find_open(self, user_id: UserId, now: datetime) -> list[SessionRecord]:
        """Return a user's open sessions, the newest first."""
        query = {**user_sessions_query(user_id), "expiresAt": {"$gt": now}}
        found = self._sessions.find(query, sort=NEWEST_FIRST, limit=MAX_SESSIONS)
        return [
            SessionRecord(d["_id"], d.get("createdAt"), d["expiresAt"], d.get("userAgent"))
            async for d in found
        ]

    @limited
    async def rotate_refresh_token(
        self,
        session_id: str,
        old_token_id: str,
        new_token: Rotation,
        expires_at: datetime,
        answered_after: datetime | None,
        unanswered_after: datetime,
    ) -> Rotation | None:
        """Replace the refresh token if the old one is valid: of two concurrent calls, one is.

        Return the rotation. If the old token was exchanged before, and nobody has exchanged its
        successor yet, return that rotation again if a client first got it after `answered_after`,
        or if no client has got it and it is of after `unanswered_after`. Otherwise return None;
        also if `answered_after` is None, since a client that sends a token twice at once may have
        read the clock before its first answer.
        """
        rotation = {"from": old_token_id, "to": new_token.token_id, "at": new_token.at}
        changes = {
            "refreshTokenId": new_token.token_id,
            "expiresAt": expires_at,
            "rotation": rotation,
        }
        result = await self._sessions.update_one(
            {"_id": session_id, "refreshTokenId": old_token_id}, {"$set": changes}
        )
        if result.modified_count == 1:
            return new_token
        if answered_after is None:
            return None
        repeated: Document = {
            "_id": session_id,
            "rotation.from": old_token_id,
            "$or": [
                {"rotation.answeredAt": {"$gt": answered_after}},
                {"rotation.answeredAt": None, "rotation.at": {"$gt": unanswered_after}},
            ],
        }
        found = await self._sessions.find_one(repeated, {"rotation": 1})
        return Rotation(found["rotation"]["to"], found["rotation"]["at"]) if found else None

    @limited
    async def mark_answered(self, session_id: str, token_id: str, now: datetime) -> None:
        """Store that a client gets this successor now, unless one got it before.

        This does not wait for other members: an election that loses it only prolongs the grace.
        """
        query = {"_id": session_id, "rotation.to": token_id, "rotation.answeredAt": None}
        sessions = self._sessions.with_options(write_concern=WriteConcern(w=1))
        await sessions.update_one(query, {"$set": {"rotation.answeredAt": now}})

    @limited
    async def end(self, session_id: str) -> None:
        """End a session, and with it its refresh token."""
        await self._sessions.delete_one({"_id": session_id})

    @limited
    async def end_others(self, user_id: UserId, session_id: str) -> int:
        """End all sessions of a user but this one. Return how many ended."""
        result = await self._sessions.delete_many(other_sessions_query(user_id, session_id))
        return result.deleted_count


def session_to_document(session_id: str, new_session: NewSession, role: Role) -> Document:
    """Return the document of a new session."""
    return {
        "_id": session_id,
        "user": ObjectId(new_session.user_id),
        "role": role.value,
        "refreshTokenId": new_session.refresh_token_id,
        "createdAt": new_session.at,
        "expiresAt": new_session.expires_at,
        **({} if new_session.user_agent is None else {"userAgent": new_session.user_agent}),
        **({"identity": new_session.identity} if new_session.identity else {}),
        **({"providerSession": provider} if (provider := new_session.provider_session) else {}),
    }
