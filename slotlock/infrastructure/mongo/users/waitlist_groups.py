"""Keeps the copies of users' groups in waitlist entries up to date.

An entry has a copy, so that a slot can find the next user to promote. A change of groups inserts
{_id, users: [id], at} into `waitlist_group_updates` in its own transaction, and updates the slots
afterwards: inside the transaction, the update would block everybody who books there. The sweeper
completes what a process leaves undone, and what was decided before the change.
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
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)

log = logging.getLogger("slotlock")

MAX_ATTEMPTS = 20
MAX_PENDING_PER_RUN = 10
# A slot that a dead process's transaction keeps is left to the sweeper.
SYNC_TIMEOUT_S = 2.0
_HAS_GROUP_RULES = {"$or": [{"campaign": {"$exists": True}}, {"groupLimits.0": {"$exists": True}}]}


class WaitlistGroupSync:
    """Lets the turns of people carry the groups that the people carry."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(1)
        self._slots = database["slots"]
        self._users = database["users"]
        self._pending = database["waitlist_group_updates"]

    async def create_indexes(self) -> None:
        """Create the index that is missing."""
        await self._pending.create_index([("at", 1)], name="at")

    async def mark_pending(
        self, user_ids: Sequence[UserId], now: datetime, session: AsyncClientSession
    ) -> None:
        """Leave behind, with the change of these people's groups, what there is to do."""
        for batch in chunked([ObjectId(user_id) for user_id in user_ids]):
            await self._pending.insert_one({"users": batch, "at": now}, session=session)

    async def sync_now(self, user_ids: Sequence[UserId], now: datetime) -> None:
        """Do it now, as far as it can be done now."""
        try:
            with timeout(SYNC_TIMEOUT_S):
                await self._sync_users([ObjectId(user_id) for user_id in user_ids], now)
        except (PyMongoError, MongoOverloadedError) as error:
            log.warning("turns get their groups later: %s", type(error).__name__)

    async def sync_pending(self, marked_before: datetime, now: datetime) -> None:
        """Do what was marked before then once more, when all that was on its way is written."""
        for mark in await self._find_pending(marked_before):
            with timeout(SYNC_TIMEOUT_S):
                if await self._sync_users(mark["users"], now):
                    await self._delete_pending(mark)

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
        done = True
        for batch in chunked(user_ids):
            waited_in = {"waitlist.user": {"$in": batch}, **_HAS_GROUP_RULES}
            for slot_id in [slot["_id"] async for slot in self._slots.find(waited_in, {"_id": 1})]:
                done = await self._sync_slot(slot_id, batch, now) and done
        return done

    async def _sync_slot(
        self, slot_id: ObjectId, user_ids: Sequence[ObjectId], now: datetime
    ) -> bool:
        """Write the groups of these people into the slot, where they are others by now.

        They are read after the slot, and its version guards them: of two who do this at once, the
        one who knows less looks again. False when others wrote first each time.
        """
        for _ in range(MAX_ATTEMPTS):
            slot = await self._slots.find_one({"_id": slot_id}, {"waitlist": 1, "version": 1})
            if slot is None:
                return True
            theirs = {
                user["_id"]: user.get("groups", []) async for user in self._find_users(user_ids)
            }
            line = [_with_current_groups(turn, theirs) for turn in slot["waitlist"]]
            if line == slot["waitlist"]:
                return True
            changes = {
                "$set": {"waitlist": line},
                "$inc": {"version": 1},
                "$min": {"nextDeadline": now},
                "$max": {"changedAt": now},
            }
            done = await self._slots.update_one(
                {"_id": slot_id, "version": slot["version"]}, changes
            )
            if done.matched_count:
                return True
        return False

    def _find_users(self, user_ids: Sequence[ObjectId]) -> AsyncIterator[Document]:
        return self._users.find({"_id": {"$in": user_ids}}, {"groups": 1})


def _with_current_groups(entry: Document, groups_by_user: dict[ObjectId, list[str]]) -> Document:
    groups = groups_by_user.get(entry["user"], entry.get("groups", []))
    return entry if groups == entry.get("groups", []) else {**entry, "groups": groups}
