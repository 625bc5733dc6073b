"""Databases without documents. To build the indexes of a new one takes 0.3 s of CPU time.

A test that changes indexes or validators has to drop its database.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pymongo import MongoClient
from pymongo.database import Database

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.indexes.index_builder import IndexBuilder
from tests.support.apps.processes import (
    lent_databases,
    named_database_url,
    take_database,
    unused_databases,
)

# The URLs of databases that have all indexes.
_indexed = set[str]()


@contextmanager
def empty_database(servers: EmbeddedServers) -> Iterator[str]:
    """Yield the URL of a database without documents, and delete its documents at the end."""
    name = take_database()
    yield named_database_url(servers, name)
    _reuse(servers.mongo_url, name)


def reuse_databases() -> None:
    """Let the next module use the databases of the one that ended."""
    while lent_databases:
        (mongo_url, _), name = lent_databases.popitem()
        _reuse(mongo_url, name)


def _reuse(mongo_url: str, name: str) -> None:
    if delete_documents(_client(mongo_url)[name]):
        unused_databases.append(name)


@cache
def _client(mongo_url: str) -> MongoClient[Document]:
    # It ends with the process. To close it, its server would have to run still.
    return MongoClient[Document](mongo_url, w="majority")


def stored_database(mongo_url: str) -> Database[Document]:
    """Return a database as a client beside the app sees it."""
    return _client(mongo_url).get_default_database()


def delete_documents(database: Database[Document], retained: str = "") -> bool:
    """Delete all documents, except in one collection. Return False if there is no other.

    One command finds the few of forty collections that have some.
    """
    parts = [
        {"$unionWith": {"coll": name, "pipeline": [{"$limit": 1}, {"$set": {"in": name}}]}}
        for name in database.list_collection_names()
        if name != retained
    ]
    if parts:
        found = database.aggregate([{"$documents": []}, *parts, {"$project": {"in": 1}}])
        for name in [each["in"] for each in found]:
            database[name].delete_many({})
    return bool(parts)


async def build_indexes(url: str, indexes: IndexBuilder) -> None:
    """Build the indexes of a database. To find that none is missing takes 0.04 s each time."""
    if url not in _indexed:
        await indexes.build_missing()
        _indexed.add(url)
