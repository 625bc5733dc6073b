"""The connection to MongoDB, where the truth lies."""

import asyncio
from datetime import UTC
from typing import Any

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import ConnectionFailure, PyMongoError

Document = dict[str, Any]
Database = AsyncDatabase[Document]

# Long enough for an election on a healthy set, short enough that a caller still waits for it.
OPERATION_TIMEOUT_MS = 5_000
SELECTION_TIMEOUT_MS = 3_000
# More connections make a rush slower: each has a thread in mongod that wants its turn.
LARGEST_POOL = 32

DEFAULT_DATABASE = "slotlock"


def connect(url: str) -> "tuple[AsyncMongoClient[Document], Database]":
    """A client for the whole process and the database that the address names."""
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        url,
        w="majority",
        retryWrites=True,
        timeoutMS=OPERATION_TIMEOUT_MS,
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        maxPoolSize=LARGEST_POOL,
        appname="slotlock",
    )
    options: CodecOptions[Document] = CodecOptions(tz_aware=True, tzinfo=UTC)
    return client, client.get_default_database(DEFAULT_DATABASE).with_options(options)


def is_away(error: BaseException) -> bool:
    """Whether an error only says that MongoDB did not answer, and nothing about the caller."""
    return (isinstance(error, PyMongoError) and error.timeout) or isinstance(
        error, ConnectionFailure
    )


async def answers(database: Database, within_s: float = 1.0) -> bool:
    """Whether a primary answers within the time."""
    try:
        async with asyncio.timeout(within_s):
            hello = await database.command("hello")
            return bool(hello.get("isWritablePrimary"))
    except (PyMongoError, TimeoutError):
        return False
