"""The clock of decisions follows the primary and never goes back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, time

import pytest
from pymongo.errors import NotPrimaryError

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import connect, open_database
from slotlock.infrastructure.mongo.clock import (
    MAX_SAMPLES,
    ClockSample,
    MongoClock,
    measure,
    mongo_clock,
    primary_time_s,
)
from tests.support.apps.processes import database_url
from tests.support.apps.restartable_servers import restartable_server

SECOND = timedelta(seconds=1)


def sample(ahead_s: float, round_trip_s: float = 0.001) -> ClockSample:
    """Return a measurement of a server that is ahead of this host, read when it responded."""
    received_s = monotonic()
    return ClockSample(time() + ahead_s, received_s - round_trip_s, received_s)


def ahead_of_host(now: datetime) -> float:
    return now.timestamp() - time()


@pytest.mark.parametrize("skew_s", [60.0, -60.0, 1.5])
async def test_a_wrong_or_stepped_host_clock_changes_nothing(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch, skew_s: float
) -> None:
    async with (
        open_database(database_url(servers, "clock")) as database,
        mongo_clock(database, 2.0) as clock,
    ):
        before = clock.now()
        monkeypatch.setattr("slotlock.infrastructure.mongo.clock.time", lambda: time() + skew_s)
        clock.add(await measure(database))
        assert before <= clock.now() < before + 5 * SECOND
        hello = await database.command("hello")
        assert before <= hello["localTime"].replace(tzinfo=UTC)
        assert abs(clock.skew_s - skew_s) < 1


def test_a_server_clock_that_is_ahead_counts_at_once() -> None:
    clock = MongoClock(sample(0), 2.0)
    clock.add(sample(60))
    assert abs(ahead_of_host(clock.now()) - 60) < 1


def test_time_stands_still_while_the_server_clock_is_behind() -> None:
    clock = MongoClock(sample(0), 2.0)
    before = clock.now()
    clock.add(sample(-60))
    assert clock.now() == before


def test_the_sample_with_the_shortest_round_trip_counts() -> None:
    clock = MongoClock(sample(0), 2.0)
    clock.add(sample(-0.4, round_trip_s=0.5))
    assert abs(ahead_of_host(clock.now())) < 0.1


def test_a_step_of_the_server_clock_is_logged_and_a_long_round_trip_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = MongoClock(sample(0), 2.0)
    for _ in range(MAX_SAMPLES):
        clock.add(sample(-0.4, round_trip_s=0.5))
    assert not caplog.records
    clock.add(sample(-1.5))
    assert [record.message.split(" by ")[0] for record in caplog.records] == [
        "MongoDB's clock went back"
    ]


def test_skew_is_logged_once_per_change(caplog: pytest.LogCaptureFixture) -> None:
    clock = MongoClock(sample(-60), 2.0)
    for _ in range(3):
        clock.add(sample(-60))
    assert len(caplog.records) == 1
    clock.add(sample(0))
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    "role", [{"isWritablePrimary": True}, {"isWritablePrimary": False, "msg": "isdbgrid"}]
)
def test_the_time_of_a_primary_or_a_mongos_counts(role: dict[str, object]) -> None:
    read = datetime(2030, 1, 1)  # noqa: DTZ001 - as the driver decodes it
    expected_s = read.replace(tzinfo=UTC).timestamp()
    assert primary_time_s({**role, "localTime": read}) == expected_s


async def test_the_time_of_a_member_that_is_not_the_primary_is_ignored(tmp_path: Path) -> None:
    with restartable_server(tmp_path / "member", "mongod") as member:
        client, database = connect(member.url)
        try:
            assert abs(ahead_of_host(MongoClock(await measure(database), 2.0).now())) < 1
            await client.admin.command("replSetStepDown", 60, force=True)
            with pytest.raises(NotPrimaryError):
                await measure(database)
        finally:
            await client.close()
