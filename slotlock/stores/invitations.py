"""Invitations to set a first password, in MongoDB, in the documents of who is invited.

Only the hash of a token is kept, so that who reads the database cannot take an account. A person
has one invitation at most; setting the password ends it in the same write.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.notes import Note
from slotlock.domain.people import Role, User, UserId
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import keep, together
from slotlock.stores.user_documents import SHOWN, user_of


class Invitations:
    """Who may set a first password."""

    def __init__(self, database: Database, gate: Gate, lists: Gate) -> None:
        self.gate = gate
        self.lists = lists
        self._database = database
        self._users = database["users"]

    @listed
    async def invitable(
        self, group: str | None, roles: Sequence[Role], first: int, after: str | None
    ) -> list[User]:
        """The next people who never set a password and are not banned, by address."""
        query: Document = {
            **_waiting(roles),
            **({} if group is None else {"groups": group}),
            **({} if after is None else {"email": {"$gt": after}}),
        }
        found = self._users.find(query, SHOWN, sort=[("email", 1)], limit=first)
        return [user_of(document) async for document in found]

    @listed
    async def keep(
        self,
        hashes: Mapping[UserId, str],
        roles: Sequence[Role],
        until: datetime,
        note: Note | None = None,
    ) -> set[UserId]:
        """Give people these invitations instead of theirs; those who have them now.

        Who set a password, was banned or got another role meanwhile is left out.
        """
        if not hashes:
            return set()
        # Without the hint MongoDB weighs several indexes against each other for each person anew.
        updates = [
            UpdateOne(
                {"_id": ObjectId(user_id), **_waiting(roles)},
                {"$set": {"invitation": {"hash": hash_, "until": until}}},
                hint="_id_",
            )
            for user_id, hash_ in hashes.items()
        ]

        async def write(session: AsyncClientSession) -> None:
            await self._users.bulk_write(updates, ordered=False, session=session)
            await keep(self._database, [note], session)

        await together(self._database, write)
        # A bulk tells how many it changed, not which; and others may invite at the same time.
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in hashes]}}
        found = self._users.find(query, {"invitation.hash": 1})
        now = {UserId(str(d["_id"])): d.get("invitation", {}).get("hash") async for d in found}
        return {user_id for user_id, hash_ in hashes.items() if now.get(user_id) == hash_}

    @gated
    async def find(self, hash_: str, now: datetime) -> User | None:
        """Whom an invitation is for, if it is good."""
        document = await self._users.find_one(_good(hash_, now), SHOWN)
        return user_of(document) if document else None

    @gated
    async def use(self, hash_: str, password_hash: str, now: datetime) -> User | None:
        """The person with their password, once: None when the invitation is not good any more."""
        document = await self._users.find_one_and_update(
            {**_good(hash_, now), "banned": None},
            {
                "$set": {"passwordHash": password_hash},
                "$unset": {"withoutPassword": "", "invitation": ""},
            },
            SHOWN,
            return_document=ReturnDocument.AFTER,
        )
        return user_of(document) if document else None


def _waiting(roles: Sequence[Role]) -> Document:
    """Who can be invited. Never one who has a password: that would give their account away."""
    allowed = [role.value for role in roles]
    return {"withoutPassword": True, "banned": None, "role": {"$in": allowed}}


def _good(hash_: str, now: datetime) -> Document:
    good: Document = {"invitation.hash": hash_, "invitation.until": {"$gt": now}}
    return {**good, "withoutPassword": True}
