"""Runs a function in a transaction of MongoDB."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import ConfigurationError

from slotlock.infrastructure.mongo.client import (
    NO_SESSIONS_MESSAGE,
    OPERATION_TIMEOUT_MS,
    Database,
)
from slotlock.infrastructure.mongo.connections.leases import discard_connections

Result = TypeVar("Result")


async def in_transaction(
    database: Database, write: Callable[[AsyncClientSession], Awaitable[Result]]
) -> Result:
    """Run `write` in a transaction, which stores all or nothing, and return its result.

    `write` runs again after a conflict with another transaction, for at most 5 s in all. Without
    this limit, `with_transaction` would continue for two minutes.

    A connection that was opened before a restarted member joined its replica set never supports
    transactions, and PyMongo would use it again and again. It is replaced.
    """
    with timeout(OPERATION_TIMEOUT_MS / 1000):
        try:
            return await _run(database, write)
        except ConfigurationError as error:
            if NO_SESSIONS_MESSAGE not in str(error):
                raise
        await discard_connections(database.client)
        return await _run(database, write)


async def _run(
    database: Database, write: Callable[[AsyncClientSession], Awaitable[Result]]
) -> Result:
    async with database.client.start_session() as session:
        return await session.with_transaction(write)
