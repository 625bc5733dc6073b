"""Writes a backup: all documents of the database as they were at one instant.

A session with a snapshot reads every collection at the same cluster time, while bookings go on.
MongoDB has that snapshot for `minSnapshotHistoryWindowInSeconds`, by default 5 minutes.
"""

import asyncio
from datetime import UTC
from typing import BinaryIO, cast

from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import OperationFailure

from slotlock import __version__
from slotlock.infrastructure.mongo.backup.archive import ArchiveHeader, ArchiveWriter
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.document_parts import SCHEMA_VERSIONS

# A restored session would be valid again after its user had signed out, and a restored lease would
# belong to nobody. A probe means nothing.
EXCLUDED_COLLECTIONS = frozenset({"sessions", "session_versions", "leases", "write_probes"})
BATCH_SIZE = 1_000
# For one batch, or the count of one collection.
READ_TIMEOUT_S = 120.0
SNAPSHOT_TOO_OLD = 239
SNAPSHOT_UNAVAILABLE = 246


class NoSnapshotError(Exception):
    """There is nothing to read, or MongoDB cannot read at one instant; the text says why."""


async def collection_names(database: Database) -> list[str]:
    """Return all collections of the database, in alphabetical order, without those of MongoDB."""
    names = await database.list_collection_names(filter={"type": "collection"})
    return sorted(name for name in names if not name.startswith("system."))


async def write_backup(database: Database, stream: BinaryIO) -> ArchiveHeader:
    """Write a backup into a stream, batch after batch, and return its header.

    Raises: NoSnapshotError, PyMongoError and OSError.
    """
    async with database.client.start_session(snapshot=True) as session:
        try:
            header = await _count_documents(database, session)
            writer = await asyncio.to_thread(ArchiveWriter, stream, header)
            for collection in header.counts:
                await _write_collection(database, collection, session, writer)
        except OperationFailure as error:
            if error.code == SNAPSHOT_TOO_OLD:
                raise NoSnapshotError(
                    "the backup took longer than MongoDB has its snapshot: raise the parameter "
                    "minSnapshotHistoryWindowInSeconds and repeat"
                ) from error
            if error.code == SNAPSHOT_UNAVAILABLE:
                raise NoSnapshotError(
                    "a collection or an index was created during the backup: repeat"
                ) from error
            raise
        await asyncio.to_thread(writer.close)
        return header


async def _count_documents(database: Database, session: AsyncClientSession) -> ArchiveHeader:
    """Begin the snapshot with the first count, and return the header with all counts."""
    hello = await database.command("hello")
    names = await included_names(database)
    if not names:
        raise NoSnapshotError("the database is empty: SLOTLOCK_MONGO_URL may name another one")
    counts = {}
    for position, name in enumerate(names):
        with timeout(READ_TIMEOUT_S):
            counts[name] = await database[name].count_documents({}, session=session)
        if position == 0 and await included_names(database) != names:
            raise NoSnapshotError("a collection was created during the backup: repeat")
    taken_at = hello["localTime"].replace(tzinfo=UTC)
    return ArchiveHeader(__version__, taken_at, SCHEMA_VERSIONS, counts)


async def included_names(database: Database) -> list[str]:
    """Return the collections that a backup contains; a process that was started has the others."""
    return [name for name in await collection_names(database) if name not in EXCLUDED_COLLECTIONS]


async def _write_collection(
    database: Database, name: str, session: AsyncClientSession, writer: ArchiveWriter
) -> None:
    with timeout(READ_TIMEOUT_S):
        batches = database[name].find_raw_batches({}, batch_size=BATCH_SIZE, session=session)
    async with batches:
        while True:
            with timeout(READ_TIMEOUT_S):
                batch = await anext(batches, None)
            if batch is None:
                return
            # Compression in a thread leaves the event loop to the driver.
            await asyncio.to_thread(writer.write_batch, name, cast("bytes", batch))
