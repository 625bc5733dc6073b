"""Compares slotlock with three Node peers: `python -m bench.comparison` (make bench).

All targets run on this machine in alternation. The output is a table of ratios; all figures are
written as JSON, and the ratios are plotted.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from bench.comparison import plot, report
from bench.comparison.figures import Figures
from bench.comparison.load import LoadError
from bench.comparison.plan import FULL, QUICK, QUICK_OMISSIONS, Plan
from bench.comparison.rounds import BenchmarkSetup, Run, RunningTarget, run_rounds, warm_up
from bench.comparison.scenarios import board, crowd
from bench.comparison.scenarios.fan_out import FanOutError, run_fan_out
from bench.comparison.scenarios.queue import run_queues
from bench.comparison.scenarios.report import format_fan_out_run, format_queue_run
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import node_peers
from bench.comparison.targets.apps import TargetAppError, running
from bench.comparison.targets.slots import SlotRange
from bench.comparison.targets.targets import LIMITED, Databases, create_targets
from bench.machine import describe_machine, load_warning, missing_tools
from bench.packages import InstallError
from slotlock.devserver.binaries import ServerStartError

OUTPUT_DIR = Path(__file__).parents[2] / ".bench"
PEERS_HOME = OUTPUT_DIR / "peers"
# A list needs a day of slots, and each hot slot a distance to the next.
MIN_SLOTS = 200
# Access tokens are valid for 15 minutes.
MAX_RUN_S = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every run was correct, 1 if one was wrong, 2 if the machine lacks a tool."""
    args = _parser().parse_args(arguments)
    # An exception on SIGTERM lets the context managers stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if missing := missing_tools():
        return _print_errors(missing)
    try:
        _print_step("installing the peers, starting the servers")
        node_peers.install(PEERS_HOME)
        warning = load_warning()
        with running_servers(args.mongo_nodes) as servers:
            description = describe_machine(servers.client, servers.redis)
            description["members of the replica set"] = str(args.mongo_nodes)
            plan = _plan(args)
            print(report.format_header(plan, description), flush=True)
            if args.quick:
                print(f"{QUICK_OMISSIONS}\n", flush=True)
            figures = measure(plan, servers)
    except (ServerStartError, InstallError, TargetAppError, LoadError, FanOutError) as error:
        return _print_errors([str(error)])
    except KeyboardInterrupt:
        return 130
    print(report.summary(figures))
    if warning:
        print(warning)
    report.write_json(args.json, plan, description, figures)
    plot.draw_plot(figures.runs, args.plot)
    print(f"all figures: {args.json}; plot: {args.plot}")
    return 0 if figures.is_correct else 1


def measure(plan: Plan, servers: BenchmarkServers) -> Figures:
    """Run all rounds on the running servers and print a line for each run."""
    first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
    databases = Databases.create(servers.embedded, servers.client, first_day)
    _print_step(f"{plan.slots:,} slots for slotlock and as many for the peers")
    for slots in (databases.slotlock_slots, databases.peer_slots):
        slots.seed(SlotRange(0, plan.slots))
    databases.slotlock_slots.seed(crowd.SLOTS)
    figures = Figures()
    for processes in plan.process_counts:
        for run in _run_targets(plan, servers, databases, processes):
            figures.runs.append(run)
            print(report.format_run(run), flush=True)
    _print_step("the queue")
    for queue_run in run_queues(plan, servers, databases):
        figures.queue_runs.append(queue_run)
        print(format_queue_run(queue_run), flush=True)
    _print_step("the fan-out")
    for fan_out_run in run_fan_out(plan, servers, databases, PEERS_HOME):
        figures.fan_out_runs.append(fan_out_run)
        print(format_fan_out_run(fan_out_run), flush=True)
    return figures


def _run_targets(
    plan: Plan,
    servers: BenchmarkServers,
    databases: Databases,
    processes: int,
) -> Iterator[Run]:
    with ExitStack() as stack:
        targets = []
        for target in create_targets(databases, PEERS_HOME, processes):
            if target.name == LIMITED and not plan.rate_limits:
                continue
            _print_step(f"starting {target.name}, processes: {processes}")
            app = stack.enter_context(running(target.name, target.command, servers.folder))
            targets.append(RunningTarget(target, app))
        setup = BenchmarkSetup(plan, processes, targets, servers, databases.first_day)
        _print_step("warm-up")
        warm_up(setup)
        yield from run_rounds(setup)
        yield from crowd.run_crowds(setup)
        yield from board.run_boards(setup)


def _plan(args: argparse.Namespace) -> Plan:
    plan = QUICK if args.quick else FULL
    chosen = {name: getattr(args, name) for name in ("rounds", "seconds", "slots")}
    return replace(plan, **{name: value for name, value in chosen.items() if value is not None})


def _print_step(message: str) -> None:
    print(f"... {message}", file=sys.stderr, flush=True)


def _print_errors(lines: Sequence[str]) -> int:
    for line in lines:
        print(f"bench: {line}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.comparison", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="take less than 2 minutes: short runs, two processes"
    )
    parser.add_argument("--rounds", type=_bounded_int(1, 100), metavar="N")
    parser.add_argument(
        "--seconds", type=_bounded_int(1, MAX_RUN_S), metavar="S", help="seconds of each run"
    )
    parser.add_argument("--slots", type=_bounded_int(MIN_SLOTS, 10_000_000), metavar="N")
    parser.add_argument(
        "--mongo-nodes", type=int, choices=(1, 3), default=1, help="members of the replica set"
    )
    parser.add_argument("--json", type=Path, default=OUTPUT_DIR / "comparison.json", metavar="FILE")
    parser.add_argument("--plot", type=Path, default=OUTPUT_DIR / "comparison.svg", metavar="FILE")
    return parser


def _bounded_int(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"a number from {minimum} to {maximum}")
        return int(text)

    return parse


if __name__ == "__main__":
    sys.exit(main())
