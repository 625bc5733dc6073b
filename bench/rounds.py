"""The rounds: every workload on every target by turns, and the count of bookings after each run."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from bench.load import CONNECTIONS, WORKLOADS, Load, drive
from bench.slots import Tally
from bench.target_apps import TargetApp
from bench.targets import Target

WARM_UP_S = 1
SETTLE_S = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run."""

    rounds: int
    seconds: int
    slots: int


@dataclass(frozen=True, slots=True)
class Run:
    """One workload on one target in one round."""

    round: int
    workload: str
    target: str
    load: Load
    tally: Tally
    cpu_s: list[float]  # of the target's processes, the busiest first
    problems: list[str]

    @property
    def cpu_us_per_request(self) -> float | None:
        """CPU time of the target's processes a request, where it can be read."""
        return sum(self.cpu_s) / self.load.requests * 1e6 if sum(self.cpu_s) else None


@dataclass(frozen=True, slots=True)
class BenchmarkSetup:
    """Where the rounds are run: the targets that are up, the shared Redis, a place for tokens."""

    plan: Plan
    running_targets: Sequence[tuple[Target, TargetApp]]
    redis: "Redis"
    folder: Path


def warm_up(setup: BenchmarkSetup) -> None:
    """Let every process start all its parts, connect and compile before anything counts."""
    for target, app in setup.running_targets:
        tokens = _tokens_file(setup, target)
        for workload in WORKLOADS:
            drive(app.url, target.kind, workload, setup.plan.slots, tokens, WARM_UP_S)


def run_rounds(setup: BenchmarkSetup) -> Iterator[Run]:
    """Every run of every round; who goes first changes with the round."""
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
    """The tally once the requests that were under way when wrk stopped have ended."""
    tally = target.slots.tally()
    while True:
        time.sleep(SETTLE_S)
        again = target.slots.tally()
        if again == tally:
            return tally
        tally = again


def find_problems(target: Target, workload: str, load: Load, tally: Tally) -> list[str]:
    """What is wrong with a run, in words; a run that is right has none."""
    counted, found = load.outcomes["booked"], [] if load.requests else ["nothing was answered"]
    if tally.booked < counted:
        found.append(f"{counted} were told that they booked, MongoDB has {tally.booked} bookings")
    if tally.booked > counted + CONNECTIONS:
        found.append(f"MongoDB has {tally.booked} bookings, only {counted} were answered")
    if workload == "one" and tally.booked:
        found.append(f"{tally.booked} slots were booked by reading")
    if tally.wrong:
        found.append(f"{tally.wrong} slots whose bookings and places do not add up")
    if load.outcomes["other"]:
        found.append(f"{load.outcomes['other']} unexpected answers, the last: {load.odd}")
    odd = {status: n for status, n in load.statuses.items() if status not in target.statuses}
    if odd:
        found.append(f"unexpected statuses: {odd}")
    if any(load.socket_errors.values()):
        found.append(f"socket errors: {load.socket_errors}")
    return found


def _tokens_file(setup: BenchmarkSetup, target: Target) -> Path:
    file = setup.folder / f"{target.name}.tokens"
    file.write_text("".join(f"{token}\n" for token in target.fresh_tokens()))
    return file
