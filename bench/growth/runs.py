"""Runs the cases of a group in alternation and measures the cost of a request."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.comparison.correctness import find_problems
from bench.comparison.cpu import CpuSample, CpuTime
from bench.comparison.load import CONNECTIONS, Load, Requests, drive
from bench.comparison.rounds import settled_tally
from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import TargetSlots
from bench.growth.cases import Case, seed

USERS = 500
WARM_UP_S = 1


@dataclass(frozen=True, slots=True)
class GrowthRun:
    """One workload on one case."""

    round: int
    group: str
    size: int
    workload: str
    load: Load
    cpu: CpuTime
    problems: list[str]

    @property
    def cost_us(self) -> float:
        """The CPU microseconds of the app, mongod and Valkey per request."""
        spent_s = self.cpu.app_sum_s + self.cpu.mongod_s + self.cpu.valkey_s
        return spent_s / max(self.load.requests, 1) * 1e6


@dataclass(frozen=True, slots=True)
class RunningCase:
    """A case with its app, its slots and the file with the tokens of its users."""

    case: Case
    app: TargetApp
    slots: TargetSlots
    tokens: Path
    first_day: datetime

    def requests(self, workload: str) -> Requests:
        """Return the requests of a workload."""
        slots = self.case.slots
        return Requests("slotlock", workload, slots.count, self.first_day, self.tokens, slots.first)


def run_group(
    cases: Sequence[Case],
    servers: BenchmarkServers,
    first_day: datetime,
    rounds: int,
    seconds: int,
) -> Iterator[GrowthRun]:
    """Yield a run of each round, workload and case; raises TargetAppError and LoadError."""
    with ExitStack() as stack:
        started = [_start(stack, case, servers, first_day) for case in cases]
        for each in started:
            load = drive(each.app.url, each.requests(each.case.workloads[0]), WARM_UP_S)
            settled_tally(each.slots, load)
        for number in range(rounds):
            first = number % len(started)
            for workload in cases[0].workloads:
                for each in (*started[first:], *started[:first]):
                    yield _run(servers, number + 1, workload, each, seconds)


def _start(
    stack: ExitStack, case: Case, servers: BenchmarkServers, first_day: datetime
) -> RunningCase:
    slots = seed(case, servers.client, first_day)
    command = slotlock_target.command(
        servers.embedded, case.processes, slotlock_target.RATE_LIMITS_OFF, case.database_name
    )
    app = stack.enter_context(running(case.name, command, servers.folder))
    tokens = servers.folder / f"{case.name}.tokens"
    new_tokens = slotlock_target.tokens(servers.embedded, USERS, case.database_name)
    tokens.write_text("".join(f"{token}\n" for token in new_tokens))
    return RunningCase(case, app, slots, tokens, first_day)


def _run(
    servers: BenchmarkServers, number: int, workload: str, running_case: RunningCase, seconds: int
) -> GrowthRun:
    case, app, slots = running_case.case, running_case.app, running_case.slots
    slots.free_all()
    servers.redis.flushall()
    before = CpuSample.take(app, servers.pids)
    load = drive(app.url, running_case.requests(workload), seconds)
    cpu = CpuTime.between(before, CpuSample.take(app, servers.pids))
    tally = settled_tally(slots, load)
    problems = find_problems(workload, load, tally, frozenset({"200"}), CONNECTIONS)
    return GrowthRun(number, case.group, case.size, workload, load, cpu, problems)
