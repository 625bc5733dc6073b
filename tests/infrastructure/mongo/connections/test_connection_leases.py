"""Direct commands share connections, leave those that failed, and follow the primary."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bson import ObjectId
from pymongo.errors import ConnectionFailure, OperationFailure, ProtocolError, PyMongoError
from pymongo.read_concern import ReadConcern

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import (
    Database,
    Document,
    LeasingClient,
    connect,
    is_unavailable,
    open_database,
)
from slotlock.infrastructure.mongo.commands import find_in_one_batch, run_command
from tests.support.apps.processes import database_url, named_database_url
from tests.support.apps.replica_pair import replica_pair
from tests.support.apps.restartable_servers import restartable_server
from tests.support.polling import eventually, poll_until
from tests.support.stores.mongo_route import routed_database

COUNT = 50


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """Yield a new database with numbered documents."""
    async with open_database(database_url(servers, f"leases{ObjectId()}")) as database:
        await database["items"].insert_many({"_id": n} for n in range(COUNT))
        yield database
        await database.client.drop_database(database.name)


def find_command(number: int, sleep_ms: int = 0) -> Document:
    """Return a command that finds a number, for which MongoDB takes some time."""
    query: Document = {"_id": number}
    if sleep_ms:
        query["$where"] = f"sleep({sleep_ms}) || true"
    return {"find": "items", "filter": query}


async def find_number(database: Database, number: int, sleep_ms: int = 0) -> int:
    """Return the number of the document that was found."""
    reply = await run_command(database, find_command(number, sleep_ms))
    return int(reply["cursor"]["firstBatch"][0]["_id"])


async def connection_id(database: Database) -> int:
    """Return MongoDB's number of the connection of a direct command."""
    return int((await run_command(database, {"hello": 1}))["connectionId"])


async def open_connections(database: Database, name: str) -> int:
    """Return how many connections MongoDB has from the clients with a name."""
    operations: Document = {"$currentOp": {"allUsers": True, "idleConnections": True}}
    by_name: Document = {"$match": {"appName": name}}
    admin = database.client.get_database("admin", read_concern=ReadConcern("local"))
    return len(await (await admin.aggregate([operations, by_name])).to_list())


async def test_commands_one_after_the_other_share_a_connection(database: Database) -> None:
    ids = {await connection_id(database) for _ in range(5)}
    assert len(ids) == 1


async def test_a_command_that_mongodb_rejects_leaves_its_connection_open(
    database: Database,
) -> None:
    before = await connection_id(database)
    with pytest.raises(OperationFailure):
        await run_command(database, {"find": "items", "filter": {"$unknown": 1}})
    assert await connection_id(database) == before


async def test_operations_of_the_driver_get_connections_among_many_direct_commands(
    servers: EmbeddedServers,
) -> None:
    url = database_url(servers, f"leases{ObjectId()}")
    client = LeasingClient(url, max_idle_leases=1, maxPoolSize=2)
    database = client.get_default_database()
    is_over = asyncio.Event()

    async def send_commands() -> None:
        while not is_over.is_set():
            await run_command(database, {"ping": 1})
            # Without a pause, PyMongo serves nobody who waits for a connection.
            await asyncio.sleep(0.001)

    senders = [asyncio.create_task(send_commands()) for _ in range(10)]
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(database.command("ping") for _ in range(100)))
    finally:
        is_over.set()
        await asyncio.gather(*senders)
        await client.close()


async def test_a_lost_connection_fails_its_own_command_only(database: Database) -> None:
    async with routed_database(database) as (_, behind, route):
        await asyncio.gather(*(find_number(behind, n, 20) for n in range(3)))
        others = [asyncio.create_task(find_number(behind, n, 300)) for n in (1, 2)]
        await asyncio.sleep(0.05)
        route.loses = b"to be lost"
        with pytest.raises(ConnectionFailure) as raised:
            await run_command(behind, {"find": "items", "filter": {"_id": "to be lost"}})
        assert is_unavailable(raised.value)
        assert not raised.value.timeout
        assert await asyncio.gather(*others) == [1, 2]
        assert await find_number(behind, 7) == 7


