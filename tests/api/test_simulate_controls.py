"""The simulation sees a server that is wrong: each guard that is missing breaks what it guards."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from slotlock.api.simulation import campaign, rush, watching
from slotlock.api.simulation.clock import Clock
from tests.support.processes import AppProcess
from tests.support.simulating import Simulated, Simulator, set_environment
from tests.support.stage import variant


@pytest.fixture
def without(
    monkeypatch: pytest.MonkeyPatch,
    app: AppProcess,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    logs: Path,
) -> Iterator[Callable[..., Simulated]]:
    """Runs the simulation at an app that lacks guards."""
    set_environment(monkeypatch, app.environment)
    simulate = Simulator(monkeypatch, capsys, tmp_path)
    # What is wrong for good is not worth the patience that late news are.
    monkeypatch.setattr(watching, "HEARD_WITHIN_S", 2.0)
    with ExitStack() as stack:

        def run(off: str, *arguments: str) -> Simulated:
            crippled = stack.enter_context(variant(app.environment, logs, off=off))
            run = simulate(crippled.url, *arguments)
            assert run.code == (1 if run.broken else 0), (run.out, run.err)
            assert ("BROKEN" in run.out) == bool(run.broken)
            return run

        yield run


ONE_BED = ("--people", "16", "--slots", "1", "--by", "wait")
# In one process those who wait are served together, whatever else is missing.
BY_LOCK = ("--people", "16", "--slots", "1", "--by", "lock")


def test_with_all_guards_nothing_is_broken(without: Callable[..., Simulated]) -> None:
    assert without("", *ONE_BED).broken == set()


def test_control_without_version_lock_and_transaction_a_bed_has_two_people(
    without: Callable[..., Simulated],
) -> None:
    assert "notOverbooked" in without("version lock transaction", *BY_LOCK).broken


def test_control_with_absolute_counts_places_left_are_not_those_that_nobody_has(
    without: Callable[..., Simulated],
) -> None:
    off = "version lock transaction relative-counts"
    assert "countsAgree" in without(off, *BY_LOCK, "--places", "4").broken


def test_control_who_is_congratulated_without_a_place_is_found(
    without: Callable[..., Simulated],
) -> None:
    run = without("refusals", *ONE_BED)
    assert run.results["outcomes"]["Booked"] > 1
    assert {"toldIsWritten", "ownListsAgree"} <= run.broken


def test_control_without_keys_an_ask_that_is_sent_again_is_answered_otherwise(
    without: Callable[..., Simulated],
) -> None:
    assert without("keys", *ONE_BED).broken == {"oneFinalAnswer"}


def test_control_a_counter_that_nobody_raises_again_leaves_places_over(
    without: Callable[..., Simulated],
) -> None:
    run = without("admission", *BY_LOCK, "--places", "8")
    assert "noneLeftOver" in run.broken


def test_control_without_news_what_was_heard_live_is_not_so(
    without: Callable[..., Simulated],
) -> None:
    assert without("news", *ONE_BED).broken == {"liveIsTrue"}


def test_control_a_server_whose_clock_is_late_is_found(
    without: Callable[..., Simulated], monkeypatch: pytest.MonkeyPatch
) -> None:
    late, open_at = timedelta(hours=1), Clock.open_at
    monkeypatch.setattr(campaign, "OPENS_IN", late)
    monkeypatch.setattr(Clock, "open_at", lambda self, at: open_at(self, at - late))
    monkeypatch.setattr(rush, "STALLED_S", 0.5)
    run = without("", "--people", "2", "--slots", "1")
    assert {"oneFinalAnswer", "noneLeftOver"} == run.broken
    assert "has no final answer; told last: NotYetOpen" in run.out
