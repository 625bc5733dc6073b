"""Simulated users at a real server: steps, progress, rosters and result files."""

import asyncio
import json
import os
import re
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from slotlock.api.middleware.load_shedding import OVERLOADED_RESPONSE
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.simulation.client.http import GraphQLClient, open_http, to_error
from slotlock.simulation.model.attempts import AttemptLog, BookingAttempt
from slotlock.simulation.model.plan import NoResponseError
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import SERVE_COMMAND, AppProcess, app_environment, app_process
from tests.support.cli.command_line import replace_environment
from tests.support.cli.simulation import SimulationRun, SimulationRunner
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.exports import create_resources
from tests.support.queue.deployment import with_own_redis_database

NODE = """query($id: ID!) { node(id: $id) {
  ... on Slot { version status } ... on Campaign { published }
} }"""
ROSTER_USERS = "query($slot: ID!) { slotRoster(slotId: $slot) { nodes { user { erased } } } }"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def simulate(
    monkeypatch: pytest.MonkeyPatch, app: AppProcess, capsys: Capture, tmp_path: Path
) -> SimulationRunner:
    """Return a runner of the command that signs in as the admin of the app."""
    replace_environment(monkeypatch, app.environment)
    return SimulationRunner(monkeypatch, capsys, tmp_path)


def passed(run: SimulationRun) -> SimulationRun:
    """Return a run after checking that every promise holds."""
    assert run.exit_code == 0, (run.stdout, run.stderr)
    assert run.broken_invariants == set()
    assert run.stderr == ""
    return run


