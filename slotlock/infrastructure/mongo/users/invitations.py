"""Invitations to set a first password, in MongoDB, in the documents of who is invited.

Only the hash of a token is kept, so that who reads the database cannot take an account. A person
has one invitation at most; setting the password ends it in the same write.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited, limited_listing
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.documents import PUBLIC_FIELDS, to_user


class InvitationRepository:
    """Who may set a first password."""

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
        """The next people who never set a password and are not banned, by address."""
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
        hashes: Mapping[UserId, str],
        roles: Sequence[Role],
        until: datetime,
        note: AuditNote | None = None,
    ) -> set[UserId]:
        """Give people these invitations instead of theirs; those who have them now.

        Who set a password, was banned or got another role meanwhile is left out.
        """
        if not hashes:
            return set()
        # Without the hint MongoDB weighs several indexes against each other for each person anew.
        updates = [
            UpdateOne(
                {"_id": ObjectId(user_id), **_invitable_filter(roles)},
                {"$set": {"invitation": {"hash": hash_, "until": until}}},
                hint="_id_",
            )
            for user_id, hash_ in hashes.items()
        ]

        async def write(session: AsyncClientSession) -> None:
            await self._users.bulk_write(updates, ordered=False, session=session)
            await insert_notes(self._database, [note], session)

        await in_transaction(self._database, write)
        # A bulk tells how many it changed, not which; and others may invite at the same time.
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in hashes]}}
        found = self._users.find(query, {"invitation.hash": 1})
        now = {UserId(str(d["_id"])): d.get("invitation", {}).get("hash") async for d in found}
        return {user_id for user_id, hash_ in hashes.items() if now.get(user_id) == hash_}

    @limited
    async def find(self, token_hash: str, now: datetime) -> User | None:
        """Whom an invitation is for, if it is good."""
        document = await self._users.find_one(_valid_filter(token_hash, now), PUBLIC_FIELDS)
        return to_user(document) if document else None

    @limited
    async def redeem(self, token_hash: str, password_hash: str, now: datetime) -> User | None:
        """The person with their password, once: None when the invitation is not good any more."""
        document = await self._users.find_one_and_update(
            {**_valid_filter(token_hash, now), "banned": None},
            {
                "$set": {"passwordHash": password_hash},
                "$unset": {"withoutPassword": "", "invitation": ""},
            },
            PUBLIC_FIELDS,
            return_document=ReturnDocument.AFTER,
        )
        return to_user(document) if document else None


def _invitable_filter(roles: Sequence[Role]) -> Document:
    """Who can be invited. Never one who has a password: that would give their account away."""
    allowed = [role.value for role in roles]
    return {"withoutPassword": True, "banned": None, "role": {"$in": allowed}}


def _valid_filter(token_hash: str, now: datetime) -> Document:
    good: Document = {"invitation.hash": token_hash, "invitation.until": {"$gt": now}}
    return {**good, "withoutPassword": True}
