"""Reads waiting lists of slots: their order, positions, and the lists on which users are."""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId, WaitlistEntryId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Database, is_unavailable
from slotlock.infrastructure.mongo.commands import find_in_one_batch
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited


class WaitlistQueries:
    """Finds entries of waiting lists without their slots."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._slots = database["slots"]
        self._ids_batcher = Batcher(self._find_ids_batch, is_outage=is_unavailable)

    async def find_ids(self, slot_id: SlotId) -> Sequence[WaitlistEntryId]:
        """Return the ids of all entries of a slot, in the order they are served."""
        return await self._ids_batcher.submit(slot_id)

    async def _find_ids_batch(self, slot_ids: list[SlotId]) -> list[Sequence[WaitlistEntryId]]:
        ids = [ObjectId(slot_id) for slot_id in set(slot_ids)]
        query = {"_id": {"$in": ids}}
        found = await find_in_one_batch(self._slots, query, {"waitlist.id": 1}, len(ids))
        entry_ids = {
            str(document["_id"]): [
                WaitlistEntryId(str(each["id"])) for each in document["waitlist"]
            ]
            for document in found
        }
        return [entry_ids.get(slot_id, []) for slot_id in slot_ids]

    @limited
    async def find_positions(
        self, user_ids: Sequence[UserId], since: datetime
    ) -> dict[UserId, dict[SlotId, int]]:
        """Return the positions, from 1, of these users on waitlists of slots after `since`."""
        users = {ObjectId(user_id): user_id for user_id in user_ids}
        query = {"waitlist.user": {"$in": list(users)}, "start": {"$gte": since}}
        positions: dict[UserId, dict[SlotId, int]] = {user_id: {} for user_id in user_ids}
        async for document in self._slots.find(query, {"waiting": "$waitlist.user"}):
            slot_id = SlotId(str(document["_id"]))
            for position, user in enumerate(document["waiting"], start=1):
                if user in users:
                    positions[users[user]][slot_id] = position
        return positions

    @limited
    async def find_waiting(self, user_ids: Sequence[UserId]) -> list[tuple[SlotId, UserId]]:
        """Return the slots on whose waitlists these users are, each with the user."""
        users = {ObjectId(user_id) for user_id in user_ids}
        found = self._slots.find({"waitlist.user": {"$in": list(users)}}, {"waitlist.user": 1})
        return [
            (SlotId(str(document["_id"])), UserId(str(entry["user"])))
            async for document in found
            for entry in document["waitlist"]
            if entry["user"] in users
        ]
