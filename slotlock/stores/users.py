"""People's accounts in MongoDB: the one file that knows the shape of a user's document.

{_id, name, email, role, passwordHash, createdAt}      email: normalised, unique
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import datetime

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from slotlock.domain.people import Role, User, UserId
from slotlock.stores.batches import Batches
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import PEOPLE_GATE, Database, Document


class Users:
    """The people who have an account."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(PEOPLE_GATE)
        self._users = database["users"]
        self._reads = Batches(self._read)

    async def prepare(self) -> None:
        """Create the index that keeps e-mail addresses unique."""
        await self._users.create_index("email", unique=True, name="email")

    @gated
    async def add(
        self, name: str, email: str, role: Role, password_hash: str, now: datetime
    ) -> User | None:
        """The new person, or None when the address is taken."""
        document = {
            "_id": ObjectId(),
            "name": name,
            "email": email,
            "role": role.value,
            "passwordHash": password_hash,
            "createdAt": now,
        }
        try:
            await self._users.insert_one(document)
        except DuplicateKeyError:
            return None
        return _user(document)

    @gated
    async def with_password(self, email: str) -> tuple[User, str] | None:
        """The person with this address and their password's hash."""
        document = await self._users.find_one({"email": email})
        return (_user(document), document["passwordHash"]) if document else None

    async def by_ids(self, user_ids: Iterable[UserId]) -> dict[UserId, User]:
        """Those of the people who exist."""
        wanted = list(user_ids)
        found = await asyncio.gather(*map(self._reads.do, wanted))
        return {user.id: user for user in found if user is not None}

    async def _read(self, user_ids: list[UserId]) -> list[User | None]:
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in set(user_ids)]}}
        users = {user.id: user async for user in (_user(d) async for d in self._users.find(query))}
        return [users.get(user_id) for user_id in user_ids]

    async def all(self) -> AsyncIterator[User]:
        """Everyone, by address."""
        async for document in self._users.find().sort("email", 1).hint("email"):
            yield _user(document)

    @gated
    async def set_role(self, email: str, role: Role) -> User | None:
        """The person in their new role, or None when nobody has this address."""
        document = await self._users.find_one_and_update(
            {"email": email},
            {"$set": {"role": role.value}},
            return_document=ReturnDocument.AFTER,
        )
        return _user(document) if document else None


def _user(document: Document) -> User:
    return User(
        UserId(str(document["_id"])),
        document["name"],
        document["email"],
        Role(document["role"]),
        document["createdAt"],
    )
