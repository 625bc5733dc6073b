"""Runs every workload on every target in rounds, and checks the bookings after each run."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from redis import Redis

from bench.comparison.correctness import find_problems
from bench.comparison.cpu import CpuSample, CpuTime, ServerPids
from bench.comparison.load import CONNECTIONS, Load, Requests, drive
from bench.comparison.plan import Plan
from bench.comparison.targets.apps import TargetApp
from bench.comparison.targets.slots import Tally, TargetSlots
from bench.comparison.targets.targets import Target

WARM_UP_S = 1
# Mixed has every operation, hot every refusal.
WARM_UP_WORKLOADS = ("mixed", "hot")
SETTLE_S = 0.15


@dataclass(frozen=True, slots=True)
class Run:
    """One workload on one target."""

    processes: int
    round: int
    workload: str
    target: str
    load: Load
    tally: Tally
    cpu: CpuTime
    problems: list[str]

    @property
    def app_cpu_us(self) -> float:
        """Return the CPU microseconds of the app per request."""
        return self.cpu.app_sum_s / self.load.requests * 1e6 if self.load.requests else 0.0

    @property
    def mongod_cpu_us(self) -> float:
        """Return the CPU microseconds of mongod per request."""
        return self.cpu.mongod_s / self.load.requests * 1e6 if self.load.requests else 0.0

    @property
    def valkey_cpu_us(self) -> float:
        """Return the CPU microseconds of Valkey per request."""
        return self.cpu.valkey_s / self.load.requests * 1e6 if self.load.requests else 0.0


@dataclass(frozen=True, slots=True)
class RunningTarget:
    """A target and its app."""

    target: Target
    app: TargetApp


@dataclass(frozen=True, slots=True)
class BenchmarkSetup:
    """The running targets with so many processes each, their servers, a folder for token files."""

    plan: Plan
    processes: int
    targets: Sequence[RunningTarget]
    redis: "Redis"
    servers: ServerPids
    first_day: datetime
    folder: Path


def warm_up(setup: BenchmarkSetup) -> None:
    """Send requests that do not count, so that every process connects and compiles first."""
    for running in setup.targets:
        tokens = _tokens_file(setup, running.target)
        for workload in WARM_UP_WORKLOADS:
            requests = _requests(setup, running.target, workload, tokens)
            drive(running.app.url, requests, WARM_UP_S)


def run_rounds(setup: BenchmarkSetup) -> Iterator[Run]:
    """Yield every run of every round; the first target changes with the round."""
    for number in range(setup.plan.rounds):
        order = rotated(setup.targets, number)
        tokens = {running.target.name: _tokens_file(setup, running.target) for running in order}
        workloads = dict.fromkeys(w for running in order for w in running.target.workloads)
        for workload in workloads:
            for running in order:
                if workload in running.target.workloads:
                    file = tokens[running.target.name]
                    yield _run(setup, number + 1, workload, running, file)


def rotated(targets: Sequence[RunningTarget], number: int) -> list[RunningTarget]:
    """Return the targets in another order for each round."""
    first = number % len(targets)
    return [*targets[first:], *targets[:first]]


def _run(
    setup: BenchmarkSetup, number: int, workload: str, running: RunningTarget, tokens: Path
) -> Run:
    target, app = running.target, running.app
    target.slots.free_all()
    setup.redis.flushall()
    before = CpuSample.take(app, setup.servers)
    load = drive(app.url, _requests(setup, target, workload, tokens), setup.plan.seconds)
    cpu = CpuTime.between(before, CpuSample.take(app, setup.servers))
    tally = settled_tally(target.slots)
    return Run(
        setup.processes,
        number,
        workload,
        target.name,
        load,
        tally,
        cpu,
        find_problems(workload, load, tally, target.statuses, CONNECTIONS),
    )


def settled_tally(slots: TargetSlots) -> Tally:
    """Return the tally when no request changes it anymore after wrk has stopped."""
    tally = slots.tally()
    while True:
        time.sleep(SETTLE_S)
        latest = slots.tally()
        if latest == tally:
            return tally
        tally = latest


def _requests(setup: BenchmarkSetup, target: Target, workload: str, tokens: Path) -> Requests:
    return Requests(target.kind, workload, setup.plan.slots, setup.first_day, tokens)


def _tokens_file(setup: BenchmarkSetup, target: Target) -> Path:
    file = setup.folder / f"{target.name}.tokens"
    file.write_text("".join(f"{token}\n" for token in target.fresh_tokens()))
    return file
