"""What MongoDB writes: a change stream that begins where majority reads end.

The stream carries the ids and versions of slots, which of them lists may show anew, the users of
their new bookings, the ids of deleted slots, those of campaigns that changed, and those of sessions
that ended or whose role changed. It is read by commands,
because the cursor of the driver returns one change at a time, and its timeout would replace
`maxTimeMS`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from bson import ObjectId, Timestamp
from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import NetworkTimeout, OperationFailure, PyMongoError

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document

# MongoDB answers at the first change, or after this time.
MAX_AWAIT_MS = 500
# A reply that takes longer than this is lost: the server stands still.
REPLY_TIMEOUT_S = 3.0
BATCH_SIZE = 10_000
# The name under which `getMore` reads a stream of a whole database.
COLLECTION = "$cmd.aggregate"
# The changed fields with their paths. A new booking is a new element of an array, or the array is
# replaced, or an element changes its user. An update that changes most of a document is reported as
# its replacement, with the whole document.
_CHANGED_FIELDS = {"$ifNull": ["$updateDescription.updatedFields", "$fullDocument", {}]}
_USERS = {
    "$map": {
        "input": {"$objectToArray": _CHANGED_FIELDS},
        "in": {
            "$cond": [
                {"$regexMatch": {"input": "$$this.k", "regex": "\\.user$"}},
                "$$this.v",
                "$$this.v.user",
            ]
        },
    }
}
_UPDATED_VERSION = "updateDescription.updatedFields.version"
# A new slot, one that was published, and one whose campaign was published.
_IS_LISTED = {
    "$anyElementTrue": {
        "$map": {
            "input": {"$objectToArray": _CHANGED_FIELDS},
            "in": {"$regexMatch": {"input": "$$this.k", "regex": "^(status|campaign)"}},
        }
    }
}
WATCHED_CHANGES: list[Document] = [
    {
        "$match": {
            "$or": [
                {
                    "ns.coll": "slots",
                    "operationType": "update",
                    _UPDATED_VERSION: {"$exists": True},
                },
                {"ns.coll": "slots", "operationType": {"$in": ["insert", "replace", "delete"]}},
                {
                    "ns.coll": "campaigns",
                    "operationType": {"$in": ["insert", "update", "replace", "delete"]},
                },
                {"ns.coll": "sessions", "operationType": "delete"},
                {
                    "ns.coll": "sessions",
                    "operationType": "update",
                    "updateDescription.updatedFields.role": {"$exists": True},
                },
            ]
        }
    },
    {
        "$project": {
            "documentKey": 1,
            "ns.coll": 1,
            "clusterTime": 1,
            "version": {"$ifNull": [f"${_UPDATED_VERSION}", "$fullDocument.version"]},
            "users": _USERS,
            "isListed": _IS_LISTED,
        }
    },
]


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """The latest version of each slot that changed, and the sessions to check again.

    `user_ids` includes the users of all new bookings in these slots, and may include others.
    `deleted_slot_ids` are slots that no longer exist. `listed_slot_ids` are new ones, and those
    whose status or campaign changed. `campaign_ids` are campaigns that changed or were deleted.
    `first_written_at` is the second in which the first of the changes was written.
    """

    slot_versions: Mapping[SlotId, int]
    user_ids: frozenset[UserId]
    session_ids: frozenset[str]
    deleted_slot_ids: frozenset[SlotId] = frozenset()
    listed_slot_ids: frozenset[SlotId] = frozenset()
    campaign_ids: frozenset[CampaignId] = frozenset()
    first_written_at: datetime | None = field(default=None, compare=False, kw_only=True)

    def __bool__(self) -> bool:
        return bool(
            self.slot_versions or self.session_ids or self.deleted_slot_ids or self.campaign_ids
        )


class ChangeStream:
    """One stream of the changes of a database. After an error, `open` begins a new one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session: AsyncClientSession | None = None
        self._cursor_id = 0
        # After which change a stream continues where this one is.
        self.resume_token: Document | None = None

    async def database_id(self) -> str | None:
        """Return the UUID of the slots, which no other deployment has; None without slots."""
        reply = await self._database.command("listCollections", filter={"name": "slots"})
        found = reply["cursor"]["firstBatch"]
        return bytes(found[0]["info"]["uuid"]).hex() if found else None

    def election_id(self) -> ObjectId | None:
        """Return the id of the latest election that the driver knows; None behind a mongos."""
        return self._database.client.topology_description.max_election_id

    async def open(self, resume_after: Document | None = None) -> None:
        """Open a stream of all changes that majority reads do not return yet.

        With a token, open it after the change of the token instead.

        Raises:
            PyMongoError: MongoDB is unavailable, or a shard has no majority.
            OperationFailure: MongoDB has no longer all changes after the token.
        """
        await self.close()
        self._session = self._database.client.start_session(causal_consistency=False)
        start = await self._committed_time()
        options = {"resumeAfter": resume_after} if resume_after else {"startAtOperationTime": start}
        self._cursor_id = await self._open_cursor(start, options)

    async def _committed_time(self) -> Timestamp:
        """Return the time of the last write that majority reads return.

        Without it, MongoDB would begin the stream at the last write that the primary has applied. A
        write that has no majority yet would then be neither read now nor reported later.
        """
        reply = await self._run(
            {
                "find": "slots",
                "projection": {"_id": 1},
                "limit": 1,
                "singleBatch": True,
                "readConcern": {"level": "majority"},
            }
        )
        # Behind a mongos this is the latest of the shards that it asked.
        return cast("Timestamp", reply["operationTime"])

    async def _open_cursor(self, start: Timestamp, options: Document) -> int:
        # Each shard, and a primary that was elected meanwhile, waits until it has a majority for
        # this time: from then on, majority reads return all that came before the stream.
        reply = await self._run(
            {
                "aggregate": 1,
                "pipeline": [
                    {"$changeStream": options},
                    *WATCHED_CHANGES,
                ],
                "cursor": {"batchSize": 0},
                "readConcern": {"level": "majority", "afterClusterTime": start},
                "maxTimeMS": round(REPLY_TIMEOUT_S * 1000),  # or it would wait without a reader
            }
        )
        self.resume_token = reply["cursor"].get("postBatchResumeToken")
        return int(reply["cursor"]["id"])

    async def next_changes(self) -> ChangeBatch:
        """Return the next changes; none after half a second without any.

        Raises:
            PyMongoError: the stream ended, or MongoDB is unavailable.
        """
        reply = await self._run(
            {
                "getMore": self._cursor_id,
                "collection": COLLECTION,
                "batchSize": BATCH_SIZE,
                "maxTimeMS": MAX_AWAIT_MS,
            }
        )
        cursor = reply["cursor"]
        if cursor["id"] == 0:  # the database was dropped
            self._cursor_id = 0
            raise OperationFailure("the change stream ended")
        self.resume_token = cursor.get("postBatchResumeToken", self.resume_token)
        return _to_changes(cursor["nextBatch"])

    async def close(self) -> None:
        """Close the cursor in MongoDB, if it is available."""
        session, self._session = self._session, None
        cursor_id, self._cursor_id = self._cursor_id, 0
        if session is None:
            return
        try:
            if cursor_id:
                kill: Document = {"killCursors": COLLECTION, "cursors": [cursor_id]}
                async with asyncio.timeout(REPLY_TIMEOUT_S):
                    await self._database.command(kill, session=session)
        except (PyMongoError, TimeoutError):
            pass  # MongoDB closes it by itself
        finally:
            await session.end_session()

    async def _run(self, command: Document) -> Document:
        # The driver would replace `maxTimeMS` by the timeout of the client; 0 is none, and None
        # is that of the client.
        try:
            with timeout(0):
                async with asyncio.timeout(REPLY_TIMEOUT_S):
                    return await self._database.command(command, session=self._session)
        except TimeoutError as error:
            raise NetworkTimeout("no reply of the change stream") from error


