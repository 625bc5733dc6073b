"""The connection to MongoDB, where the truth lies."""

import asyncio
from datetime import UTC
from typing import Any

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

from slotlock.infrastructure.mongo.concurrency import MongoOverloadedError

Document = dict[str, Any]
Database = AsyncDatabase[Document]

# Long enough for an election on a healthy set, short enough that a caller still waits for it.
OPERATION_TIMEOUT_MS = 5_000
SELECTION_TIMEOUT_MS = 3_000
# More connections make a rush slower: each has a thread in mongod that wants its turn. The gates of
# the stores, with the batches and the probe beside them, let in fewer than there are connections.
MAX_POOL_SIZE = 40
SLOTS_CONCURRENCY = 5
SLOT_LISTS_CONCURRENCY = 3
WRITES_CONCURRENCY = 5
USERS_CONCURRENCY = 3
USER_LISTS_CONCURRENCY = 2
TEAMS_CONCURRENCY = 2
CAMPAIGNS_CONCURRENCY = 2
RESOURCES_CONCURRENCY = 1
IDEMPOTENCY_CONCURRENCY = 1
WRITE_PROBE_CONCURRENCY = 1

DEFAULT_DATABASE = "slotlock"


def connect(url: str) -> "tuple[AsyncMongoClient[Document], Database]":
    """A client for the whole process and the database that the address names."""
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        url,
        w="majority",
        # What is answered must not be undone by an election: "you have a place" least of all.
        readConcernLevel="majority",
        retryWrites=True,
        timeoutMS=OPERATION_TIMEOUT_MS,
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        maxPoolSize=MAX_POOL_SIZE,
        maxConnecting=MAX_POOL_SIZE,
        appname="slotlock",
    )
    options: CodecOptions[Document] = CodecOptions(tz_aware=True, tzinfo=UTC)
    return client, client.get_default_database(DEFAULT_DATABASE).with_options(options)


# What a server says that starts, stops or has just become primary, of whatever it is asked.
TRANSIENT_CODES = {
    91: "ShutdownInProgress",
    94: "NotYetInitialized",
    134: "ReadConcernMajorityNotAvailableYet",
    262: "ExceededTimeLimit",
    11600: "InterruptedAtShutdown",
    11602: "InterruptedDueToReplStateChange",
}
# What the driver says, without a code, while a member of a replica set is not yet one again.
NO_SESSIONS_MESSAGE = "Sessions are not supported"
# What the driver itself tries again, for as long as it was given.
TRANSIENT_LABELS = (
    "TransientTransactionError",
    "UnknownTransactionCommitResult",
    "RetryableWriteError",
)


class CommitUnknownError(Exception):
    """MongoDB did not confirm a write in time, so that it may or may not have happened."""


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error says that MongoDB did not respond, and nothing of the request."""
    if isinstance(error, PyMongoError):
        passing = isinstance(error, OperationFailure) and error.code in TRANSIENT_CODES
        passing = passing or NO_SESSIONS_MESSAGE in str(error)
        labelled = any(error.has_error_label(label) for label in TRANSIENT_LABELS)
        return error.timeout or isinstance(error, ConnectionFailure) or passing or labelled
    return isinstance(error, MongoOverloadedError | CommitUnknownError)


class MongoHealth:
    """Whether MongoDB answers: one question at a time, however many want to know."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running_check: asyncio.Task[bool] | None = None

    async def is_available(self, timeout_s: float = 1.0) -> bool:
        """Whether a primary answers within the time. The question itself is never cancelled."""
        if self._running_check is None or self._running_check.done():
            self._running_check = asyncio.create_task(self._check_primary())
        done, _ = await asyncio.wait([self._running_check], timeout=timeout_s)
        return bool(done) and self._running_check.result()

    async def _check_primary(self) -> bool:
        try:
            return bool((await self._database.command("hello")).get("isWritablePrimary"))
        except PyMongoError:
            return False