async def test_a_read_is_repeated_after_its_connection_was_lost(database: Database) -> None:
    async with routed_database(database) as (_, behind, route):
        assert await find_in_one_batch(behind["items"], {"_id": 7}, {}, 1) == [{"_id": 7}]
        route.loses = b"batchSize"  # which the cursor does not send
        assert await find_in_one_batch(behind["items"], {"_id": 8}, {}, 1) == [{"_id": 8}]
        assert route.lost.is_set()


async def test_a_reply_that_arrives_in_small_parts_is_whole(database: Database) -> None:
    async def send_in_parts(writer: asyncio.StreamWriter, data: bytes) -> None:
        for start in range(0, len(data), 7):
            writer.write(data[start : start + 7])
            await asyncio.sleep(0)

    async with routed_database(database, send_in_parts) as (_, behind, _):
        reply = await run_command(behind, {"find": "items", "sort": {"_id": 1}})
        assert reply["cursor"]["firstBatch"] == [{"_id": n} for n in range(COUNT)]


async def test_a_reply_that_arrives_twice_reaches_no_other_command(database: Database) -> None:
    async def send_twice(writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data * 2 if b"firstBatch" in data else data)

    async with routed_database(database, send_twice) as (_, behind, _):
        found = []
        for n in range(COUNT):
            try:
                found.append(await find_number(behind, n) - n)
            except (ConnectionFailure, ProtocolError):
                found.append(0)
        assert found == [0] * COUNT


async def test_a_cancelled_command_leaves_its_reply_to_no_other(database: Database) -> None:
    for n in range(0, COUNT, 2):
        cancelled = asyncio.create_task(find_number(database, n, sleep_ms=n // 10))
        for _ in range(n % 7):
            await asyncio.sleep(0.001)
        cancelled.cancel()
        found = await asyncio.gather(*(find_number(database, number) for number in range(n, n + 2)))
        assert found == [n, n + 1]


async def test_no_connection_is_left_after_the_client_was_closed(
    servers: EmbeddedServers, database: Database
) -> None:
    name = f"closed-{ObjectId()}"
    client = LeasingClient(named_database_url(servers, database.name), appname=name)
    behind = client[database.name]
    await asyncio.gather(*(find_number(behind, n, 20) for n in range(12)))
    running = asyncio.create_task(find_number(behind, 1, 300))
    await asyncio.sleep(0.05)
    assert await open_connections(database, name) > 1
    await client.close()
    assert await running == 1

    async def all_closed() -> bool:
        return await open_connections(database, name) == 0

    await eventually(all_closed, "all connections are closed")


async def test_commands_succeed_again_after_mongodb_restarted(tmp_path: Path) -> None:
    with restartable_server(tmp_path / "mongo", "mongod") as mongo:
        async with open_database(mongo.url) as database:
            await asyncio.gather(*(connection_id(database) for _ in range(3)))
            mongo.kill()
            with pytest.raises(PyMongoError) as raised:
                await run_command(database, {"ping": 1})
            assert is_unavailable(raised.value)
            mongo.start()
            # The cursor, as the second attempt, waits until PyMongo has found the server again.
            assert await find_in_one_batch(database["items"], {}, {}, 1) == []
            replies = await asyncio.gather(*(connection_id(database) for _ in range(5)))
            assert len(set(replies)) == 5


async def test_a_primary_that_steps_down_is_left(tmp_path: Path) -> None:
    with replica_pair(tmp_path, can_succeed=True) as pair:
        hosts = [f"127.0.0.1:{server.port}" for server in (pair.primary, pair.secondary)]
        client, database = connect(f"mongodb://{','.join(hosts)}/own?replicaSet=rs0")
        try:
            assert (await run_command(database, {"hello": 1}))["me"] == hosts[0]
            # MongoDB leaves the connections open when it steps down.
            await client.admin.command("replSetStepDown", 60)

            async def server_in_use() -> str:
                """Return the address of the server that replies, or the error."""
                try:
                    # A server that is no longer the primary would reply to this too.
                    return str((await run_command(database, {"hello": 1}))["me"])
                except PyMongoError as error:
                    if not is_unavailable(error):
                        raise
                    return str(error)

            await poll_until(server_in_use, lambda used: used == hosts[1], "the new primary")
            insert: Document = {"insert": "items", "documents": [{}]}
            assert (await run_command(database, insert))["n"] == 1
        finally:
            await client.close()
