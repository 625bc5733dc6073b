"""The simulation detects a faulty server: without a guard, the promise of that guard is broken."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from slotlock.simulation import availability_watcher, rush, setup
from slotlock.simulation.model.attempts import Clock
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.cli.command_line import replace_environment
from tests.support.cli.simulation import SimulationRun, SimulationRunner

SimulateWithout = Callable[..., SimulationRun]

# Without these guards, the live numbers still have to be right.
WITH_RIGHT_NUMBERS = ("", "idempotency-keys")


@pytest.fixture
def simulate_without(
    monkeypatch: pytest.MonkeyPatch,
    app: AppProcess,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    log_dir: Path,
) -> Iterator[SimulateWithout]:
    """Run the simulation against an app without the named guards."""
    replace_environment(monkeypatch, app.environment)
    simulate = SimulationRunner(monkeypatch, capsys, tmp_path)
    with ExitStack() as stack:

        def run(guards: str, *arguments: str) -> SimulationRun:
            if guards not in WITH_RIGHT_NUMBERS:
                # A live number that is permanently wrong is not worth the wait for a late one.
                monkeypatch.setattr(availability_watcher, "CATCH_UP_TIMEOUT_S", 2.0)
            faulty_app = stack.enter_context(
                app_variant(app.environment, log_dir, without_guards=guards)
            )
            result = simulate(faulty_app.url, *arguments)
            output = (result.stdout, result.stderr)
            assert result.exit_code == (1 if result.broken_invariants else 0), output
            assert ("BROKEN" in result.stdout) == bool(result.broken_invariants)
            return result

        yield run


ONE_BED_WAIT = ("--users", "16", "--slots", "1", "--mode", "wait")
# Requests that wait in one process form a batch, whatever guard is missing.
ONE_BED_LOCK = ("--users", "16", "--slots", "1", "--mode", "lock")


def test_with_all_guards_every_promise_holds(simulate_without: SimulateWithout) -> None:
    assert simulate_without("", *ONE_BED_WAIT).broken_invariants == set()


def test_control_without_version_lock_and_transaction_a_bed_is_overbooked(
    simulate_without: SimulateWithout,
) -> None:
    # Without guards it is still a race, which a run can win.
    runs = (simulate_without("slot-version lock transaction", *ONE_BED_LOCK) for _ in range(5))
    assert any("notOverbooked" in run.broken_invariants for run in runs)


def test_control_with_absolute_counts_the_places_left_are_wrong(
    simulate_without: SimulateWithout,
) -> None:
    guards = "slot-version lock transaction relative-counts"
    runs = (simulate_without(guards, *ONE_BED_LOCK, "--places", "4") for _ in range(5))
    assert any("countsAgree" in run.broken_invariants for run in runs)


def test_control_without_refusals_users_receive_bookings_that_do_not_exist(
    simulate_without: SimulateWithout,
) -> None:
    result = simulate_without("refusals", *ONE_BED_WAIT)
    assert result.results["outcomes"]["Booked"] > 1
    assert {"bookingsMatchResponses", "ownListsAgree"} <= result.broken_invariants


def test_control_without_keys_a_repeated_request_has_another_outcome(
    simulate_without: SimulateWithout,
) -> None:
    assert simulate_without("idempotency-keys", *ONE_BED_WAIT).broken_invariants == {
        "oneFinalResponse"
    }


def test_control_a_counter_that_is_never_incremented_again_leaves_places_unused(
    simulate_without: SimulateWithout,
) -> None:
    arguments = (*ONE_BED_LOCK, "--places", "8")
    runs = (simulate_without("no-redis-counter", *arguments) for _ in range(5))
    assert any("noPlaceUnused" in run.broken_invariants for run in runs)


def test_control_without_events_the_live_counts_are_wrong(
    simulate_without: SimulateWithout,
) -> None:
    assert simulate_without("availability-updates", *ONE_BED_WAIT).broken_invariants == {
        "liveCountsAgree"
    }


def test_control_a_server_with_a_slow_clock_is_detected(
    simulate_without: SimulateWithout, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay, open_at = timedelta(hours=1), Clock.open_at
    monkeypatch.setattr(setup, "OPENING_DELAY", delay)
    monkeypatch.setattr(Clock, "open_at", lambda self, at: open_at(self, at - delay))
    monkeypatch.setattr(rush, "STALL_TIMEOUT_S", 0.5)
    result = simulate_without("", "--users", "2", "--slots", "1")
    assert result.broken_invariants == {"oneFinalResponse", "noPlaceUnused"}
    assert "has no final response; the last one was NotYetOpen" in result.stdout
