"""Connections from before their server joined its replica set."""

from pymongo import ReadPreference
from pymongo.asynchronous.pool import Pool

from slotlock.infrastructure.mongo.client import LeasingClient


async def pool_unjoined_connection(client: LeasingClient) -> Pool:
    """Let the pool of the primary lend such a connection next. Return the pool."""
    server = await client._select_server(ReadPreference.PRIMARY, None, "test")
    async with client._checkout(server, None) as connection:
        # What PyMongo notes when the member does not know its replica set yet.
        connection.supports_sessions = False
    return server.pool
