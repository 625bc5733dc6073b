"""A crowd at a real server: every step or how far it is, who got what, and what is written."""

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.simulation.model.attempts import AttemptLog
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import SERVE_COMMAND, AppProcess, app_environment, app_process
from tests.support.clients.simulation import SimulationRun, SimulationRunner, replace_environment
from tests.support.queue.tickets import with_own_redis_database

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def simulate(
    monkeypatch: pytest.MonkeyPatch, app: AppProcess, capsys: Capture, tmp_path: Path
) -> SimulationRunner:
    """The command, for the organiser of the app."""
    replace_environment(monkeypatch, app.environment)
    return SimulationRunner(monkeypatch, capsys, tmp_path)


def whole(run: SimulationRun) -> SimulationRun:
    """A run in which everything holds."""
    assert run.exit_code == 0, (run.stdout, run.stderr)
    assert run.broken_invariants == set()
    assert run.stderr == ""
    return run


def test_eight_people_and_four_beds_are_told_step_by_step(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    run = whole(simulate(app.url))
    asked = re.findall(r"^(\w+) asks for (Bed \d)$", run.stdout, re.MULTILINE)
    got = dict(re.findall(r"^(\w+) has (Bed \d)$", run.stdout, re.MULTILINE))
    told = re.findall(r"^(\w+): SlotFull, no place is left$", run.stdout, re.MULTILINE)
    assert Counter(bed for _, bed in asked) == {f"Bed {number}": 2 for number in range(1, 5)}
    assert sorted(got.values()) == ["Bed 1", "Bed 2", "Bed 3", "Bed 4"]
    assert set(got) | set(told) == {name for name, _ in asked}
    for person, bed in got.items():
        assert f"{bed}  1 of 1  {person}" in run.stdout
    assert "Booked 4, SlotFull 4" in run.stdout
    assert run.stdout.count("\nok ") == 8


def test_those_who_wait_are_never_told_locked(simulate: SimulationRunner, app: AppProcess) -> None:
    run = whole(simulate(app.url, "--by", "wait", "--people", "12", "--places", "2"))
    assert run.results["outcomes"] == {"Booked": 8, "SlotFull": 4}
    assert run.results["retries"]["Locked"] == 0


@pytest.fixture(scope="module")
def queueing_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """A process whose queue nobody else serves."""
    settings = app_environment(with_own_redis_database(servers), "queueing_app")
    with forked_app(settings, tmp_path_factory.mktemp("queueing_app")) as running:
        yield running


@pytest.mark.parametrize("asks", ["1", "12"])
def test_those_who_queue_are_answered_over_their_sockets(
    simulate: SimulationRunner, queueing_app: AppProcess, asks: str
) -> None:
    run = whole(
        simulate(
            queueing_app.url, "--by", "queue", "--people", "4", "--slots", "12", "--asks", asks
        )
    )
    assert run.results["outcomes"]["Booked"] == min(12, 4 * int(asks))


def test_of_many_asks_the_progress_is_told_and_not_each_step(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    run = whole(simulate(app.url, "--people", "30", "--slots", "3", "--places", "5", "--asks", "2"))
    assert "asks for" not in run.stdout
    assert "registered 30 of 30" in run.stdout
    assert "asked 60  answered 60  booked 15  places left 0" in run.stdout
    assert "Bed 1  5 of 5  " in run.stdout


def test_more_slots_than_one_subscription_may_name_are_watched(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    run = whole(simulate(app.url, "--people", "3", "--slots", "101", "--asks", "3"))
    assert run.results["timeSeries"][-1]["placesLeft"] == 101 - 5
    assert "and 81 more slots" in run.stdout


def test_the_json_has_the_shape_that_is_written_down(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    results = whole(simulate(app.url, "--seed", "7", "--by", "wait")).results
    assert results["arguments"] == {
        "url": app.url,
        "people": 8,
        "slots": 4,
        "places": 1,
        "asks": 1,
        "by": "wait",
        "seed": 7,
    }
    assert set(results) == {
        *("arguments", "campaignId", "openedAt", "seconds", "requests", "cpuSeconds", "outcomes"),
        *("retries", "firstAnswerMs", "finalAnswerMs", "invariants", "slots", "timeSeries", "asks"),
    }
    assert list(results["finalAnswerMs"]) == ["p50", "p90", "p99", "max"]
    assert results["requests"] == 8
    last = results["timeSeries"][-1]
    assert last["answers"] == {"Booked": 4, "SlotFull": 4}
    assert (last["asked"], last["placesLeft"]) == (8, 0)
    holders = {slot["title"]: slot["holders"] for slot in results["slots"]}
    told = {ask["slot"]: [ask["person"]] for ask in results["asks"] if ask["outcome"] == "Booked"}
    assert holders == told
    assert all(ask["bookingId"] for ask in results["asks"] if ask["outcome"] == "Booked")


def test_a_seed_gives_the_same_order(simulate: SimulationRunner, app: AppProcess) -> None:
    orders = []
    for _ in range(2):
        asks = whole(simulate(app.url, "--seed", "7")).results["asks"]
        orders.append([(ask["person"], ask["slot"]) for ask in asks])
    assert orders[0] == orders[1]


@pytest.mark.parametrize(("name", "begin"), [("rush.svg", b"<?xml"), ("rush.png", b"\x89PNG")])
def test_a_picture_is_drawn(
    simulate: SimulationRunner, app: AppProcess, tmp_path: Path, name: str, begin: bytes
) -> None:
    whole(simulate(app.url, "--people", "2", "--slots", "1", "--plot", str(tmp_path / name)))
    assert (tmp_path / name).read_bytes().startswith(begin)


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for workers in /proc")
def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    simulate: SimulationRunner,
    servers: EmbeddedServers,
    monkeypatch: pytest.MonkeyPatch,
    log_dir: Path,
) -> None:
    command = (*SERVE_COMMAND, "--workers", "2")
    with app_process(app_environment(servers, "one_app"), log_dir, command) as app:
        note_told, told = AttemptLog.record_response, 0

        def kill_at_the_third(self: AttemptLog, *arguments: object) -> int | None:
            nonlocal told
            told += 1
            if told == 3:
                os.kill(children(app.process.pid)[0], signal.SIGKILL)
            return note_told(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(AttemptLog, "record_response", kill_at_the_third)
        run = whole(simulate(app.url, "--people", "40", "--places", "5"))
    assert run.results["outcomes"] == {"Booked": 20, "SlotFull": 20}
    assert run.results["retries"]["dropped connections"] > 0


def children(pid: int) -> list[int]:
    """The workers of a process: those of its children that are no resource tracker."""
    tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(task) for task in tasks if b"spawn_main" in Path(f"/proc/{task}/cmdline").read_bytes()
    ]


def test_it_runs_where_the_settings_say_unless_it_is_told(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from slotlock.cli.main import main

    monkeypatch.setenv("PORT", str(httpx.URL(app.url).port))
    assert main(["simulate", "--people", "1", "--slots", "1"]) == 0
    assert f"at {app.url}" in capsys.readouterr().out
