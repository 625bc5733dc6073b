"""Runs every workload on every target in rounds, and checks the bookings after each run."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from bench.quick.load import CONNECTIONS, WORKLOADS, Load, drive
from bench.quick.slots import Tally
from bench.quick.target_apps import TargetApp
from bench.quick.targets import Target

WARM_UP_S = 1
SETTLE_S = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of rounds, the seconds of a run and the number of slots."""

    rounds: int
    seconds: int
    slots: int


@dataclass(frozen=True, slots=True)
class Run:
    """One workload on one target; `cpu_s` lists its processes, the busiest first."""

    round: int
    workload: str
    target: str
    load: Load
    tally: Tally
    cpu_s: list[float]
    problems: list[str]

    @property
    def cpu_us_per_request(self) -> float | None:
        """Return the CPU microseconds per request, or None where /proc is missing."""
        return sum(self.cpu_s) / self.load.requests * 1e6 if sum(self.cpu_s) else None


@dataclass(frozen=True, slots=True)
class BenchmarkSetup:
    """The running targets, their Redis, and a folder for token files."""

    plan: Plan
    running_targets: Sequence[tuple[Target, TargetApp]]
    redis: "Redis"
    folder: Path


def warm_up(setup: BenchmarkSetup) -> None:
    """Send requests that do not count, so that every process connects and compiles first."""
    for target, app in setup.running_targets:
        tokens = _tokens_file(setup, target)
        for workload in WORKLOADS:
            drive(app.url, target.kind, workload, setup.plan.slots, tokens, WARM_UP_S)


def run_rounds(setup: BenchmarkSetup) -> Iterator[Run]:
    """Yield every run of every round; the first target changes with the round."""
    for number in range(setup.plan.rounds):
        first = number % len(setup.running_targets)
        order = [*setup.running_targets[first:], *setup.running_targets[:first]]
        tokens = {target.name: _tokens_file(setup, target) for target, _ in order}
        for workload in WORKLOADS:
            for target, app in order:
                yield _run(setup, number + 1, workload, target, app, tokens[target.name])


def _run(
    setup: BenchmarkSetup, number: int, workload: str, target: Target, app: TargetApp, tokens: Path
) -> Run:
    target.slots.free_all()
    setup.redis.flushall()
    plan, before = setup.plan, app.cpu_seconds()
    load = drive(app.url, target.kind, workload, plan.slots, tokens, plan.seconds)
    after = app.cpu_seconds()
    tally = _settled_tally(target)
    cpu_s = sorted((after[pid] - before.get(pid, 0.0) for pid in after), reverse=True)
    return Run(
        number,
        workload,
        target.name,
        load,
        tally,
        cpu_s,
        find_problems(target, workload, load, tally),
    )


def _settled_tally(target: Target) -> Tally:
    """Return the tally when no request changes it anymore after wrk has stopped."""
    tally = target.slots.tally()
    while True:
        time.sleep(SETTLE_S)
        latest = target.slots.tally()
        if latest == tally:
            return tally
        tally = latest


def find_problems(target: Target, workload: str, load: Load, tally: Tally) -> list[str]:
    """Return the problems of a run; none if it is correct."""
    acknowledged = load.outcomes["booked"]
    found = [] if load.requests else ["no response"]
    if tally.booked < acknowledged:
        found.append(f"{acknowledged} bookings acknowledged, MongoDB has {tally.booked}")
    if tally.booked > acknowledged + CONNECTIONS:
        found.append(f"MongoDB has {tally.booked} bookings, only {acknowledged} acknowledged")
    if workload == "one" and tally.booked:
        found.append(f"{tally.booked} slots were booked by queries")
    if tally.wrong:
        found.append(f"{tally.wrong} slots whose bookings and places disagree")
    if load.outcomes["other"]:
        found.append(f"{load.outcomes['other']} unexpected responses, the last: {load.unexpected}")
    unexpected = {status: n for status, n in load.statuses.items() if status not in target.statuses}
    if unexpected:
        found.append(f"unexpected statuses: {unexpected}")
    if any(load.socket_errors.values()):
        found.append(f"socket errors: {load.socket_errors}")
    return found


def _tokens_file(setup: BenchmarkSetup, target: Target) -> Path:
    file = setup.folder / f"{target.name}.tokens"
    file.write_text("".join(f"{token}\n" for token in target.fresh_tokens()))
    return file
