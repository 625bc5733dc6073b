"""Stores the hashes of calendar tokens in the documents of their users.

Every request of a calendar reads them, so that a revoked token stops working at once.
"""

from datetime import datetime

from bson import ObjectId

from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.users.documents import PUBLIC_FIELDS, to_user


class CalendarTokenRepository:
    """Stores at most one calendar token for each user."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._users = database["users"]

    @limited
    async def save(self, user_id: UserId, token_hash: str, now: datetime) -> None:
        """Replace the user's token. A write that arrives late replaces no newer token.

        Nothing is written after a claim or an erasure, which ended the session and the token.
        """
        user: Document = {"_id": ObjectId(user_id), "withoutPassword": None}
        change = {"$set": {"calendar": {"hash": token_hash, "at": now}}}
        # A retry means that a concurrent change of the token was written, so the loop ends.
        while found := await self._users.find_one(user, {"calendar.hash": 1}):
            unchanged = {**user, "calendar.hash": found.get("calendar", {}).get("hash")}
            if (await self._users.update_one(unchanged, change)).matched_count:
                return

    @limited
    async def delete(self, user_id: UserId) -> bool:
        """Delete the user's token. Return False if there was none."""
        query = {"_id": ObjectId(user_id), "calendar.hash": {"$exists": True}}
        result = await self._users.update_one(query, {"$unset": {"calendar": ""}})
        return result.modified_count == 1

    @limited
    async def find_created_at(self, user_id: UserId) -> datetime | None:
        """Return when the user's token was created; None if there is none."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"calendar.at": 1})
        at: datetime | None = (found or {}).get("calendar", {}).get("at")
        return at

    @limited
    async def find_user(self, token_hash: str) -> User | None:
        """Return the user with this token; None if there is none, or if the user is banned."""
        found = await self._users.find_one(
            {"calendar.hash": token_hash, "banned": None}, PUBLIC_FIELDS
        )
        return to_user(found) if found else None
