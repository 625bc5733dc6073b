"""A command does not wait for a frozen server until its own timeout."""

from collections.abc import Iterator

import pytest
from pymongo import timeout
from pymongo.errors import ConnectionFailure

from slotlock.infrastructure.mongo import client
from slotlock.infrastructure.mongo.client import connect, outage_reason
from slotlock.infrastructure.mongo.commands import run_command
from tests.support.apps.restartable_servers import RestartableServer, restartable_server

# Longer than PyMongo's monitor takes to notice a frozen server.
LONG_S = 60.0
SHORT_S = 1.0


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """Yield a mongod that tests freeze."""
    with restartable_server(tmp_path_factory.mktemp("frozen") / "mongo", "mongo") as server:
        yield server


async def fail_while_frozen(mongo: RestartableServer, timeout_s: float) -> ConnectionFailure:
    """Return the error of a command to a server that froze after the connection was leased."""
    opened, database = connect(mongo.url)
    await run_command(database, {"ping": 1})
    mongo.pause()
    try:
        with pytest.raises(ConnectionFailure) as raised, timeout(timeout_s):
            await run_command(database, {"ping": 1})
    finally:
        mongo.resume()
    assert await run_command(database, {"ping": 1})
    await opened.close()
    return raised.value


async def test_a_command_to_a_frozen_server_fails_before_its_timeout(
    mongo: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HEARTBEAT_MS", 500)
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_MS", 500)
    error = await fail_while_frozen(mongo, LONG_S)
    assert not error.timeout


async def test_the_reason_of_an_outage_is_not_that_a_frozen_server_has_left_its_replica_set(
    mongo: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HEARTBEAT_MS", 500)
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_MS", 500)
    mongo.pause()
    opened, database = connect(mongo.url)
    try:
        with pytest.raises(ConnectionFailure) as raised, timeout(2 * SHORT_S):
            await database.command("ping")
    finally:
        mongo.resume()
        await opened.close()
    assert outage_reason(raised.value) == "no primary of MongoDB responds"


async def test_control_with_the_heartbeat_of_the_driver_it_waits_for_its_timeout(
    mongo: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HEARTBEAT_MS", 10_000)
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_MS", 20_000)
    error = await fail_while_frozen(mongo, SHORT_S)
    assert error.timeout
