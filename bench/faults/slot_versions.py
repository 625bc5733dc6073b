"""Records every version of every slot that a majority has, from MongoDB's change stream."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import orjson
from bson import ObjectId
from pymongo import AsyncMongoClient
from pymongo.errors import CollectionInvalid, PyMongoError

from bench.faults.clock import clock_offset_s
from bench.faults.topology.servers import CampaignError

SLOTS = "slots"
# What a checker compares with responses when the campaign is over.
FINAL_COLLECTIONS = (
    "slots",
    "ended_bookings",
    "ended_waitlist_entries",
    "idempotency_records",
    "outbox",
)
MARKS = "fault_marks"
AWAIT_MS = 500
READ_TIMEOUT_MS = 10_000
CATCH_UP_TIMEOUT_S = 120.0

Document = dict[str, Any]


def to_json(value: object) -> object:
    """Return a value of BSON that orjson does not know: ids and bytes in hex."""
    if isinstance(value, ObjectId):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no JSON")


class SlotVersions:
    """Writes one line a version.

        {collection, id, kind, cluster_time, written_at, read_at, document}

    `kind` is `insert`, `update`, `replace` or `delete` of the change stream, or `final`. The writes
    of one transaction have the same `cluster_time`. The other times are seconds of the monotonic
    clock: at `read_at` a majority had the version, and before `written_at` nobody had it. A final
    document has neither `written_at` nor `cluster_time`. No fault disturbs the
    connections of this process, so the stream continues behind a failover where it ended.
    """

    def __init__(self, mongo_url: str, path: Path) -> None:
        self._client: AsyncMongoClient[Document] = AsyncMongoClient(
            mongo_url,
            tz_aware=True,
            readConcernLevel="majority",
            w="majority",
            serverSelectionTimeoutMS=READ_TIMEOUT_MS,
            socketTimeoutMS=READ_TIMEOUT_MS,
            connectTimeoutMS=2_000,
        )
        self._database = self._client.get_default_database()
        self._file: TextIO = path.open("w")
        self._task: asyncio.Task[None] | None = None
        self._seen_marks: set[object] = set()
        self._resume_token: Any = None
        self._is_closing = False
        self.count = 0

    async def prepare(self) -> None:
        """Let MongoDB keep the images of all versions, before the app writes a slot."""
        images = {"enabled": True}
        try:
            await self._database.create_collection(SLOTS, changeStreamPreAndPostImages=images)
        except CollectionInvalid:  # the start of an app created it
            await self._database.command("collMod", SLOTS, changeStreamPreAndPostImages=images)
        self._task = asyncio.create_task(self._record())
        await self._wait_for_mark()

    async def _record(self) -> None:
        while not self._is_closing:
            try:
                await self._read_stream()
            except PyMongoError:
                await asyncio.sleep(0.2)

    async def _read_stream(self) -> None:
        pipeline = [{"$match": {"ns.coll": {"$in": [SLOTS, MARKS]}}}]
        async with await self._database.watch(
            pipeline,
            full_document="whenAvailable",
            max_await_time_ms=AWAIT_MS,
            resume_after=self._resume_token,
        ) as stream:
            while not self._is_closing:
                event = await stream.try_next()
                self._resume_token = stream.resume_token
                if event is not None and "documentKey" in event:
                    self._write_event(event)

    def _write_event(self, event: Document) -> None:
        key = event["documentKey"]["_id"]
        if event["ns"]["coll"] == MARKS:
            self._seen_marks.add(key)
            return
        self.count += 1
        # The primary's clock is that of this host.
        written_at = event["wallTime"].timestamp() - clock_offset_s()
        document = event.get("fullDocument")
        time_of_write = event["clusterTime"]
        cluster_time = [time_of_write.time, time_of_write.inc]
        kind = event["operationType"]
        self._write(SLOTS, key, kind, document, written_at=written_at, cluster_time=cluster_time)

    def _write(
        self,
        collection: str,
        key: object,
        kind: str,
        document: Document | None,
        **times: object,
    ) -> None:
        line = {
            **times,
            "collection": collection,
            "id": key,
            "kind": kind,
            "read_at": time.monotonic(),
            "document": document,
        }
        self._file.write(orjson.dumps(line, default=to_json).decode() + "\n")

    async def _wait_for_mark(self) -> None:
        mark = ObjectId()
        deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
        while mark not in self._seen_marks:
            if time.monotonic() > deadline:
                raise CampaignError("the change stream of the slots does not catch up")
            # A new stream begins now, so that a mark from before it would not be seen.
            with suppress(PyMongoError):
                await self._database[MARKS].update_one(
                    {"_id": mark}, {"$inc": {"count": 1}}, upsert=True
                )
            await asyncio.sleep(0.2)

    async def finish(self) -> None:
        """Wait for all versions, and add the final documents; raises CampaignError."""
        await self._wait_for_mark()
        for name in FINAL_COLLECTIONS:
            async for document in self._database[name].find():
                self._write(name, document["_id"], "final", document)
        await self.close()

    async def close(self) -> None:
        """Stop recording."""
        self._is_closing = True
        if self._task is not None:
            # The driver can lose a cancellation while it reconnects.
            while not self._task.done():
                self._task.cancel()
                await asyncio.wait((self._task,), timeout=1)
        self._file.close()
        await self._client.close()
