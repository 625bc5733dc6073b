"""The groups of those who wait: a turn keeps them, so that the next in line is found by them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.people import UserId
from slotlock.domain.slots import SlotStatus
from slotlock.stores.mongo import Database, Document

_ASKING = {"$or": [{"campaign": {"$exists": True}}, {"groupLimits.0": {"$exists": True}}]}


async def regroup(
    database: Database,
    groups: Mapping[UserId, Sequence[str]],
    now: datetime,
    session: AsyncClientSession | None = None,
) -> None:
    """Let the turns of these people carry these groups.

    They may be next now, or no longer: each slot is due, and what was decided on it is stale.
    """
    theirs = {ObjectId(user_id): list(some) for user_id, some in groups.items()}
    query: Document = {
        "waiting.user": {"$in": list(theirs)},
        "start": {"$gt": now},
        "status": {"$ne": SlotStatus.CANCELLED.value},
        **_ASKING,
    }
    found = database["slots"].find(query, {"waiting.user": 1}, session=session)
    updates = [
        UpdateOne(
            {"_id": slot["_id"], "waiting.user": turn["user"]},
            {
                "$set": {"waiting.$[turn].groups": theirs[turn["user"]]},
                "$inc": {"version": 1},
                "$min": {"due": now},
            },
            array_filters=[{"turn.user": turn["user"]}],
        )
        async for slot in found
        for turn in slot["waiting"]
        if turn["user"] in theirs
    ]
    if updates:
        await database["slots"].bulk_write(updates, ordered=False, session=session)
