"""Times have their zone; the errors of a MongoDB that starts say that it is unavailable."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bson import decode, encode
from pymongo import AsyncMongoClient
from pymongo.errors import BulkWriteError, PyMongoError

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import (
    CODEC_OPTIONS,
    Database,
    Document,
    MongoHealth,
    app_name,
    connect,
    is_unavailable,
)
from tests.support.apps.processes import database_url
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.polling import eventually


@pytest.fixture
def unjoined_server(tmp_path: Path) -> Iterator[RestartableServer]:
    """Yield a running mongod that is not a member of its replica set yet."""
    server = RestartableServer(tmp_path / "mongo", "mongod")
    server.launch()
    yield server
    server.kill()


async def test_a_server_is_unavailable_until_it_has_joined_its_replica_set(
    unjoined_server: RestartableServer,
) -> None:
    url = f"mongodb://127.0.0.1:{unjoined_server.port}/?directConnection=true"
    client, database = connect(url)
    errors: list[PyMongoError] = []

    async def read_snapshot() -> Document | None:
        async with client.start_session(snapshot=True) as session:
            return await database["slots"].find_one({}, session=session)

    async def is_rejected() -> bool:
        try:
            await read_snapshot()
        except PyMongoError as error:
            errors.append(error)
        return any("not joined" in str(error) for error in errors)

    await eventually(is_rejected, "a server that responds without sessions")
    assert all(is_unavailable(error) for error in errors), errors
    await asyncio.to_thread(unjoined_server.wait_until_writable)
    await database["slots"].insert_one({"_id": 1})
    assert await read_snapshot() == {"_id": 1}
    await client.close()


@pytest.mark.parametrize(
    ("write_codes", "concern_codes", "expected"),
    [
        ((), (11602,), True),
        ((11600, 189), (), True),
        ((11000,), (), False),
        ((11000,), (91,), False),
    ],
)
def test_a_bulk_write_is_unavailable_if_all_its_errors_are(
    write_codes: tuple[int, ...], concern_codes: tuple[int, ...], *, expected: bool
) -> None:
    errors = {"writeErrors": write_codes, "writeConcernErrors": concern_codes}
    details = {key: [{"code": code} for code in codes] for key, codes in errors.items()}
    assert is_unavailable(BulkWriteError(details)) is expected


async def profiled_concerns(database: Database) -> list[Document]:
    """Return the write concern of an insertion and the read concern of a query, as sent."""
    await database.drop_collection("system.profile")
    await database.command("profile", 2)
    await database["items"].insert_one({})
    await database["items"].find_one()
    await database.command("profile", 0)
    insertion = await database["system.profile"].find_one({"op": "insert"})
    query = await database["system.profile"].find_one({"command.find": "items"})
    assert insertion is not None
    assert query is not None
    return [insertion["command"].get("writeConcern"), query["command"].get("readConcern")]


async def test_options_of_the_address_do_not_weaken_the_concerns(servers: EmbeddedServers) -> None:
    weak = "w=1&readConcernLevel=local&retryWrites=false"
    url = f"{database_url(servers, 'weak_options')}&{weak}"
    client, database = connect(url)
    assert await profiled_concerns(database) == [{"w": "majority"}, {"level": "majority"}]
    assert client.options.retry_writes
    # A client without overrides sends what the address says.
    plain = AsyncMongoClient[Document](url)
    plain_database = plain.get_default_database()
    assert await profiled_concerns(plain_database) == [{"w": 1}, {"level": "local"}]
    await client.drop_database(database.name)
    for each in (client, plain):
        await each.close()


@pytest.mark.parametrize(
    "instant",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2030, 5, 17, 14, 0, 0, 123_000, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    ],
)
def test_times_are_read_in_utc_with_milliseconds(instant: datetime) -> None:
    found = decode(encode({"at": instant, "list": [{"at": instant}]}), CODEC_OPTIONS)
    times = [found["at"], found["list"][0]["at"]]
    assert times == [instant, instant]
    assert all(each.tzinfo is UTC for each in times)


async def test_a_probe_has_the_result_of_its_check_although_the_next_check_has_begun(
    servers: EmbeddedServers,
) -> None:
    client, database = connect(database_url(servers, "health"))
    health = MongoHealth(database)
    first = asyncio.create_task(health.is_available(20.0))
    await asyncio.sleep(0)
    assert health._running_check is not None
    await health._running_check  # continues before the probe that waits for it
    assert await health.is_available(20.0)
    assert await first
    await client.close()


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://user:p#x@host/named",
        "mongodb://user:p%2Fx@host/named.collection?w=1",
        "mongodb://host/na%2Dmed?appName=other/x",
        "mongodb://host",
    ],
)
async def test_mongodb_lists_connections_with_the_database_that_the_driver_uses(url: str) -> None:
    client, database = connect(url)
    application = client.options.pool_options.metadata["application"]
    assert application == {"name": app_name(database.name)}
    await client.close()
