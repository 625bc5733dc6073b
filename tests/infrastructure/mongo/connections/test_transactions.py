"""Transactions work again after a member of the replica set was restarted."""

from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.transactions import in_transaction
from tests.support.apps.processes import database_url
from tests.support.stores.mongo_route import pool_unjoined_connection


async def test_a_connection_from_before_its_member_joined_is_replaced(
    servers: EmbeddedServers,
) -> None:
    client, database = connect(database_url(servers, "joined"))
    items = database["items"]

    async def write(session: AsyncClientSession) -> int:
        await items.insert_one({}, session=session)
        return await items.count_documents({}, session=session)

    await pool_unjoined_connection(client)
    assert [await in_transaction(database, write) for _ in range(2)] == [1, 2]
    await client.drop_database(database.name)
    await client.close()
