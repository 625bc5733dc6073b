"""Connects to MongoDB, which is the source of truth, and recognizes when it is unavailable."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import unquote_plus

import pymongo.lock
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from pymongo import AsyncMongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.asynchronous.server import Server
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConnectionFailure,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from slotlock.infrastructure.mongo.concurrency_limiter import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)
from slotlock.infrastructure.mongo.connections.connection_leases import (
    ConnectionLeases,
    JoinedCheckout,
    JoinedReadCheckout,
)
from slotlock.infrastructure.request_deadline import RequestTimeoutError
from slotlock.infrastructure.telemetry import tracing

Document = dict[str, Any]
Database = AsyncDatabase[Document]

# Long enough for an election in a healthy replica set, short enough for a client to wait.
OPERATION_TIMEOUT_MS = 5_000
SELECTION_TIMEOUT_MS = 3_000
# A frozen member is noticed within the sum of these: PyMongo's defaults would take 30 s.
HEARTBEAT_MS = 1_000
CONNECT_TIMEOUT_MS = 2_000
# More connections would slow a rush down, because each has a thread in mongod. The limits below,
# with the batches and the probe, allow fewer concurrent operations than there are connections.
MAX_POOL_SIZE = 40
# Of these, so many remain with the hot commands while they are idle.
MAX_IDLE_LEASES = 8
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
Result = TypeVar("Result")


async def _wait_for(awaitable: Awaitable[Result], timeout_s: float | None) -> Result:
    """Wait in the task of the caller, as `asyncio.wait_for` does since Python 3.12.

    Before, it waited in another task. If the caller was cancelled just when that task got the lock
    of PyMongo's servers or of its pool again, nobody released it: the process was without MongoDB.
    """
    async with asyncio.timeout(timeout_s):
        return await awaitable


pymongo.lock.wait_for = _wait_for  # type: ignore[attr-defined,assignment]


class UtcTimeDecoder(TypeDecoder):
    """Decodes times in UTC, which takes less time than with `tz_aware` and `tzinfo`."""

    @property
    def bson_type(self) -> type[datetime]:
        """The type of times without a zone, as PyMongo decodes them."""
        return datetime

    def transform_bson(self, value: datetime) -> datetime:
        """Return the time with its zone."""
        # A fifth of the time of `replace`.
        return datetime.combine(value.date(), value.time(), UTC)


CODEC_OPTIONS: CodecOptions[Document] = CodecOptions(
    tz_aware=False, type_registry=TypeRegistry([UtcTimeDecoder()])
)
# Leaves times without a zone, for readers of many documents that add it themselves.
WITHOUT_ZONES: CodecOptions[Document] = CodecOptions(tz_aware=False)


class LeasingClient(AsyncMongoClient[Document]):
    """A client of the driver that leases its connections to direct commands, until it is closed.

    It replaces connections from before their server joined its replica set.
    """

    def __init__(self, url: str, *, max_idle_leases: int = MAX_IDLE_LEASES, **options: Any) -> None:
        super().__init__(url, **options)
        self.leases = ConnectionLeases(self, max_idle_leases)

    async def close(self) -> None:
        """End the leases, and close all connections."""
        await self.leases.close()
        await super().close()

    def _checkout(self, server: Server, session: AsyncClientSession | None) -> JoinedCheckout:
        return JoinedCheckout(self, server, session)

    def _conn_from_server(
        self, read_preference: Any, server: Server, session: AsyncClientSession | None
    ) -> JoinedReadCheckout:
        return JoinedReadCheckout(self, server, session, read_preference)


def database_name(url: str) -> str:
    """Return the name of the database that a URL names, as the driver reads it."""
    # `parse_uri` would ask the network about mongodb+srv. A collection may follow the name.
    address, _, _ = url.partition("://")[2].partition("?")
    name, _, _ = unquote_plus(address.partition("/")[2]).partition(".")
    return name or DEFAULT_DATABASE


def app_name(database: str) -> str:
    """Return the name under which MongoDB lists the connections of slotlock to a database."""
    return f"slotlock {database}"


def connect(url: str, name: str | None = None) -> tuple[LeasingClient, Database]:
    """Return the client of the process, and the database that the URL names.

    MongoDB lists its connections under another name if one is given.
    """
    client = LeasingClient(
        url,
        w="majority",
        # An election must not undo what a response says, least of all a booking.
        readConcernLevel="majority",
        retryWrites=True,
        timeoutMS=OPERATION_TIMEOUT_MS,
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        heartbeatFrequencyMS=HEARTBEAT_MS,
        connectTimeoutMS=CONNECT_TIMEOUT_MS,
        maxPoolSize=MAX_POOL_SIZE,
        maxConnecting=MAX_POOL_SIZE,
        appname=name or app_name(database_name(url)),
        event_listeners=tracing.mongo_listeners(),
    )
    return client, client.get_default_database(DEFAULT_DATABASE).with_options(CODEC_OPTIONS)


@asynccontextmanager
async def open_database(url: str, name: str | None = None) -> AsyncIterator[Database]:
    """Open the database that a URL names with a client of its own, as `connect` does."""
    client, database = connect(url, name)
    try:
        yield database
    finally:
        await client.close()


DUPLICATE_KEY = 11000
WRITE_CONFLICT = 112
# The errors of a server that starts, stops, or begins or ends to be primary, for any command.
TRANSIENT_CODES = {
    43: "CursorNotFound",
    91: "ShutdownInProgress",
    94: "NotYetInitialized",
    134: "ReadConcernMajorityNotAvailableYet",
    189: "PrimarySteppedDown",
    262: "ExceededTimeLimit",
    11600: "InterruptedAtShutdown",
    11602: "InterruptedDueToReplStateChange",
    10107: "NotWritablePrimary",
}
UNKNOWN_COMMIT_LABEL = "UnknownTransactionCommitResult"
# Errors that the driver itself retries until its time is over.
TRANSIENT_LABELS = (
    "TransientTransactionError",
    UNKNOWN_COMMIT_LABEL,
    "RetryableWriteError",
)


def error_codes(error: PyMongoError) -> set[int | None]:
    """Return the codes of an error: several for a bulk write, none for an error without a reply."""
    if isinstance(error, BulkWriteError):
        details = error.details
        return {each["code"] for each in details["writeErrors"] + details["writeConcernErrors"]}
    return {error.code} if isinstance(error, OperationFailure) else set()


class IndexMissingError(Exception):
    """A write needs a unique index that is still being built. Nothing was written."""


class ConflictError(Exception):
    """Other changes of the same document were always first. Nothing was written."""


class CommitUnknownError(Exception):
    """MongoDB did not confirm a write in time, so that it may or may not have happened."""


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error says that MongoDB did not respond, and nothing of the request.

    Then the same request may succeed later.
    """
    if isinstance(error, PyMongoError):
        codes = error_codes(error)
        return (
            error.timeout
            or isinstance(error, ConnectionFailure)
            or (bool(codes) and codes <= TRANSIENT_CODES.keys())
            or any(error.has_error_label(label) for label in TRANSIENT_LABELS)
        )
    return isinstance(
        error,
        MongoOverloadedError
        | CommitUnknownError
        | ConflictError
        | IndexMissingError
        | RequestTimeoutError,
    )


