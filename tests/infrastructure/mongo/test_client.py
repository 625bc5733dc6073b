"""What is said by a MongoDB that is on its way back says nothing about who asked."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymongo.errors import PyMongoError

from slotlock.devserver.binaries import MONGOD, find_binary
from slotlock.infrastructure.mongo.client import connect, is_unavailable
from tests.support.apps.processes import free_port
from tests.support.polling import eventually


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[str]:
    """A mongod that is up and not yet the member of a replica set that it will be."""
    port = free_port()
    command = [
        find_binary(MONGOD, None),
        MONGOD.data_dir_option[0],
        str(tmp_path),
        "--port",
        str(port),
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, *MONGOD.options], stdout=log, stderr=log)
    yield f"mongodb://127.0.0.1:{port}/?directConnection=true"
    process.kill()
    process.wait()


async def test_a_server_that_knows_no_sessions_yet_is_away(starting: str) -> None:
    client, database = connect(starting)
    reply: list[PyMongoError] = []

    async def answers() -> bool:
        try:
            async with client.start_session() as session:
                await session.with_transaction(
                    lambda session: database["slots"].insert_one({}, session=session)
                )
        except PyMongoError as error:
            reply.append(error)
        return any("Sessions" in str(error) for error in reply)

    await eventually(answers, "a server that is up")
    await client.close()
    assert all(is_unavailable(error) for error in reply), reply
