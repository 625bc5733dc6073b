"""Compares this checkout of slotlock with another one: `python -m bench.checkouts FOLDER`.

Both run by turns, each on its own MongoDB and Valkey, except in the fan-out. The queue has two
workers and two server processes, the fan-out one server process. The output is a table of ratios,
this checkout divided by the other one. CPU is that of a request; it varies less than rates, on
which the whole machine acts.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from bench.app_process import PROJECT
from bench.comparison.load import WORKLOADS, LoadError
from bench.comparison.plan import Plan
from bench.comparison.ratios import Metric, app_cpu, rate, spread_of_ratios
from bench.comparison.report import format_run
from bench.comparison.rounds import BenchmarkSetup, Run, RunningTarget, run_rounds, warm_up
from bench.comparison.scenarios import crowd, fan_out, queue
from bench.comparison.scenarios.fan_out import FanOutError, FanOutRun
from bench.comparison.scenarios.queue import QueueRun
from bench.comparison.scenarios.report import FAN_OUT_COLUMNS, divide
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import node_peers, slotlock_target
from bench.comparison.targets.apps import TargetAppError, running
from bench.comparison.targets.slots import SlotRange
from bench.comparison.targets.targets import BASE, SLOTLOCK, Databases, create_checkout
from bench.machine import describe_machine, load_warning, missing_tools
from bench.packages import InstallError
from slotlock.devserver.binaries import ServerStartError

PEERS_HOME = Path(__file__).parents[2] / ".bench" / "peers"
METRICS: tuple[tuple[str, Metric], ...] = (
    ("requests/s", rate),
    ("CPU of the app", app_cpu),
    ("CPU of mongod", lambda run: run.mongod_cpu_us),
    ("CPU of Valkey", lambda run: run.valkey_cpu_us),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every run was correct, 1 if one was wrong, 2 if the machine lacks a tool."""
    parser = argparse.ArgumentParser(prog="python -m bench.checkouts", description=__doc__)
    parser.add_argument("base", type=Path, help="the folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=8, metavar="N")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="server processes")
    parser.add_argument("--seconds", type=int, default=1, metavar="S", help="seconds of each run")
    args = parser.parse_args(arguments)
    # An exception on SIGTERM lets the context managers stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if missing := missing_tools():
        print("\n".join(missing), file=sys.stderr)
        return 2
    plan = Plan(args.rounds, args.seconds, 24_000, (args.processes,), (1_000,))
    try:
        node_peers.install(PEERS_HOME)
        warning = load_warning()
        problems = list(_compare(plan, args.base.resolve()))
    except (ServerStartError, InstallError, TargetAppError, LoadError, FanOutError) as error:
        print(f"checkouts: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if warning:
        print(warning)
    print("\n".join(problems) or "every run was correct")
    return 1 if problems else 0


@dataclass(frozen=True, slots=True)
class _Checkout:
    """A checkout with its own servers, so that it neither helps nor disturbs the other one."""

    name: str
    project: Path
    servers: BenchmarkServers
    databases: Databases


def _compare(plan: Plan, base: Path) -> Iterator[str]:
    """Measure everything, print the ratios and yield the problems of all runs."""
    runs: list[Run] = []
    queues: list[tuple[str, QueueRun]] = []
    fan_outs: list[FanOutRun] = []
    for half, projects in _start_orders(plan, base):
        with ExitStack() as stack:
            checkouts = [
                stack.enter_context(_running_servers(half, name, project))
                for name, project in projects.items()
            ]
            servers = checkouts[0].servers
            print(describe_machine(servers.client, servers.redis), flush=True)
            runs += _runs(half, checkouts)
            queues += _queues(half, checkouts)
            fan_outs += _fan_outs(half, checkouts)
    print(f"ratios to {base}, {plan.rounds} rounds: median (lowest-highest)")
    for workload in (*WORKLOADS, crowd.WORKLOAD):
        print(_ratios(plan, runs, workload))
    yield from (problem for run in runs for problem in run.problems)
    own_queues, other_queues = (
        [run for target, run in queues if target == name] for name in (SLOTLOCK, BASE)
    )
    print(f"{'queue':10}{_queue_ratios(own_queues, other_queues)}")
    yield from (problem for _, run in queues for problem in run.problems)
    own, other = ([run for run in fan_outs if run.target == name] for name in (SLOTLOCK, BASE))
    for title, metric in FAN_OUT_COLUMNS:
        print(f"{'fan-out':10}{title} {divide([*map(metric, own)], [*map(metric, other)])}")


def _start_orders(plan: Plan, base: Path) -> Iterator[tuple[Plan, dict[str, Path]]]:
    """Yield a half of the rounds for each order of starting the checkouts, which changes the CPU.

    The fan-out, whose checkouts share servers, takes some 5 % more CPU in the first one.
    """
    projects = {SLOTLOCK: PROJECT, BASE: base}
    yield replace(plan, rounds=plan.rounds - plan.rounds // 2), projects
    yield replace(plan, rounds=plan.rounds // 2), dict(reversed(projects.items()))


@contextmanager
def _running_servers(plan: Plan, name: str, project: Path) -> Iterator[_Checkout]:
    with running_servers() as servers:
        first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
        databases = Databases.create(servers.embedded, servers.client, first_day)
        databases.slotlock_slots.seed(SlotRange(0, plan.slots))
        databases.slotlock_slots.seed(crowd.SLOTS)
        yield _Checkout(name, project, servers, databases)


def _runs(plan: Plan, checkouts: Sequence[_Checkout]) -> Iterator[Run]:
    (processes,) = plan.process_counts
    with ExitStack() as stack:
        setups = []
        for each in checkouts:
            target = create_checkout(each.name, each.databases, each.project, processes)
            app = stack.enter_context(running(each.name, target.command, each.servers.folder))
            setup = BenchmarkSetup(
                plan,
                processes,
                [RunningTarget(target, app)],
                each.servers,
                each.databases.first_day,
            )
            warm_up(setup)
            setups.append(setup)
        for scenario in (run_rounds, crowd.run_crowds):
            for run in _alternate([scenario(setup) for setup in setups]):
                print(format_run(run), file=sys.stderr, flush=True)
                yield run


def _alternate(series: Sequence[Iterator[Run]]) -> Iterator[Run]:
    """Yield the runs of all series by turns; the first series changes with each turn."""
    order = list(series)
    while batch := [run for each in order if (run := next(each, None)) is not None]:
        yield from batch
        order.reverse()


def _ratios(plan: Plan, runs: Sequence[Run], workload: str) -> str:
    case = (plan.process_counts[0], workload)
    cells = [
        f"{title} {spread_of_ratios(runs, metric, case, SLOTLOCK, BASE)}"
        for title, metric in METRICS
    ]
    return f"{workload:10}{', '.join(cells)}"


def _queues(plan: Plan, checkouts: Sequence[_Checkout]) -> Iterator[tuple[str, QueueRun]]:
    with ExitStack() as stack:
        targets = {
            each.name: stack.enter_context(
                queue.running_queue(plan, each.servers, each.databases, each.project)
            )
            for each in checkouts
        }
        for number in range(1, 1 + plan.rounds):
            for name in targets if number % 2 else reversed(targets):
                run = targets[name].run(number)
                cpu = f"{_queue_cpu_us(run):.0f} us of CPU an answer"
                print(f"queue {name}: {run.rate:.0f}/s, {cpu}", file=sys.stderr, flush=True)
                yield name, run


def _queue_cpu_us(run: QueueRun) -> float:
    return (run.cpu.app_sum_s + run.worker_cpu_s) / run.load.requests * 1e6


def _queue_ratios(own: Sequence[QueueRun], other: Sequence[QueueRun]) -> str:
    rates = divide([run.rate for run in own], [run.rate for run in other])
    cpu = divide([*map(_queue_cpu_us, own)], [*map(_queue_cpu_us, other)])
    return f"answers/s {rates}, CPU of apps and workers {cpu}"


def _fan_outs(plan: Plan, checkouts: Sequence[_Checkout]) -> Iterator[FanOutRun]:
    servers, databases = checkouts[0].servers, checkouts[0].databases
    slots = SlotRange(fan_out.FIRST_SLOT, len(checkouts), fan_out.PLACES)
    databases.slotlock_slots.seed(slots)
    tokens = slotlock_target.tokens(servers.embedded, fan_out.change_count(plan))
    commands = {
        each.name: slotlock_target.command(
            servers.embedded, 1, fan_out.SETTINGS, project=each.project
        )
        for each in checkouts
    }
    publishers = {
        each.name: fan_out.slotlock_publisher(number, tokens)
        for number, each in zip(slots.numbers, checkouts, strict=True)
    }
    for count in plan.subscribers:
        yield from fan_out.run_audiences(plan, servers, PEERS_HOME, commands, publishers, count)


if __name__ == "__main__":
    sys.exit(main())
