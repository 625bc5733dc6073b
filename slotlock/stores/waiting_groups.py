"""The groups of those who wait: a turn keeps them, so that the next in line is found by them.

Whoever changes groups leaves {_id, users: [id], at} in `regroupings`, in the same transaction, and
carries it to the slots afterwards: within it, it would cost all who book there its seconds. What a
process leaves undone, or what was decided on before, a sweeper does later.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import PyMongoError

from slotlock.domain.people import UserId
from slotlock.stores.batches import in_parts
from slotlock.stores.gate import Gate, GateTimeoutError, gated
from slotlock.stores.mongo import Database, Document

log = logging.getLogger("slotlock")

TRIES = 20
MOST_MARKS = 10
# A slot that a dead process's transaction keeps is left to the sweeper.
WITHIN_S = 2.0
_ASKING = {"$or": [{"campaign": {"$exists": True}}, {"groupLimits.0": {"$exists": True}}]}


class WaitingGroups:
    """Lets the turns of people carry the groups that the people carry."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(1)
        self._slots = database["slots"]
        self._users = database["users"]
        self._marks = database["regroupings"]

    async def prepare(self) -> None:
        """Create the index that is missing."""
        await self._marks.create_index([("at", 1)], name="at")

    async def mark(
        self, user_ids: Sequence[UserId], now: datetime, session: AsyncClientSession
    ) -> None:
        """Leave behind, with the change of these people's groups, what there is to do."""
        for batch in in_parts([ObjectId(user_id) for user_id in user_ids]):
            await self._marks.insert_one({"users": batch, "at": now}, session=session)

    async def soon(self, user_ids: Sequence[UserId], now: datetime) -> None:
        """Do it now, as far as it can be done now."""
        try:
            with timeout(WITHIN_S):
                await self._regroup([ObjectId(user_id) for user_id in user_ids], now)
        except (PyMongoError, GateTimeoutError) as error:
            log.warning("turns get their groups later: %s", type(error).__name__)

    async def finish(self, before: datetime, now: datetime) -> None:
        """Do what was marked before then once more, when all that was on its way is written."""
        for mark in await self._marked(before):
            with timeout(WITHIN_S):
                if await self._regroup(mark["users"], now):
                    await self._unmark(mark)

    @gated
    async def _marked(self, before: datetime) -> list[Document]:
        found = self._marks.find({"at": {"$lt": before}}, sort=[("at", 1)], limit=MOST_MARKS)
        return await found.to_list()

    @gated
    async def _unmark(self, mark: Document) -> None:
        await self._marks.delete_one({"_id": mark["_id"]})

    @gated
    async def _regroup(self, user_ids: Sequence[ObjectId], now: datetime) -> bool:
        done = True
        for batch in in_parts(user_ids):
            waited_in = {"waiting.user": {"$in": batch}, **_ASKING}
            for slot_id in [slot["_id"] async for slot in self._slots.find(waited_in, {"_id": 1})]:
                done = await self._carry(slot_id, batch, now) and done
        return done

    async def _carry(self, slot_id: ObjectId, user_ids: Sequence[ObjectId], now: datetime) -> bool:
        """Write the groups of these people into the slot, where they are others by now.

        They are read after the slot, and its version guards them: of two who do this at once, the
        one who knows less looks again. False when others wrote first each time.
        """
        for _ in range(TRIES):
            slot = await self._slots.find_one({"_id": slot_id}, {"waiting": 1, "version": 1})
            if slot is None:
                return True
            theirs = {user["_id"]: user.get("groups", []) async for user in self._people(user_ids)}
            line = [_regrouped(turn, theirs) for turn in slot["waiting"]]
            if line == slot["waiting"]:
                return True
            changes = {
                "$set": {"waiting": line},
                "$inc": {"version": 1},
                "$min": {"due": now},
                "$max": {"changedAt": now},
            }
            done = await self._slots.update_one(
                {"_id": slot_id, "version": slot["version"]}, changes
            )
            if done.matched_count:
                return True
        return False

    def _people(self, user_ids: Sequence[ObjectId]) -> AsyncIterator[Document]:
        return self._users.find({"_id": {"$in": user_ids}}, {"groups": 1})


def _regrouped(turn: Document, theirs: dict[ObjectId, list[str]]) -> Document:
    groups = theirs.get(turn["user"], turn.get("groups", []))
    return turn if groups == turn.get("groups", []) else {**turn, "groups": groups}
