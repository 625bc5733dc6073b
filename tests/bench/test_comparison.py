"""The comparison computes its ratios from the same round, and detects runs that went wrong."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient

from bench.comparison import plot, report
from bench.comparison.__main__ import main
from bench.comparison.correctness import find_problems
from bench.comparison.cpu import CpuSample, CpuTime
from bench.comparison.figures import Figures
from bench.comparison.load import WORKLOADS, Load
from bench.comparison.plan import QUICK
from bench.comparison.ratios import Spread, p99, percentile, rate, ratios, spread_of_ratios
from bench.comparison.rounds import Run
from bench.comparison.targets.slots import (
    PEER_SHAPE,
    SLOTLOCK_SHAPE,
    Document,
    DocumentShape,
    SlotRange,
    Tally,
    TargetSlots,
)
from bench.comparison.targets.targets import LIMITED, LIMITED_WORKLOADS, PEERS, SLOTLOCK
from bench.machine import load_warning
from slotlock.devserver.embedded import EmbeddedServers

FIRST_DAY = datetime(2031, 5, 1, tzinfo=UTC)
OUTCOMES = {"booked": 90, "locked": 0, "full": 0, "read": 0, "list": 0, "ticket": 0, "other": 0}
STATUSES = frozenset({"200"})


def load(requests: int = 100, p99_us: int = 5000, **fields: Any) -> Load:
    """Return the counts of a run of one second that booked 90 slots."""
    counts: dict[str, Any] = {
        "duration_us": 1_000_000,
        "p50_us": 1000,
        "p999_us": 9000,
        "outcomes": OUTCOMES,
        "statuses": {"200": requests},
        "socket_errors": {"connect": 0, "read": 0, "write": 0, "timeout": 0},
        "unexpected": "",
        "client_cpu_s": 0.1,
        **fields,
    }
    return Load(requests=requests, p99_us=p99_us, **counts)


def run(target: str, number: int, requests: int, workload: str = "spread", **fields: Any) -> Run:
    """Return a correct run with two processes."""
    cpu = CpuTime((0.06, 0.04), 0.02, 0.01)
    tally = Tally(booked=90, booked_slots=90, wrong=0)
    return Run(2, number, workload, target, load(requests, **fields), tally, cpu, [])


def all_runs() -> list[Run]:
    """Return two rounds of every workload on every target."""
    return [
        run(target, number, 100 * number, workload)
        for number in (1, 2)
        for target in (*PEERS, SLOTLOCK, LIMITED)
        for workload in (LIMITED_WORKLOADS if target == LIMITED else WORKLOADS)
    ]


def test_ratios_divide_runs_of_the_same_round() -> None:
    # The medians of the rates would give 200 / 100.
    runs = [run(SLOTLOCK, number, n) for number, n in ((1, 100), (2, 200), (3, 900))]
    runs += [run("P2", number, n) for number, n in ((1, 100), (2, 50), (3, 300))]
    assert ratios(runs, rate, (2, "spread"), SLOTLOCK, "P2") == [1.0, 4.0, 3.0]
    spread = spread_of_ratios(runs, rate, (2, "spread"), SLOTLOCK, "P2")
    assert spread == Spread(3.0, 1.0, 4.0)
    assert str(spread) == "3.00 (1.00-4.00)"


def test_ratios_do_not_mix_workloads_process_counts_or_metrics() -> None:
    runs = [run(SLOTLOCK, 1, 300, p99_us=2000), run("P2", 1, 100, p99_us=8000)]
    others = [run(SLOTLOCK, 1, 1, "hot"), replace(run(SLOTLOCK, 1, 1), processes=1)]
    assert ratios([*others, *runs], rate, (2, "spread"), SLOTLOCK, "P2") == [3.0]
    assert ratios(runs, p99, (2, "spread"), SLOTLOCK, "P2") == [0.25]
    assert spread_of_ratios(runs, rate, (2, "list"), SLOTLOCK, "P2") is None


def test_a_round_that_lacks_a_target_is_an_error_and_not_a_shift_of_rounds() -> None:
    runs = [run(SLOTLOCK, 1, 100), run(SLOTLOCK, 2, 100), run("P2", 2, 100)]
    with pytest.raises(ValueError, match="shorter"):
        ratios(runs, rate, (2, "spread"), SLOTLOCK, "P2")


def test_a_percentile_is_the_value_of_the_nearest_rank() -> None:
    values = [float(number) for number in range(1000, 0, -1)]
    assert [percentile(values, p) for p in (0, 50, 99, 99.9, 100)] == [1, 500, 990, 999, 1000]
    assert percentile([7.0], 99.9) == 7


def test_the_cpu_time_of_a_run_leaves_out_what_was_spent_before() -> None:
    before, after = CpuSample({1: 5.0}, 2.0, 1.0), CpuSample({1: 6.0, 2: 3.0}, 2.5, 1.25)
    cpu = CpuTime.between(before, after)
    assert cpu == CpuTime((3.0, 1.0), 0.5, 0.25)
    assert cpu.busiest_share == 0.75


def problems(workload: str, counts: Load, tally: Tally) -> list[str]:
    """Return the problems of a run with 8 connections."""
    return find_problems(workload, counts, tally, STATUSES, connections=8)


@pytest.mark.parametrize("in_flight", [0, 8])
def test_a_correct_run_has_no_problem(in_flight: int) -> None:
    assert problems("spread", load(), Tally(90 + in_flight, 90, 0)) == []


@pytest.mark.parametrize(
    ("workload", "counts", "tally", "text"),
    [
        ("spread", load(), Tally(89, 89, 0), "90 bookings acknowledged, MongoDB has 89"),
        ("spread", load(), Tally(99, 99, 0), "MongoDB has 99 bookings, only 90 acknowledged"),
        ("spread", load(), Tally(90, 90, 2), "2 slots whose bookings and places disagree"),
        ("spread", load(outcomes={**OUTCOMES, "full": 3}), Tally(90, 90, 0), "--slots"),
        ("hot", load(outcomes={**OUTCOMES, "booked": 19}), Tally(19, 19, 0), "19 bookings in 20"),
        ("one", load(outcomes={**OUTCOMES, "booked": 0}), Tally(1, 1, 0), "1 bookings by queries"),
        ("spread", load(0), Tally(90, 90, 0), "no response"),
        ("spread", load(statuses={"200": 9, "503": 1}), Tally(90, 90, 0), "503"),
        ("spread", load(socket_errors={"timeout": 1}), Tally(90, 90, 0), "socket errors"),
        (
            "spread",
            load(outcomes={**OUTCOMES, "other": 1}, unexpected="INTERNAL_ERROR"),
            Tally(90, 90, 0),
            "INTERNAL_ERROR",
        ),
    ],
)
def test_a_run_that_went_wrong_is_detected(
    workload: str, counts: Load, tally: Tally, text: str
) -> None:
    (problem,) = problems(workload, counts, tally)
    assert text in problem


@pytest.fixture
def client(servers: EmbeddedServers) -> Iterator[MongoClient[Document]]:
    """Yield a client of MongoDB."""
    with MongoClient[Document](servers.mongo_url, tz_aware=True) as opened:
        yield opened


def seeded(client: MongoClient[Document], shape: DocumentShape, capacity: int = 1) -> TargetSlots:
    """Return ten free slots in an empty database."""
    client.drop_database("comparison")
    slots = TargetSlots(client, "comparison", shape, FIRST_DAY)
    slots.seed(SlotRange(0, 10, capacity))
    return slots


def booking(user: int) -> Document:
    """Return the subdocument of a booking."""
    return {"id": ObjectId(), "user": ObjectId(f"{user:024x}"), "at": FIRST_DAY}


def test_bookings_of_slotlock_are_counted_and_freed(client: MongoClient[Document]) -> None:
    slots = seeded(client, SLOTLOCK_SHAPE, capacity=3)
    update = {"bookings": [booking(1), booking(2)], "remaining": 1, "version": 3}
    client["comparison"]["slots"].update_one({}, {"$set": update})
    assert slots.tally() == Tally(booked=2, booked_slots=1, wrong=0)
    slots.free_all()
    assert slots.tally() == Tally(0, 0, 0)
    assert client["comparison"]["slots"].count_documents({"remaining": 3, "version": 1}) == 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"bookings": [booking(1)]},
        {"remaining": 2},
        {"bookings": [booking(n) for n in range(4)], "remaining": -1},
        {"bookings": [booking(1), booking(1)], "remaining": 1},
    ],
    ids=["places not taken", "a place lost", "oversold", "one user twice"],
)
def test_a_slot_of_slotlock_that_contradicts_itself_is_counted(
    client: MongoClient[Document], wrong: Document
) -> None:
    slots = seeded(client, SLOTLOCK_SHAPE, capacity=3)
    client["comparison"]["slots"].update_one({}, {"$set": wrong})
    assert slots.tally().wrong == 1


def test_bookings_of_a_peer_are_counted_and_freed(client: MongoClient[Document]) -> None:
    slots = seeded(client, PEER_SHAPE)
    collection = client["comparison"]["slots"]
    collection.update_one({}, {"$set": {"isBooked": True, "bookedBy": "a", "claim": "b"}})
    assert slots.tally() == Tally(booked=1, booked_slots=1, wrong=0)
    slots.free_all()
    assert slots.tally() == Tally(0, 0, 0)
    assert collection.count_documents({"claim": {"$exists": True}}) == 0
    collection.update_one({}, {"$set": {"isBooked": True}})
    assert slots.tally().wrong == 1


def test_the_slots_of_both_shapes_have_the_same_times(client: MongoClient[Document]) -> None:
    seeded(client, SLOTLOCK_SHAPE)
    own = [slot["start"] for slot in client["comparison"]["slots"].find().sort("_id")]
    seeded(client, PEER_SHAPE)
    assert [slot["startTime"] for slot in client["comparison"]["slots"].find().sort("_id")] == own
    last = SLOTLOCK_SHAPE.document(450, FIRST_DAY, 1)
    assert last["start"] == PEER_SHAPE.document(450, FIRST_DAY, 1)["startTime"]
    assert last["title"] == "Slot 50"


def test_the_report_has_every_ratio_and_says_whether_a_run_was_wrong() -> None:
    runs = all_runs()
    text = report.summary(Figures(runs))
    for workload in WORKLOADS:
        assert f"2 x {workload:9}       150   1.00 (1.00-1.00)   1.00" in text
    assert "rate limits on / off, 2 x one: requests/s 1.00" in text
    assert "All 44 runs were correct" in text
    wrong = [replace(runs[0], problems=["lost"]), *runs[1:]]
    assert "1 of 44 runs were WRONG" in report.summary(Figures(wrong))
    assert "!!! P1, spread: lost" in report.format_run(wrong[0])


def test_all_figures_are_written_as_json_and_plotted(tmp_path: Path) -> None:
    report.write_json(tmp_path / "all.json", QUICK, {"cores": "2"}, Figures(all_runs()))
    written = json.loads((tmp_path / "all.json").read_text())
    assert len(written["runs"]) == 44
    assert written["ratios"]["2 x hot"]["rate / P2"] == [1.0, 1.0]
    plot.draw_plot(all_runs(), tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()


def test_missing_tools_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--quick"]) == 2
    errors = capsys.readouterr().err
    for tool in ("wrk", "node", "npm"):
        assert f"bench: {tool} is missing" in errors


@pytest.mark.parametrize(("load_average", "is_busy"), [(0.9, False), (3.0, True)])
def test_the_report_warns_of_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, load_average: float, is_busy: bool
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load_average, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert bool(load_warning()) is is_busy
