"""Connections from before their server joined its replica set are closed, and none is missing."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import pytest
from bson import ObjectId
from pymongo.asynchronous.pool import Pool
from pymongo.errors import AutoReconnect

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.user_files.plan import ImportPlan, NewUser
from slotlock.infrastructure.mongo.client import LeasingClient, connect, is_unavailable
from slotlock.infrastructure.mongo.commands import find_in_one_batch, run_command
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.reads.rosters import open_roster_snapshot
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from tests.support.apps.processes import database_url
from tests.support.stores.mongo_route import pool_unjoined_connection

NOW = datetime(2030, 5, 17, tzinfo=UTC)


@pytest.fixture
async def client(servers: EmbeddedServers) -> AsyncIterator[LeasingClient]:
    """Yield a client with a new database."""
    client, database = connect(database_url(servers, f"joined{ObjectId()}"))
    yield client
    await client.drop_database(database.name)
    await client.close()


async def read_roster(client: LeasingClient) -> None:
    """Read the roster of a slot that does not exist, as of one instant."""
    slot_id = SlotId(str(ObjectId()))
    database = client.get_default_database()
    async with open_roster_snapshot(database, slot_id, is_campaign=False) as snapshot:
        assert [page async for page in snapshot.pages()] == []


async def read_in_one_batch(client: LeasingClient) -> None:
    """Read by a direct command, and by a cursor after its error."""
    assert await find_in_one_batch(client.get_default_database()["items"], {}, {}, 1) == []


async def insert(client: LeasingClient) -> None:
    """Insert a document without a transaction."""
    await client.get_default_database()["items"].insert_one({})


def connections_in_use(pool: Pool) -> tuple[int, int, int]:
    """Return what the pool counts of connections, and of operations with or without one."""
    return pool.requests, pool.active_sockets, pool.operation_count


@pytest.mark.parametrize("operation", [read_roster, read_in_one_batch, insert])
async def test_operations_that_may_be_repeated_replace_the_connection(
    client: LeasingClient, operation: Callable[[LeasingClient], Awaitable[None]]
) -> None:
    pool = await pool_unjoined_connection(client)
    (unjoined,) = pool.conns
    await operation(client)
    assert unjoined.closed
    assert [connection.supports_sessions for connection in pool.conns] == [True]
    assert connections_in_use(pool) == (0, 0, 0)


async def test_an_import_of_users_may_be_repeated(client: LeasingClient) -> None:
    imports = Repositories(client.get_default_database()).user_imports
    snapshot = await imports.load_snapshot([])
    plan = ImportPlan((NewUser("ada@example.org", "Ada", ()),), (), 0)
    pool = await pool_unjoined_connection(client)
    attempts = [await imports.commit(plan, snapshot, NOW) for _ in range(2)]
    assert attempts == [ImportAttempt.FAILED, ImportAttempt.WRITTEN]
    assert connections_in_use(pool) == (0, 0, 0)


async def test_no_lease_begins_with_the_connection(client: LeasingClient) -> None:
    database = client.get_default_database()
    pool = await pool_unjoined_connection(client)
    with pytest.raises(AutoReconnect) as raised:
        await run_command(database, {"ping": 1})
    assert is_unavailable(raised.value)
    assert connections_in_use(pool) == (0, 0, 0)
    await run_command(database, {"ping": 1})
