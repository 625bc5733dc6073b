"""Runs a function in a transaction of MongoDB."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.infrastructure.mongo.client import OPERATION_TIMEOUT_MS, Database

Result = TypeVar("Result")


async def in_transaction(
    database: Database, write: Callable[[AsyncClientSession], Awaitable[Result]]
) -> Result:
    """Run `write` in a transaction, which stores all or nothing, and return its result.

    `write` runs again after a conflict with another transaction, for at most 5 s in all. Without
    this limit, `with_transaction` would continue for two minutes.
    """
    with timeout(OPERATION_TIMEOUT_MS / 1000):
        async with database.client.start_session() as session:
            return await session.with_transaction(write)
