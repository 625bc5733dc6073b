"""Databases without documents. To build the indexes of a new one takes 0.3 s of CPU time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import open_database
from tests.support.apps.processes import database_url

_unused: list[str] = []


@asynccontextmanager
async def empty_database(servers: EmbeddedServers) -> AsyncIterator[str]:
    """Yield the URL of a database without documents, and delete its documents at the end."""
    name = _unused.pop() if _unused else f"empty{ObjectId()}"
    url = database_url(servers, name)
    yield url
    async with open_database(url) as database:
        for collection in await database.list_collection_names():
            await database[collection].delete_many({})
    _unused.append(name)
