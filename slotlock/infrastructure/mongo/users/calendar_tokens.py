"""The addresses of people's calendars in MongoDB, in the documents of who they belong to.

Every request looks here, and nowhere else: an address that was revoked is no good from then on.
"""

from datetime import datetime

from bson import ObjectId

from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.users.documents import PUBLIC_FIELDS, to_user


class CalendarTokenRepository:
    """Who can be read by which address; one a person."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._users = database["users"]

    @limited
    async def save(self, user_id: UserId, token_hash: str, now: datetime) -> None:
        """Give a person this address instead of theirs."""
        kept = {"hash": token_hash, "at": now}
        await self._users.update_one({"_id": ObjectId(user_id)}, {"$set": {"calendar": kept}})

    @limited
    async def delete(self, user_id: UserId) -> bool:
        """Take a person's address away; whether there was one."""
        query = {"_id": ObjectId(user_id), "calendar.hash": {"$exists": True}}
        result = await self._users.update_one(query, {"$unset": {"calendar": ""}})
        return result.modified_count == 1

    @limited
    async def find_created_at(self, user_id: UserId) -> datetime | None:
        """When a person's address was made, if they have one."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"calendar.at": 1})
        at: datetime | None = (found or {}).get("calendar", {}).get("at")
        return at

    @limited
    async def find_user(self, token_hash: str) -> User | None:
        """Whose address it is, unless they are banned."""
        found = await self._users.find_one(
            {"calendar.hash": token_hash, "banned": None}, PUBLIC_FIELDS
        )
        return to_user(found) if found else None