def _to_changes(events: Sequence[Mapping[str, Any]]) -> ChangeBatch:
    slot_versions: dict[SlotId, int] = {}
    user_ids: set[UserId] = set()
    session_ids = set()
    deleted_slot_ids: set[SlotId] = set()
    listed_slot_ids: set[SlotId] = set()
    campaign_ids: set[CampaignId] = set()
    for event in events:
        document_id = event["documentKey"]["_id"]
        if event["ns"]["coll"] == "campaigns":
            campaign_ids.add(CampaignId(str(document_id)))
        elif "version" in event:
            slot_versions[SlotId(str(document_id))] = event["version"]
            if event["isListed"]:
                listed_slot_ids.add(SlotId(str(document_id)))
            for value in event["users"]:
                ids = value if isinstance(value, list) else (value,)
                user_ids.update(UserId(str(id_)) for id_ in ids if isinstance(id_, ObjectId))
        elif event["ns"]["coll"] == "slots":
            deleted_slot_ids.add(SlotId(str(document_id)))
        else:
            session_ids.add(document_id)
    return ChangeBatch(
        slot_versions,
        frozenset(user_ids),
        frozenset(session_ids),
        frozenset(deleted_slot_ids),
        frozenset(listed_slot_ids),
        frozenset(campaign_ids),
        # Those of other shards may come later, so that the first event is not the first write.
        first_written_at=min(
            (event["clusterTime"].as_datetime() for event in events), default=None
        ),
    )
