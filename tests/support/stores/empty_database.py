"""Databases without documents. To build the indexes of a new one takes 0.3 s of CPU time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from bson import ObjectId
from pymongo import MongoClient
from pymongo.database import Database

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.indexes.index_builder import IndexBuilder
from tests.support.apps.processes import database_url

_unused: list[str] = []
# The URLs of databases that have all indexes.
_indexed = set[str]()


@asynccontextmanager
async def empty_database(servers: EmbeddedServers) -> AsyncIterator[str]:
    """Yield the URL of a database without documents, and delete its documents at the end."""
    name = _unused.pop() if _unused else f"empty{ObjectId()}"
    yield database_url(servers, name)
    delete_documents(_client(servers.mongo_url)[name])
    _unused.append(name)


@cache
def _client(mongo_url: str) -> MongoClient[Document]:
    # It ends with the process. To close it, its server would have to run still.
    return MongoClient[Document](mongo_url, w="majority")


def delete_documents(database: Database[Document]) -> None:
    """Delete all documents. One command finds the few of forty collections that have some."""
    parts = [
        {"$unionWith": {"coll": name, "pipeline": [{"$limit": 1}, {"$set": {"in": name}}]}}
        for name in database.list_collection_names()
    ]
    if parts:  # or there is no database
        found = database.aggregate([{"$documents": []}, *parts, {"$project": {"in": 1}}])
        for name in [each["in"] for each in found]:
            database[name].delete_many({})


async def build_indexes(url: str, indexes: IndexBuilder) -> None:
    """Build the indexes of a database. To find that none is missing takes 0.04 s each time."""
    if url not in _indexed:
        await indexes.build_missing()
        _indexed.add(url)
