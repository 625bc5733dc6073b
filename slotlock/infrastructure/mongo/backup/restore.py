"""Restores a backup into a database that no process uses."""

import asyncio
from pathlib import Path

from pymongo import timeout

from slotlock.infrastructure.mongo.backup.archive import (
    RAW_DOCUMENTS,
    ArchiveError,
    ArchiveHeader,
    read_batches,
    read_header,
)
from slotlock.infrastructure.mongo.backup.dump import EXCLUDED_COLLECTIONS, collection_names
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.repositories import INDEXES, repositories_on
from slotlock.infrastructure.mongo.schema.versions import SCHEMA_VERSIONS

# For one batch, or the count of one collection.
WRITE_TIMEOUT_S = 120.0
# MongoDB deletes expired documents of these, also during a restore.
EXPIRING_COLLECTIONS = {each.collection for each in INDEXES if "expireAfterSeconds" in each.options}


class DatabaseNotEmptyError(Exception):
    """The database has documents, which a restore would mix with those of the backup."""


class RestoreIncompleteError(Exception):
    """After the restore, a collection has not as many documents as the backup."""


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
    else:
        await _check_empty(database)
    await _insert_documents(database, path)
    await _check_counts(database, header)
    await repositories_on(database).indexes.build_missing()
    return header


def _check_versions(header: ArchiveHeader) -> None:
    for collection, version in header.schema_versions.items():
        if version > SCHEMA_VERSIONS.get(collection, version):
            raise ArchiveError(
                f"slotlock {header.slotlock_version} wrote the file, with schema version "
                f"{version} of {collection}: this version of slotlock is too old for it"
            )


async def _check_empty(database: Database) -> None:
    for name in await collection_names(database):
        # A process that was started once leaves only these.
        is_ignored = name in EXCLUDED_COLLECTIONS
        if not is_ignored and await database[name].find_one({}, {"_id": 1}) is not None:
            raise DatabaseNotEmptyError(f"the database has documents in {name}")


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
