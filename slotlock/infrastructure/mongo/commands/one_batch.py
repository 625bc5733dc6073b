"""Reads whose result fits into one reply, sent as commands.

A command costs the process less than half the CPU time of a cursor of the driver. It is not
repeated if it fails because a server stops, but the driver repeats the read of a cursor until its
time is over. Therefore a cursor is the second attempt.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from pymongo import timeout
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError

from slotlock.infrastructure.mongo.client import Document, is_unavailable
from slotlock.infrastructure.mongo.commands.direct_commands import run_command

Collection = AsyncCollection[Document]

# The size of the reply if the number of documents is not limited.
LARGE_BATCH = 10_000


async def find_in_one_batch(
    collection: Collection,
    query: Document,
    projection: Document,
    max_count: int | None = None,
    sort: Mapping[str, int] | None = None,
    hint: str | None = None,
) -> list[Document]:
    """Return the first `max_count` documents that a query finds, or all of them.

    MongoDB uses the index that `hint` names.

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
    with timeout(collection.database.client.options.timeout):  # for both attempts
        try:
            reply = await run_command(collection.database, command)
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
