"""The simulation sees a server that is wrong: each guard that is missing breaks what it guards."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from slotlock.simulation import availability_watcher, rush, setup
from slotlock.simulation.model.attempts import Clock
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.simulation import SimulationRun, SimulationRunner, replace_environment


@pytest.fixture
def run_without_guards(
    monkeypatch: pytest.MonkeyPatch,
    app: AppProcess,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    log_dir: Path,
) -> Iterator[Callable[..., SimulationRun]]:
    """Runs the simulation at an app that lacks guards."""
    replace_environment(monkeypatch, app.environment)
    simulate = SimulationRunner(monkeypatch, capsys, tmp_path)
    # What is wrong for good is not worth the patience that late news are.
    monkeypatch.setattr(availability_watcher, "CATCH_UP_TIMEOUT_S", 2.0)
    with ExitStack() as stack:

        def run(off: str, *arguments: str) -> SimulationRun:
            crippled = stack.enter_context(
                app_variant(app.environment, log_dir, without_guards=off)
            )
            run = simulate(crippled.url, *arguments)
            assert run.exit_code == (1 if run.broken_invariants else 0), (run.stdout, run.stderr)
            assert ("BROKEN" in run.stdout) == bool(run.broken_invariants)
            return run

        yield run


ONE_BED = ("--people", "16", "--slots", "1", "--by", "wait")
# In one process those who wait are served together, whatever else is missing.
BY_LOCK = ("--people", "16", "--slots", "1", "--by", "lock")


def test_with_all_guards_nothing_is_broken(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    assert run_without_guards("", *ONE_BED).broken_invariants == set()


def test_control_without_version_lock_and_transaction_a_bed_has_two_people(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    assert (
        "notOverbooked"
        in run_without_guards("version lock transaction", *BY_LOCK).broken_invariants
    )


def test_control_with_absolute_counts_places_left_are_not_those_that_nobody_has(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    off = "version lock transaction relative-counts"
    assert "countsAgree" in run_without_guards(off, *BY_LOCK, "--places", "4").broken_invariants


def test_control_who_is_congratulated_without_a_place_is_found(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    run = run_without_guards("refusals", *ONE_BED)
    assert run.results["outcomes"]["Booked"] > 1
    assert {"toldIsWritten", "ownListsAgree"} <= run.broken_invariants


def test_control_without_keys_an_ask_that_is_sent_again_is_answered_otherwise(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    assert run_without_guards("keys", *ONE_BED).broken_invariants == {"oneFinalAnswer"}


def test_control_a_counter_that_nobody_raises_again_leaves_places_over(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    run = run_without_guards("admission", *BY_LOCK, "--places", "8")
    assert "noneLeftOver" in run.broken_invariants


def test_control_without_news_what_was_heard_live_is_not_so(
    run_without_guards: Callable[..., SimulationRun],
) -> None:
    assert run_without_guards("news", *ONE_BED).broken_invariants == {"liveIsTrue"}


def test_control_a_server_whose_clock_is_late_is_found(
    run_without_guards: Callable[..., SimulationRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    late, open_at = timedelta(hours=1), Clock.open_at
    monkeypatch.setattr(setup, "OPENING_DELAY", late)
    monkeypatch.setattr(Clock, "open_at", lambda self, at: open_at(self, at - late))
    monkeypatch.setattr(rush, "STALL_TIMEOUT_S", 0.5)
    run = run_without_guards("", "--people", "2", "--slots", "1")
    assert {"oneFinalAnswer", "noneLeftOver"} == run.broken_invariants
    assert "has no final answer; told last: NotYetOpen" in run.stdout
