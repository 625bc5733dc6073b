"""Restores a backup into a database that no process uses."""

import asyncio
from datetime import datetime
from pathlib import Path
from time import monotonic

from pymongo import timeout
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.backup.archive import (
    RAW_DOCUMENTS,
    ArchiveError,
    ArchiveHeader,
    read_batches,
    read_header,
)
from slotlock.infrastructure.mongo.backup.dump import collection_names, included_names
from slotlock.infrastructure.mongo.client import (
    Database,
    Document,
    app_name,
)
from slotlock.infrastructure.mongo.document_parts import SCHEMA_VERSIONS
from slotlock.infrastructure.mongo.repositories import INDEXES, Repositories

# For one batch, or the count of one collection.
WRITE_TIMEOUT_S = 120.0
# MongoDB notices a moment later that a process has ended.
DISCONNECT_TIMEOUT_S = 2.0
POLL_INTERVAL_S = 0.2
UNAUTHORIZED = 13
# MongoDB deletes expired documents of these, also during a restore.
EXPIRING_COLLECTIONS = {each.collection for each in INDEXES if "expireAfterSeconds" in each.options}


class DatabaseInUseError(Exception):
    """Processes of slotlock are connected to the database."""


class DatabaseNotEmptyError(Exception):
    """The database has documents, which a restore would mix with those of the backup."""


class RestoreIncompleteError(Exception):
    """After the restore, a collection has not as many documents as the backup."""


@value_object
class DatabaseContents:
    """What a restore would delete; `newest_booking` is the time of the newest live booking."""

    slots: int
    bookings: int
    users: int
    newest_booking: datetime | None


async def find_contents(database: Database) -> DatabaseContents | None:
    """Return what a restore would delete, or None if it would delete nothing."""
    if await _find_filled_collection(database) is None:
        return None
    counts = {
        "_id": None,
        "slots": {"$sum": 1},
        "bookings": {"$sum": {"$size": {"$ifNull": ["$bookings", []]}}},
        "newest": {"$max": {"$max": "$bookings.at"}},
    }
    with timeout(WRITE_TIMEOUT_S):
        found = await (await database["slots"].aggregate([{"$group": counts}])).to_list()
        users = await database["users"].count_documents({})
    slots: Document = found[0] if found else {"slots": 0, "bookings": 0, "newest": None}
    return DatabaseContents(slots["slots"], slots["bookings"], users, slots["newest"])


async def check_unused(database: Database) -> None:
    """Check that no process of slotlock is connected to the database.

    MongoDB shows connections of the same user to everyone, and those of others to users with the
    privilege `inprog`. Where it shows none at all, this check does not find them, and behind a
    mongos it may not find those without an operation.

    Raises: DatabaseInUseError and PyMongoError.
    """
    started_at = monotonic()
    while hosts := {_host(each) for each in await _find_connections(database)}:
        if monotonic() - started_at > DISCONNECT_TIMEOUT_S:
            raise DatabaseInUseError(
                f"processes of slotlock are connected to {database.name} from "
                f"{', '.join(sorted(hosts))}: stop them first"
            )
        await asyncio.sleep(POLL_INTERVAL_S)


async def _find_connections(database: Database) -> list[Document]:
    """Return the connections of slotlock to this database."""
    admin = database.client.get_database("admin", read_concern=ReadConcern("local"))
    for all_users in (True, False):
        listing: Document = {"$currentOp": {"allUsers": all_users, "idleConnections": True}}
        pipeline = [listing, {"$match": {"appName": app_name(database.name)}}]
        try:
            return await (await admin.aggregate(pipeline)).to_list()
        except OperationFailure as error:
            if error.code != UNAUTHORIZED:
                raise
    return []


def _host(connection: Document) -> str:
    return str(connection.get("client", "a mongos:")).rpartition(":")[0]


async def restore_backup(database: Database, path: Path, *, replace: bool) -> ArchiveHeader:
    """Restore all documents and indexes from a file that is complete and undamaged.

    With `replace`, everything in the database is deleted first. Otherwise the database must be
    empty. No other process may use the database meanwhile.
    Raises: ArchiveError before anything is written, DatabaseNotEmptyError, RestoreIncompleteError,
    PyMongoError and OSError.
    """
    header = await asyncio.to_thread(read_header, path)
    _check_versions(header)
    if replace:
        for name in await collection_names(database):
            await database.drop_collection(name)
    elif filled := await _find_filled_collection(database):
        raise DatabaseNotEmptyError(f"the database has documents in {filled}")
    await _insert_documents(database, path)
    await _check_counts(database, header)
    await Repositories(database).indexes.build_missing()
    return header


def _check_versions(header: ArchiveHeader) -> None:
    for collection, version in header.schema_versions.items():
        if version > SCHEMA_VERSIONS.get(collection, version):
            raise ArchiveError(
                f"slotlock {header.slotlock_version} wrote the file, with schema version "
                f"{version} of {collection}: this version of slotlock is too old for it"
            )


async def _find_filled_collection(database: Database) -> str | None:
    for name in await included_names(database):
        if await database[name].find_one({}, {"_id": 1}) is not None:
            return name
    return None


async def _insert_documents(database: Database, path: Path) -> None:
    batches = read_batches(path)
    while batch := await asyncio.to_thread(next, batches, None):
        name, documents = batch
        collection = database.get_collection(name, RAW_DOCUMENTS)
        with timeout(WRITE_TIMEOUT_S):
            await collection.insert_many(documents, ordered=False)


async def _check_counts(database: Database, header: ArchiveHeader) -> None:
    for name in header.counts.keys() - EXPIRING_COLLECTIONS:
        with timeout(WRITE_TIMEOUT_S):
            count = await database[name].count_documents({})
        if count != header.counts[name]:
            raise RestoreIncompleteError(
                f"{name} has {count} documents instead of {header.counts[name]}: "
                "stop all processes of slotlock and repeat with --replace"
            )
