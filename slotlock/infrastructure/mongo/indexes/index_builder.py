"""Builds missing indexes: at once where a collection is empty, in the background otherwise.

MongoDB stops a build whose command runs out of time. A build therefore has a deadline of its own,
and not that of an operation. A build that another process began is joined.

    leases: {_id: task, holder, until}

A lease lets one process of all do a task in the background. Its times are those of MongoDB, so that
the clocks of the processes do not matter. Two holders would only do the same work twice.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from time import monotonic

from bson import ObjectId
from pymongo import ReturnDocument, timeout
from pymongo.errors import DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern

from slotlock.infrastructure.mongo.client import Database, Document, outage_reason
from slotlock.infrastructure.mongo.indexes.index import Index, RequiredIndexes, find_missing

BUILD_DEADLINE_S = 24 * 3600.0
PROGRESS_INTERVAL_S = 10.0
# After an error, or while another process builds.
RETRY_INTERVAL_S = 5.0
STOP_TIMEOUT_S = 2.0
LEASE_S = 30
# With the default, `votingMembers`, one member that is down blocks the build.
COMMIT_QUORUM = "majority"

log = logging.getLogger("slotlock.indexes")

Backfill = Callable[[], Awaitable[None]]


class TaskLease:
    """The lease of one task, as one process asks for it."""

    def __init__(self, database: Database, task: str) -> None:
        self._leases = database["leases"]
        self._task = task
        self._holder = ObjectId()

    async def acquire(self) -> bool:
        """Take the lease for 30 s, or prolong it. Return False if another process holds it."""
        # Without a document, `$until` is missing, which is less than every time.
        is_free = {"$or": [{"$eq": ["$holder", self._holder]}, {"$lt": ["$until", "$$NOW"]}]}
        until = {"$dateAdd": {"startDate": "$$NOW", "unit": "second", "amount": LEASE_S}}
        taken = {
            "holder": {"$cond": [is_free, self._holder, "$holder"]},
            "until": {"$cond": [is_free, until, "$until"]},
        }
        try:
            lease = await self._leases.find_one_and_update(
                {"_id": self._task},
                [{"$set": taken}],
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        except DuplicateKeyError:  # another process inserted the lease at the same time
            return False
        return lease is not None and lease["holder"] == self._holder

    async def release(self) -> None:
        """Give the lease back, if this process holds it."""
        await self._leases.delete_one({"_id": self._task, "holder": self._holder})


class IndexBuilder:
    """Builds the indexes of a database, and knows which unique ones writes have to wait for."""

    def __init__(
        self,
        database: Database,
        indexes: Sequence[Index],
        required: RequiredIndexes,
        backfills: Sequence[Backfill] = (),
    ) -> None:
        self.required = required
        self._database = database
        self._indexes = indexes
        self._backfills = backfills

    async def create_on_empty(self) -> list[Index]:
        """Create the missing indexes of empty collections. Return those that remain missing.

        On an empty collection this takes no time, even while a member of the replica set is down.
        Raises: IndexConflictError and PyMongoError.
        """
        missing = await find_missing(self._database, self._indexes)
        self.required.set_missing(missing)
        remaining: list[Index] = []
        for collection, group in groupby(missing, key=lambda index: index.collection):
            wanted = list(group)
            if await self._database[collection].find_one({}, {"_id": 1}) is None:
                await self._create(collection, wanted)
            else:
                remaining += wanted
        if remaining:
            # Another process may have created them meanwhile, before its first insert.
            still_missing = await find_missing(self._database, remaining)
            remaining = [index for index in remaining if index in still_missing]
        self.required.set_missing(remaining)
        return remaining

    async def build_missing(self, deadline_s: float = BUILD_DEADLINE_S) -> list[Index]:
        """Build what is missing, unique indexes first, and add fields that documents lack.

        Return the indexes that were built. Raises: IndexConflictError, DuplicateKeyError if
        documents violate a unique index, and PyMongoError, also after `deadline_s` seconds.
        """
        missing = await find_missing(self._database, self._indexes)
        self.required.set_missing(missing)
        missing.sort(key=lambda index: (not index.is_unique, index.collection))
        with timeout(deadline_s):
            # One scan of the collection serves all its indexes.
            for (_, collection), group in groupby(
                missing, key=lambda index: (index.is_unique, index.collection)
            ):
                await self._build(collection, list(group))
        await self._backfill()
        self.required.set_missing(())
        return missing

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Build missing indexes in the background, in one process of all."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            # A stop does not wait for MongoDB, which completes or drops the build by itself.
            await asyncio.wait([task], timeout=STOP_TIMEOUT_S)

    async def _run(self) -> None:
        lease = TaskLease(self._database, "index-build")
        while True:
            try:
                missing = await find_missing(self._database, self._indexes)
                self.required.set_missing(missing)
                if not missing:
                    await self._backfill()
                    return
                if await lease.acquire():
                    async with _prolonged(lease):
                        await self.build_missing()
                    return
            except DuplicateKeyError as error:
                log.error("a unique index cannot be built, remove the duplicates: %s", error)  # noqa: TRY400
            except Exception as error:
                log.warning("an index build will be repeated: %s", outage_reason(error))
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def _backfill(self) -> None:
        with timeout(BUILD_DEADLINE_S):  # the first one may read many documents
            for backfill in self._backfills:
                await backfill()

    async def _build(self, collection: str, indexes: list[Index]) -> None:
        names = ", ".join(index.name for index in indexes)
        log.info("building indexes of %s: %s", collection, names)
        started_at = monotonic()
        building = asyncio.create_task(self._create(collection, indexes))
        try:
            while not (await asyncio.wait([building], timeout=PROGRESS_INTERVAL_S))[0]:
                progress = await self._progress(collection)
                seconds = monotonic() - started_at
                log.info("building indexes of %s: %s, %.0f s so far", collection, progress, seconds)
            await building
        finally:
            building.cancel()
        seconds = monotonic() - started_at
        log.info("built indexes of %s in %.1f s: %s", collection, seconds, names)

    async def _create(self, collection: str, indexes: list[Index]) -> None:
        models = [index.to_model() for index in indexes]
        await self._database[collection].create_indexes(models, commitQuorum=COMMIT_QUORUM)

    async def _progress(self, collection: str) -> str:
        """Return how far MongoDB is, in words; it may withhold that from this user."""
        namespace = f"{self._database.name}.{collection}"
        stages: list[Document] = [
            {"$currentOp": {"allUsers": True}},
            {"$match": {"ns": namespace, "progress.total": {"$gt": 0}}},
        ]
        admin = self._database.client.admin.with_options(read_concern=ReadConcern("local"))
        with suppress(PyMongoError):
            async for operation in await admin.aggregate(stages):
                progress = operation["progress"]
                return f"{progress['done']} of {progress['total']} ({operation.get('msg', '')})"
        return "no progress known"


@asynccontextmanager
async def _prolonged(lease: TaskLease) -> AsyncIterator[None]:
    """Prolong the lease until the end of the block, and release it then."""

    async def prolong() -> None:
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            with suppress(PyMongoError):
                await lease.acquire()

    task = asyncio.create_task(prolong())
    try:
        yield
    finally:
        task.cancel()
        with suppress(PyMongoError):
            await lease.release()
