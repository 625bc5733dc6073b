"""The addresses of people's calendars in MongoDB, in the documents of who they belong to.

Every request looks here, and nowhere else: an address that was revoked is no good from then on.
"""

from datetime import datetime

from bson import ObjectId

from slotlock.domain.people import User, UserId
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import Database
from slotlock.stores.user_documents import SHOWN, user_of


class CalendarAddresses:
    """Who can be read by which address; one a person."""

    def __init__(self, database: Database, gate: Gate) -> None:
        self.gate = gate
        self._users = database["users"]

    @gated
    async def keep(self, user_id: UserId, hash_: str, now: datetime) -> None:
        """Give a person this address instead of theirs."""
        kept = {"hash": hash_, "at": now}
        await self._users.update_one({"_id": ObjectId(user_id)}, {"$set": {"calendar": kept}})

    @gated
    async def remove(self, user_id: UserId) -> bool:
        """Take a person's address away; whether there was one."""
        query = {"_id": ObjectId(user_id), "calendar.hash": {"$exists": True}}
        result = await self._users.update_one(query, {"$unset": {"calendar": ""}})
        return result.modified_count == 1

    @gated
    async def created_at(self, user_id: UserId) -> datetime | None:
        """When a person's address was made, if they have one."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"calendar.at": 1})
        at: datetime | None = (found or {}).get("calendar", {}).get("at")
        return at

    @gated
    async def find(self, hash_: str) -> User | None:
        """Whose address it is, unless they are banned."""
        found = await self._users.find_one({"calendar.hash": hash_, "banned": None}, SHOWN)
        return user_of(found) if found else None