def outage_reason(error: BaseException) -> str:
    """Return what is true of an error, for a line of the log.

    Of a server that is frozen, the driver says that it belongs to no replica set, that the set has
    no such member, or that its own operation was cancelled.
    """
    text = str(error)
    if isinstance(error, ServerSelectionTimeoutError):
        text = text.partition(", Topology Description")[0]
        if "named 'None'" in text or text.startswith("No replica set members match"):
            return "no primary of MongoDB responds"
    if isinstance(error, AutoReconnect) and text == "operation cancelled":
        return "MongoDB stopped responding"
    return text


def supports_transactions(hello: Document) -> bool:
    """Return whether a server with this `hello` has transactions.

    A member of a replica set has them, and so has the router (mongos) of a sharded cluster.
    """
    return "setName" in hello or hello.get("msg") == "isdbgrid"


def is_commit_unknown(error: BaseException) -> bool:
    """Return whether MongoDB did not confirm a commit that was sent."""
    if isinstance(error, PyMongoError):
        return error.has_error_label(UNKNOWN_COMMIT_LABEL)
    return isinstance(error, CommitUnknownError)


def may_have_written(error: BaseException) -> bool:
    """Return whether a change that failed with this error may have happened, or may yet happen."""
    if is_commit_unknown(error):
        return True  # also if the driver then found no server that would repeat the commit
    if isinstance(
        error,
        MongoOverloadedError | ConflictError | IndexMissingError | ServerSelectionTimeoutError,
    ):
        return False  # nothing was written
    return is_unavailable(error)


@contextmanager
def after_write() -> Iterator[None]:
    """Report an outage as an unknown outcome in the steps that follow a write.

    Raises:
        CommitUnknownError: MongoDB is unavailable now, and the write has happened.
    """
    try:
        yield
    except Exception as error:
        if is_unavailable(error):
            raise CommitUnknownError("MongoDB became unavailable after a write") from error
        raise


class MongoHealth:
    """Checks whether MongoDB responds, once at a time for all concurrent callers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running_check: asyncio.Task[bool] | None = None

    async def is_available(self, timeout_s: float = 1.0) -> bool:
        """Return whether a primary responds within the time. The check itself is not cancelled."""
        check = self._running_check
        if check is None or check.done():
            check = self._running_check = asyncio.create_task(self._check_primary())
        await asyncio.wait([check], timeout=timeout_s)
        # By now the next caller may have started another check, which is not done.
        return check.done() and not check.cancelled() and check.result()

    async def _check_primary(self) -> bool:
        try:
            return bool((await self._database.command("hello")).get("isWritablePrimary"))
        except PyMongoError:
            return False


class WriteProbe:
    """Checks whether MongoDB accepts writes, which tells a faulty request from an outage.

    write_probes: {_id: "write", at: time of the last probe}, which nothing else uses
    """

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(WRITE_PROBE_CONCURRENCY)
        self._probes = database["write_probes"]

    async def is_writable(self) -> bool:
        """Return whether a write succeeds now; not if MongoDB is full, for example."""
        try:
            await self._write()
        except (PyMongoError, MongoOverloadedError):
            return False
        return True

    @limited
    async def _write(self) -> None:
        now = {"$currentDate": {"at": True}}
        await self._probes.update_one({"_id": "write"}, now, upsert=True)
