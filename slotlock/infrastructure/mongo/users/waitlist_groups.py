"""Keeps the copies of users' groups in waitlist entries up to date.

An entry has a copy, so that a slot can find the next user to promote. A change of groups inserts
{_id, users: [id], at} into `waitlist_group_updates` in its own transaction, and updates the slots
afterwards: inside the transaction, the update would block all bookings there. The sweeper completes
updates that a process did not finish, and corrects entries that were decided before the change.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import PyMongoError

from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)
from slotlock.infrastructure.mongo.indexes.index import indexes_of

log = logging.getLogger("slotlock")

MAX_PENDING_PER_RUN = 10
# Later, the sweeper updates slots that the transaction of a dead process occupies.
SYNC_TIMEOUT_S = 2.0
_HAS_GROUP_RULES = {"$or": [{"campaign": {"$exists": True}}, {"groupLimits.0": {"$exists": True}}]}
GROUP_UPDATE_INDEXES = indexes_of("waitlist_group_updates", {"at": ([("at", 1)], {})})


class WaitlistGroupSync:
    """Copies changed groups of users to their waitlist entries."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(1)
        self._slots = database["slots"]
        self._users = database["users"]
        self._pending = database["waitlist_group_updates"]

    async def mark_pending(
        self, user_ids: Sequence[UserId], now: datetime, session: AsyncClientSession
    ) -> None:
        """Record, in the transaction that changes these users' groups, that slots need updates."""
        for batch in chunked([ObjectId(user_id) for user_id in user_ids]):
            await self._pending.insert_one({"users": batch, "at": now}, session=session)

    async def sync_now(self, user_ids: Sequence[UserId], now: datetime) -> None:
        """Update the slots now, as far as this is possible within 2 s."""
        try:
            with timeout(SYNC_TIMEOUT_S):
                await self._sync_users([ObjectId(user_id) for user_id in user_ids], now)
        except (PyMongoError, MongoOverloadedError) as error:
            log.warning(
                "waitlist groups could not be updated, and will be later: %s", type(error).__name__
            )

    async def sync_pending(self, marked_before: datetime, now: datetime) -> None:
        """Repeat the updates that were recorded before a time; raises PyMongoError.

        By then, all decisions that are based on the old groups are written.
        """
        for pending in await self._find_pending(marked_before):
            with timeout(SYNC_TIMEOUT_S):
                if await self._sync_users(pending["users"], now):
                    await self._delete_pending(pending)

    @limited
    async def _find_pending(self, marked_before: datetime) -> list[Document]:
        found = self._pending.find(
            {"at": {"$lt": marked_before}}, sort=[("at", 1)], limit=MAX_PENDING_PER_RUN
        )
        return await found.to_list()

    @limited
    async def _delete_pending(self, pending: Document) -> None:
        await self._pending.delete_one({"_id": pending["_id"]})

    @limited
    async def _sync_users(self, user_ids: Sequence[ObjectId], now: datetime) -> bool:
        is_complete = True
        for batch in chunked(user_ids):
            query = {"waitlist.user": {"$in": batch}, **_HAS_GROUP_RULES}
            for slot_id in [slot["_id"] async for slot in self._slots.find(query, {"_id": 1})]:
                is_complete = await self._sync_slot(slot_id, batch, now) and is_complete
        return is_complete

    async def _sync_slot(
        self, slot_id: ObjectId, user_ids: Sequence[ObjectId], now: datetime
    ) -> bool:
        """Copy the users' current groups to their entries in a slot.

        The groups are read after the slot, and the write depends on its version: of two concurrent
        updates, the one with older groups repeats. Return False if each attempt had a conflict.
        """
        for _ in attempts():
            slot = await self._slots.find_one({"_id": slot_id}, {"waitlist": 1, "version": 1})
            if slot is None:
                return True
            groups = {
                user["_id"]: user.get("groups", []) async for user in self._find_users(user_ids)
            }
            waitlist = [_with_current_groups(entry, groups) for entry in slot["waitlist"]]
            if waitlist == slot["waitlist"]:
                return True
            changes = {
                "$set": {"waitlist": waitlist},
                "$inc": {"version": 1},
                "$min": {"nextDeadline": now},
                "$max": {"changedAt": now},
            }
            result = await self._slots.update_one(
                {"_id": slot_id, "version": slot["version"]}, changes
            )
            if result.matched_count:
                return True
        return False

    def _find_users(self, user_ids: Sequence[ObjectId]) -> AsyncIterator[Document]:
        return self._users.find({"_id": {"$in": user_ids}}, {"groups": 1})


def _with_current_groups(entry: Document, groups_by_user: dict[ObjectId, list[str]]) -> Document:
    groups = groups_by_user.get(entry["user"], entry.get("groups", []))
    return entry if groups == entry.get("groups", []) else {**entry, "groups": groups}
