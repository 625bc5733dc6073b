"""Direct commands have the replies and the errors of the driver, and share its connections."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from bson import ObjectId
from pymongo import timeout
from pymongo.errors import ExecutionTimeout, NetworkTimeout, OperationFailure

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import (
    CODEC_OPTIONS,
    Database,
    Document,
    LeasingClient,
    open_database,
)
from slotlock.infrastructure.mongo.commands import run_command
from tests.support.apps.processes import database_url

AT = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
COUNT = 200
# Blocks its connection in MongoDB for a while.
SLOW_FILTER: Document = {"$where": "sleep(300) || true"}


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """Yield a new database with numbered documents, through a client with two connections."""
    url = database_url(servers, f"direct{ObjectId()}")
    client = LeasingClient(url, max_idle_leases=1, w="majority", maxPoolSize=2)
    database = client.get_default_database().with_options(CODEC_OPTIONS)
    await database["items"].insert_many({"_id": n, "at": AT} for n in range(COUNT))
    yield database
    await client.drop_database(database.name)
    await client.close()


def find_command(number: int) -> Document:
    """Return a command that finds the document with a number."""
    return {"find": "items", "filter": {"_id": number}, "limit": 1}


async def find_number(database: Database, number: int) -> int:
    """Return the number of the document that was found."""
    reply = await run_command(database, find_command(number))
    return int(reply["cursor"]["firstBatch"][0]["_id"])


async def test_a_reply_is_that_of_the_driver_but_has_times_in_utc(database: Database) -> None:
    reply = await run_command(database, find_command(1))
    expected = await database.command(find_command(1))
    assert reply["ok"] == expected["ok"] == 1
    assert reply["cursor"]["id"] == expected["cursor"]["id"] == 0
    assert reply["cursor"]["firstBatch"] == [{"_id": 1, "at": AT}]


async def test_concurrent_commands_have_their_own_replies(database: Database) -> None:
    numbers = await asyncio.gather(*(find_number(database, n) for n in range(COUNT)))
    assert numbers == list(range(COUNT))


async def test_a_command_that_is_cancelled_leaves_its_reply_to_no_other(
    database: Database,
) -> None:
    for n in range(0, COUNT, 2):
        cancelled = asyncio.create_task(find_number(database, n))
        for _ in range(n % 20):
            await asyncio.sleep(0)
        cancelled.cancel()
        assert await find_number(database, n + 1) == n + 1


async def test_an_error_is_that_of_the_driver(database: Database) -> None:
    command: Document = {"find": "items", "filter": {"$unknown": 1}}
    with pytest.raises(OperationFailure) as expected:
        await database.command(command)
    with pytest.raises(OperationFailure) as raised:
        await run_command(database, command)
    assert raised.value.code == expected.value.code
    assert await find_number(database, 7) == 7


async def test_a_command_ends_in_mongodb_too_when_its_time_is_over(database: Database) -> None:
    slow: Document = {"find": "items", "filter": SLOW_FILTER}
    with timeout(2), pytest.raises((ExecutionTimeout, NetworkTimeout)) as raised:
        await run_command(database, slow)
    assert raised.value.timeout
    assert 0 < slow["maxTimeMS"] <= 2000
    assert await find_number(database, 7) == 7


async def test_a_client_with_default_settings_sends_direct_commands(
    servers: EmbeddedServers,
) -> None:
    async with open_database(database_url(servers, "direct_ping")) as database:
        assert (await run_command(database, {"ping": 1}))["ok"] == 1
