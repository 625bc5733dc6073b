"""Stores invitations to set a password, in the documents of the invited users.

Only the hash of a token is stored, so that a reader of the database cannot take over an account. A
user has at most one invitation. The write that sets the password deletes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited, limited_listing
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.documents import PUBLIC_FIELDS, to_user
from slotlock.infrastructure.mongo.users.sessions import end_all_sessions


class InvitationRepository:
    """Stores the invitations of users without a password."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, list_limiter: ConcurrencyLimiter
    ) -> None:
        self.limiter = limiter
        self.list_limiter = list_limiter
        self._database = database
        self._users = database["users"]

    @limited_listing
    async def find_invitable(
        self, group: str | None, roles: Sequence[Role], first: int, after: str | None
    ) -> list[User]:
        """Return the next users without a password who are not banned, by address."""
        query: Document = {
            **_invitable_filter(roles),
            **({} if group is None else {"groups": group}),
            **({} if after is None else {"email": {"$gt": after}}),
        }
        found = self._users.find(query, PUBLIC_FIELDS, sort=[("email", 1)], limit=first)
        return [to_user(document) async for document in found]

    @limited_listing
    async def save(
        self,
        users: Mapping[str, User],
        roles: Sequence[Role],
        until: datetime,
        note: AuditNote | None = None,
    ) -> set[UserId]:
        """Replace the invitations of users, by the hash of the new one.

        Return the ids of the users who have the new ones. Users who set a password, were banned or
        got another role or address in the meantime are skipped.
        """
        if not users:
            return set()
        # Without the hint, MongoDB compares several indexes again for each user.
        updates = [
            UpdateOne(
                {"_id": ObjectId(user.id), "email": user.email, **_invitable_filter(roles)},
                {"$set": {"invitation": {"hash": hash_, "until": until}}},
                hint="_id_",
            )
            for hash_, user in users.items()
        ]

        async def write(session: AsyncClientSession) -> None:
            await self._users.bulk_write(updates, ordered=False, session=session)
            await insert_notes(self._database, [note], session)

        await in_transaction(self._database, write)
        # A bulk write returns how many documents it changed, and not which ones.
        query = {"_id": {"$in": [ObjectId(user.id) for user in users.values()]}}
        found = self._users.find(query, {"invitation.hash": 1})
        stored = {UserId(str(d["_id"])): d.get("invitation", {}).get("hash") async for d in found}
        return {user.id for hash_, user in users.items() if stored.get(user.id) == hash_}

    @limited
    async def save_reset(self, user_id: UserId, hash_: str, until: datetime, now: datetime) -> bool:
        """Replace the user's invitation by one that also replaces a password.

        Return False if the user is banned or does not exist.
        """
        invitation = {"hash": hash_, "until": until, "replacesPassword": True}
        note = AuditNote(now, None, AuditAction.PASSWORD_RESET_CREATED, (), user_ids=(user_id,))

        async def write(session: AsyncClientSession) -> bool:
            query = {"_id": ObjectId(user_id), "banned": None}
            update = {"$set": {"invitation": invitation}}
            saved = await self._users.update_one(query, update, session=session)
            if saved.matched_count:
                await insert_notes(self._database, [note], session)
            return bool(saved.matched_count)

        return await in_transaction(self._database, write)

    @limited
    async def find(self, token_hash: str, now: datetime) -> User | None:
        """Return the invited user; None if the invitation is invalid or expired."""
        document = await self._users.find_one(_valid_filter(token_hash, now), PUBLIC_FIELDS)
        return to_user(document) if document else None

    @limited
    async def redeem(
        self, token_hash: str, password_hash: str, now: datetime, *, end_calendar_feed: bool = False
    ) -> User | None:
        """Set the password, once. Return None if the invitation is invalid or expired.

        If it replaces a password, all sessions of the user end.
        """
        ended = ["withoutPassword", "invitation", "selfRegistered"]
        if end_calendar_feed:
            ended.append("calendar")

        async def write(session: AsyncClientSession) -> User | None:
            document = await self._users.find_one_and_update(
                {**_valid_filter(token_hash, now), "banned": None},
                {
                    "$set": {"passwordHash": password_hash},
                    "$unset": dict.fromkeys(ended, ""),
                },
                PUBLIC_FIELDS,
                return_document=ReturnDocument.BEFORE,
                session=session,
            )
            if document is None:
                return None
            user = to_user(document)
            if user.has_password:
                await end_all_sessions(self._database, user.id, session)
            return replace(user, has_password=True)

        return await in_transaction(self._database, write)


def _invitable_filter(roles: Sequence[Role]) -> Document:
    """Return the filter for users who can be invited.

    Users with a password are excluded: an invitation would let someone else into the account.
    """
    allowed = [role.value for role in roles]
    return {"withoutPassword": True, "banned": None, "role": {"$in": allowed}}


def _valid_filter(token_hash: str, now: datetime) -> Document:
    valid: Document = {"invitation.hash": token_hash, "invitation.until": {"$gt": now}}
    return {**valid, "$or": [{"withoutPassword": True}, {"invitation.replacesPassword": True}]}