def test_eight_users_and_four_beds_are_printed_step_by_step(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    run = passed(simulate(app.url))
    requested = re.findall(r"^(\w+) requests (Bed \d)$", run.stdout, re.MULTILINE)
    booked = dict(re.findall(r"^(\w+) has (Bed \d)$", run.stdout, re.MULTILINE))
    refused = re.findall(r"^(\w+): SlotFull, no place is left$", run.stdout, re.MULTILINE)
    assert Counter(bed for _, bed in requested) == {f"Bed {number}": 2 for number in range(1, 5)}
    assert sorted(booked.values()) == ["Bed 1", "Bed 2", "Bed 3", "Bed 4"]
    assert set(booked) | set(refused) == {name for name, _ in requested}
    for name, bed in booked.items():
        assert f"{bed}  1 of 1  {name}" in run.stdout
    assert "Booked 4, SlotFull 4" in run.stdout
    assert run.stdout.count("\nok ") == 8


async def test_a_campaign_is_rehearsed_with_a_copy_that_is_hidden_afterwards(
    simulate: SimulationRunner,
    app: AppProcess,
    organizer: BookingClient,
    anonymous: GraphQLTestClient,
) -> None:
    name = f"Term {secrets.token_hex(4)}"
    rules = {"eligibleGroups": [["5a", "5b"]], "groupLimits": [{"group": "5*", "limit": 1}]}
    campaign = await create_campaign(organizer, name=name, published=False, **rules)
    await create_resources(organizer, name)
    of_year = {"onlyForGroups": ["year 5*"], "resource": name}
    slot = await organizer.add_slot(title="Yoga", campaignId=campaign, capacity=3, **of_year)
    draft = await organizer.add_slot(title="Draft", campaignId=campaign, draft=True)
    arguments = ("--campaign", campaign, "--users", "6")
    run = passed(await asyncio.to_thread(simulate, app.url, *arguments))
    # Each of the two classes has one place.
    assert run.results["outcomes"] == {"Booked": 2, "GroupFull": 4}
    for id_ in (slot, draft):
        assert (await organizer.execute(NODE, id=id_))["version"] == 1
    (rehearsed,) = run.results["slots"]
    assert (await organizer.execute(NODE, id=rehearsed["id"]))["status"] == "CANCELLED"
    roster = await organizer.execute(ROSTER_USERS, slot=rehearsed["id"])
    assert [booking["user"]["erased"] for booking in roster["nodes"]] == [True, True]
    copy = run.results["campaignId"]
    assert (await organizer.execute(NODE, id=copy))["published"] is False
    assert await anonymous.execute(NODE, id=copy) is None
    assert f"{copy} with 1 cancelled slots" in run.stdout


def test_users_that_wait_never_receive_locked(simulate: SimulationRunner, app: AppProcess) -> None:
    run = passed(simulate(app.url, "--mode", "wait", "--users", "12", "--places", "2"))
    assert run.results["outcomes"] == {"Booked": 8, "SlotFull": 4}
    assert run.results["retries"]["Locked"] == 0


@pytest.fixture(scope="module")
def queue_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Run an app whose queue no other process serves."""
    settings = app_environment(with_own_redis_database(servers), "queue_app")
    with forked_app(settings, tmp_path_factory.mktemp("queue_app")) as running:
        yield running


@pytest.mark.parametrize("attempts", ["1", "12"])
def test_users_in_the_queue_receive_outcomes_over_their_sockets(
    simulate: SimulationRunner, queue_app: AppProcess, attempts: str
) -> None:
    run = passed(
        simulate(
            queue_app.url,
            "--mode",
            "queue",
            "--users",
            "4",
            "--slots",
            "12",
            "--attempts",
            attempts,
        )
    )
    assert run.results["outcomes"]["Booked"] == min(12, 4 * int(attempts))


def test_a_large_simulation_prints_progress_instead_of_steps(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    run = passed(
        simulate(app.url, "--users", "30", "--slots", "3", "--places", "5", "--attempts", "2")
    )
    assert "requests Bed" not in run.stdout
    assert "registered 30 of 30" in run.stdout
    assert "sent 60  final 60  booked 15  places left 0" in run.stdout
    assert "Bed 1  5 of 5  " in run.stdout


def test_more_slots_than_one_subscription_allows_are_watched(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    run = passed(simulate(app.url, "--users", "3", "--slots", "101", "--attempts", "3"))
    assert run.results["timeSeries"][-1]["placesLeft"] == 101 - 5
    assert "and 81 more slots" in run.stdout


def test_the_json_has_the_documented_shape(simulate: SimulationRunner, app: AppProcess) -> None:
    results = passed(simulate(app.url, "--seed", "7", "--mode", "wait")).results
    assert results["arguments"] == {
        "url": app.url,
        "users": 8,
        "slots": 4,
        "places": 1,
        "attempts": 1,
        "mode": "wait",
        "seed": 7,
        "campaign": None,
    }
    assert set(results) == {
        *("arguments", "campaignId", "openedAt", "seconds", "requests", "cpuSeconds", "outcomes"),
        *("retries", "firstResponseMs", "finalResponseMs", "invariants", "slots", "timeSeries"),
        "attempts",
    }
    assert list(results["finalResponseMs"]) == ["p50", "p90", "p99", "max"]
    assert results["requests"] == 8
    last = results["timeSeries"][-1]
    assert last["outcomes"] == {"Booked": 4, "SlotFull": 4}
    assert (last["sent"], last["placesLeft"]) == (8, 0)
    holders = {slot["title"]: slot["holders"] for slot in results["slots"]}
    booked = [attempt for attempt in results["attempts"] if attempt["outcome"] == "Booked"]
    assert holders == {attempt["slot"]: [attempt["user"]] for attempt in booked}
    assert all(attempt["bookingId"] for attempt in booked)


def test_a_seed_gives_the_same_order(simulate: SimulationRunner, app: AppProcess) -> None:
    orders = []
    for _ in range(2):
        attempts = passed(simulate(app.url, "--seed", "7")).results["attempts"]
        orders.append([(attempt["user"], attempt["slot"]) for attempt in attempts])
    assert orders[0] == orders[1]


@pytest.mark.parametrize(("name", "signature"), [("rush.svg", b"<?xml"), ("rush.png", b"\x89PNG")])
def test_a_plot_is_drawn(
    simulate: SimulationRunner, app: AppProcess, tmp_path: Path, name: str, signature: bytes
) -> None:
    passed(simulate(app.url, "--users", "2", "--slots", "1", "--plot", str(tmp_path / name)))
    assert (tmp_path / name).read_bytes().startswith(signature)


@pytest.mark.skipif(sys.platform != "linux", reason="the test finds workers in /proc")
def test_a_worker_killed_during_the_rush_loses_nothing(
    simulate: SimulationRunner,
    servers: EmbeddedServers,
    monkeypatch: pytest.MonkeyPatch,
    log_dir: Path,
) -> None:
    command = (*SERVE_COMMAND, "--workers", "2")
    with app_process(app_environment(servers, "one_app"), log_dir, command) as app:
        record_sent, sent = AttemptLog.record_sent, 0

        def kill_between_attempts(self: AttemptLog, attempt: BookingAttempt, at: float) -> None:
            nonlocal sent
            sent += 1
            if sent == 20:  # some requests are in progress, others are sent to a dead process
                os.kill(busiest_worker_pid(app.process.pid), signal.SIGKILL)
            record_sent(self, attempt, at)

        monkeypatch.setattr(AttemptLog, "record_sent", kill_between_attempts)
        run = passed(simulate(app.url, "--users", "40", "--places", "5"))
    assert run.results["outcomes"] == {"Booked": 20, "SlotFull": 20}
    assert run.results["retries"]["dropped connections"] > 0


def busiest_worker_pid(pid: int) -> int:
    """Return the pid of the worker of a supervisor that has the most connections."""
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(max(workers, key=lambda worker: len(os.listdir(f"/proc/{worker}/fd"))))


@pytest.mark.parametrize("code", ["INTERNAL", "OUTCOME_UNKNOWN"])
def test_a_request_of_unknown_outcome_is_repeated(code: str) -> None:
    error = to_error([{"message": "Please repeat it.", "extensions": {"code": code}}])
    assert isinstance(error, NoResponseError)


async def test_a_request_that_an_overloaded_server_rejects_is_repeated() -> None:
    async with open_http(1) as http:
        client = GraphQLClient("http://localhost", http)
        with pytest.raises(NoResponseError):
            client._root_field(OVERLOADED_RESPONSE.status, json.loads(OVERLOADED_RESPONSE.body))
