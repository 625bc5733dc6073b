"""Runs every workload on every target in rounds, and checks the bookings after each run."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.comparison.correctness import find_problems
from bench.comparison.cpu import CpuSample, CpuTime
from bench.comparison.load import (
    CONNECTIONS,
    READ_WORKLOADS,
    WORKLOADS,
    Load,
    Requests,
    drive,
)
from bench.comparison.plan import Plan
from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets.apps import TargetApp
from bench.comparison.targets.slots import Tally, TargetSlots
from bench.comparison.targets.targets import USERS, Target

WARM_UP_S = 1
# Mixed has every operation, hot every refusal.
WARM_UP_WORKLOADS = ("mixed", "hot")
MIN_SETTLE_S = 0.15
# Access tokens are valid for 15 minutes, and a run is shorter than the difference.
MAX_TOKEN_AGE_S = 600


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
    """The running targets with so many processes each, and their servers."""

    plan: Plan
    processes: int
    targets: Sequence[RunningTarget]
    servers: BenchmarkServers
    first_day: datetime


def warm_up(setup: BenchmarkSetup) -> None:
    """Send requests that do not count, so that every process connects and compiles first."""
    for running in setup.targets:
        tokens = tokens_file(setup, running.target, USERS)
        for workload in WARM_UP_WORKLOADS:
            requests = _requests(setup, running.target, workload, tokens)
            load = drive(running.app.url, requests, WARM_UP_S)
        settled_tally(running.target.slots, load)


def run_rounds(setup: BenchmarkSetup) -> Iterator[Run]:
    """Yield every run of every round; the first target changes with the round."""
    for number in range(setup.plan.rounds):
        order = rotated(setup.targets, number)
        for workload in WORKLOADS:
            for running in order:
                target = running.target
                if workload in target.workloads:
                    requests = _requests(setup, target, workload, tokens_file(setup, target, USERS))
                    yield run_workload(setup, number + 1, running, requests, CONNECTIONS)


def rotated(targets: Sequence[RunningTarget], number: int) -> list[RunningTarget]:
    """Return the targets in another order for each round."""
    first = number % len(targets)
    return [*targets[first:], *targets[:first]]


def run_workload(
    setup: BenchmarkSetup,
    number: int,
    running: RunningTarget,
    requests: Requests,
    connections: int,
) -> Run:
    """Send requests to free slots for the seconds of a run, and check the bookings."""
    target, app, servers = running.target, running.app, setup.servers
    target.slots.free_all()
    servers.redis.flushall()
    before = CpuSample.take(app, servers.pids)
    load = drive(app.url, requests, setup.plan.seconds, connections)
    cpu = CpuTime.between(before, CpuSample.take(app, servers.pids))
    # A query writes nothing, so that nothing has to settle.
    is_read = requests.workload in READ_WORKLOADS
    tally = target.slots.tally() if is_read else settled_tally(target.slots, load)
    return Run(
        setup.processes,
        number,
        requests.workload,
        target.name,
        load,
        tally,
        cpu,
        find_problems(requests.workload, load, tally, target.statuses, connections),
    )


def settled_tally(slots: TargetSlots, load: Load) -> Tally:
    """Return the tally when no request changes it anymore after wrk has stopped.

    On a busy machine, an open request can take as long as the slowest ones of the load.
    """
    settle_s = max(MIN_SETTLE_S, load.p99_us / 1e6)
    tally = slots.tally()
    while True:
        time.sleep(settle_s)
        latest = slots.tally()
        if latest == tally:
            return tally
        tally = latest


def tokens_file(setup: BenchmarkSetup, target: Target, users: int) -> Path:
    """Return a file with access tokens of so many users, which are valid during a run."""
    file = _tokens_path(setup, target, users)
    if file.exists() and time.time() - file.stat().st_mtime <= MAX_TOKEN_AGE_S:
        return file
    return write_tokens(setup, target, users)


def write_tokens(setup: BenchmarkSetup, target: Target, users: int) -> Path:
    """Write the access tokens of so many new users of a target to a file."""
    file = _tokens_path(setup, target, users)
    file.write_text("".join(f"{token}\n" for token in target.fresh_tokens(users)))
    return file


def _tokens_path(setup: BenchmarkSetup, target: Target, users: int) -> Path:
    return setup.servers.folder / f"{target.name}-{users}.tokens"


def _requests(setup: BenchmarkSetup, target: Target, workload: str, tokens: Path) -> Requests:
    return Requests(target.kind, workload, setup.plan.slots, setup.first_day, tokens)
