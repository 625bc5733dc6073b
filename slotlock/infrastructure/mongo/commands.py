"""Commands on connections of the driver, with less work for each than the driver does.

PyMongo selects the server, opens, authenticates and closes the connections, and learns of their
errors. For each command it takes a connection from its pool and returns it, starts two tasks that
wait for the reply, and maintains a session: without these, a command costs the process a third of
the CPU time. Such a command is never sent twice. A read whose result fits into one reply is such a
command. If it fails because a server stops, a cursor is the second attempt: the driver repeats the
read of a cursor until its time is over.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from bson import ObjectId, decode, encode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import timeout
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError
from pymongo.helpers_shared import _check_command_response

from slotlock.infrastructure.mongo.client import (
    CODEC_OPTIONS,
    Database,
    Document,
    LeasingClient,
    is_unavailable,
)

# The driver would decode times without a zone, because it ignores decoders of types in replies.
RAW_REPLY: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
Collection = AsyncCollection[Document]
Found = TypeVar("Found")

# The size of the reply if the number of documents is not limited.
LARGE_BATCH = 10_000


async def run_command(
    database: Database, command: Document, codec_options: CodecOptions[Document] = CODEC_OPTIONS
) -> Document:
    """Send a command to the primary and return its reply.

    It takes the time that `pymongo.timeout` leaves, in MongoDB too. A client with listeners leaves
    the command to the driver, which notifies them; so does one without leases.

    Raises:
        PyMongoError: MongoDB rejected the command, or is unavailable.
    """
    client = database.client
    if not isinstance(client, LeasingClient) or client.options.event_listeners:
        raw_reply = await database.command(command, codec_options=RAW_REPLY)
        return decode(raw_reply.raw, codec_options)
    lease = await client.leases.acquire(next(iter(command)))
    try:
        timeout_s = lease.apply_timeout(command)
        document = encode({**command, "$db": database.name})
        reply = decode(await lease.exchange(document, timeout_s), codec_options)
        if reply["ok"] != 1:
            _check_command_response(reply, lease.max_wire_version)
    except BaseException as error:
        await lease.end(error)
        raise
    await client.leases.release(lease)
    return reply


async def find_in_one_batch(
    collection: Collection,
    query: Document,
    projection: Document,
    max_count: int | None = None,
    sort: Mapping[str, int] | None = None,
    hint: str | None = None,
    codec_options: CodecOptions[Document] = CODEC_OPTIONS,
) -> list[Document]:
    """Return the first `max_count` documents that a query finds, or all of them.

    MongoDB uses the index that `hint` names. A second attempt decodes times with their zone.

    Raises:
        PyMongoError: MongoDB rejected the query, or is unavailable.
    """
    limit = max_count or 0  # MongoDB's word for no limit
    command: Document = {
        "find": collection.name,
        "filter": query,
        "projection": projection,
        "limit": limit,
        # One more than there are, or MongoDB would not always know that it has reached the end.
        "batchSize": (limit or LARGE_BATCH) + 1,
    }
    if sort is not None:
        command["sort"] = sort
    if hint is not None:
        command["hint"] = hint
    order = None if sort is None else list(sort.items())

    async def find_by_cursor() -> list[Document]:
        found = collection.find(query, projection, limit=limit, sort=order, hint=hint)
        return await found.to_list()

    return await _read(collection, command, find_by_cursor, codec_options)


async def aggregate_in_one_batch(
    collection: Collection,
    pipeline: Sequence[Document],
    max_count: int,
    codec_options: CodecOptions[Document] = CODEC_OPTIONS,
) -> list[Document]:
    """Return the documents of a pipeline, which are at most `max_count`, as the other function.

    Raises:
        PyMongoError: MongoDB rejected the pipeline, or is unavailable.
    """
    cursor = {"batchSize": max_count + 1}
    command: Document = {"aggregate": collection.name, "pipeline": pipeline, "cursor": cursor}

    async def aggregate_by_cursor() -> list[Document]:
        return await (await collection.aggregate(pipeline)).to_list()

    return await _read(collection, command, aggregate_by_cursor, codec_options)


async def _read(
    collection: Collection,
    command: Document,
    read_by_cursor: Callable[[], Awaitable[list[Document]]],
    codec_options: CodecOptions[Document],
) -> list[Document]:
    command["readConcern"] = collection.read_concern.document
    with timeout(collection.database.client.options.timeout):  # for both attempts
        try:
            reply = await run_command(collection.database, command, codec_options)
        except PyMongoError as error:
            if error.timeout or not is_unavailable(error):
                raise
        else:
            cursor = reply["cursor"]
            if cursor["id"] == 0:
                return list(cursor["firstBatch"])
            # The result is larger than a reply may be.
            kill: Document = {"killCursors": collection.name, "cursors": [cursor["id"]]}
            await collection.database.command(kill)
        return await read_by_cursor()


async def find_each(
    collection: Collection,
    ids: Sequence[str],
    convert: Callable[[Document], Found],
    projection: Mapping[str, int] | None = None,
) -> list[Found | None]:
    """Return what the documents with these ids describe, in order; None where there is none."""
    query = {"_id": {"$in": [ObjectId(id_) for id_ in set(ids)]}}
    documents = collection.find(query, projection)
    found = {str(document["_id"]): convert(document) async for document in documents}
    return [found.get(id_) for id_ in ids]
