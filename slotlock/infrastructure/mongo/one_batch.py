"""Reads whose result fits into one reply, sent as commands.

A command costs the process a sixth less CPU time than a cursor of the driver. The driver does not
repeat a command that fails because a server stops, but it repeats the read of a cursor until its
time is over. Therefore a cursor is the second attempt.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from bson import decode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import timeout
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError

from slotlock.infrastructure.mongo.client import (
    CODEC_OPTIONS,
    OPERATION_TIMEOUT_MS,
    Document,
    is_unavailable,
)

# The driver would decode times without a zone, because it ignores decoders of types in replies.
RAW_REPLY: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)

Collection = AsyncCollection[Document]


async def find_in_one_batch(
    collection: Collection,
    query: Document,
    projection: Document,
    max_count: int,
    sort: Mapping[str, int] | None = None,
) -> list[Document]:
    """Return the first `max_count` documents that a query finds.

    Raises:
        PyMongoError: MongoDB rejected the query, or is unavailable.
    """
    # One more than there are, or MongoDB would not always know that it has reached the end.
    command: Document = {
        "find": collection.name,
        "filter": query,
        "projection": projection,
        "limit": max_count,
        "batchSize": max_count + 1,
    }
    if sort is not None:
        command["sort"] = sort
    order = None if sort is None else list(sort.items())

    async def find_by_cursor() -> list[Document]:
        return await collection.find(query, projection, limit=max_count, sort=order).to_list()

    return await _read(collection, command, find_by_cursor)


async def aggregate_in_one_batch(
    collection: Collection, pipeline: Sequence[Document], max_count: int
) -> list[Document]:
    """Return the documents of a pipeline, which are at most `max_count`.

    Raises:
        PyMongoError: MongoDB rejected the pipeline, or is unavailable.
    """
    cursor = {"batchSize": max_count + 1}
    command: Document = {"aggregate": collection.name, "pipeline": pipeline, "cursor": cursor}

    async def aggregate_by_cursor() -> list[Document]:
        return await (await collection.aggregate(pipeline)).to_list()

    return await _read(collection, command, aggregate_by_cursor)


async def _read(
    collection: Collection,
    command: Document,
    read_by_cursor: Callable[[], Awaitable[list[Document]]],
) -> list[Document]:
    command["readConcern"] = collection.read_concern.document
    with timeout(OPERATION_TIMEOUT_MS / 1000):  # for both attempts
        try:
            reply = await collection.database.command(command, codec_options=RAW_REPLY)
        except PyMongoError as error:
            if error.timeout or not is_unavailable(error):
                raise
        else:
            cursor = decode(reply.raw, CODEC_OPTIONS)["cursor"]
            if cursor["id"] == 0:
                return list(cursor["firstBatch"])
            # The result is larger than a reply may be.
            kill: Document = {"killCursors": collection.name, "cursors": [cursor["id"]]}
            await collection.database.command(kill)
        return await read_by_cursor()
