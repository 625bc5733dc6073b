"""Times have their zone; the errors of a MongoDB that starts say that it is unavailable."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bson import decode, encode
from pymongo.errors import PyMongoError

from slotlock.devserver.binaries import MONGOD, find_binary
from slotlock.infrastructure.mongo.client import CODEC_OPTIONS, connect, is_unavailable
from tests.support.apps.processes import free_port
from tests.support.polling import eventually


@pytest.fixture
def starting_server_url(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a running mongod that never becomes a member of its replica set."""
    port = free_port()
    directory = (MONGOD.data_dir_option[0], str(tmp_path))
    command = [find_binary(MONGOD, None), *directory, "--port", str(port), *MONGOD.options]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    yield f"mongodb://127.0.0.1:{port}/?directConnection=true"
    process.kill()
    process.wait()


async def test_a_server_that_has_no_sessions_yet_is_unavailable(starting_server_url: str) -> None:
    client, database = connect(starting_server_url)
    errors: list[PyMongoError] = []

    async def has_no_sessions() -> bool:
        try:
            async with client.start_session() as session:
                await session.with_transaction(
                    lambda session: database["slots"].insert_one({}, session=session)
                )
        except PyMongoError as error:
            errors.append(error)
        return any("Sessions" in str(error) for error in errors)

    await eventually(has_no_sessions, "a server that responds without sessions")
    await client.close()
    assert all(is_unavailable(error) for error in errors), errors


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
