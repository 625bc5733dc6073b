"""Compares slotlock with three Node peers: `python -m bench.comparison` (make bench).

All targets run on this machine in alternation. The output is a table of ratios; all figures are
written as JSON, and the ratios are plotted.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from pymongo import MongoClient
from redis import Redis

from bench.comparison import plot, report
from bench.comparison.cpu import ServerPids
from bench.comparison.load import LoadError
from bench.comparison.plan import FULL, QUICK, Plan
from bench.comparison.rounds import BenchmarkSetup, Run, RunningTarget, run_rounds, warm_up
from bench.comparison.targets import node_peers
from bench.comparison.targets.apps import TargetAppError, running
from bench.comparison.targets.slots import Document, SlotRange
from bench.comparison.targets.targets import Databases, create_targets
from bench.machine import describe_machine, missing_tools
from bench.packages import InstallError
from slotlock.devserver.binaries import ServerStartError
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers

OUTPUT_DIR = Path(__file__).parents[2] / ".bench"
PEERS_HOME = OUTPUT_DIR / "peers"
# A list needs a day of slots, and each hot slot a distance to the next.
MIN_SLOTS = 200
# Tokens live 15 minutes and are created once per round.
MAX_RUN_S = 20


@dataclass(frozen=True, slots=True)
class Machine:
    """The servers of all targets, and a folder for logs and token files."""

    servers: EmbeddedServers
    pids: ServerPids
    client: MongoClient[Document]
    redis: "Redis"
    folder: Path


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
        with ExitStack() as stack:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="slotlock-bench-"))
            )
            servers = stack.enter_context(embedded_servers(folder / "data"))
            machine = Machine(
                servers,
                ServerPids.read(folder / "data"),
                stack.enter_context(MongoClient(servers.mongo_url)),
                stack.enter_context(Redis.from_url(servers.redis_url)),
                folder,
            )
            return compare(_plan(args), machine, args.json, args.plot)
    except (ServerStartError, InstallError, TargetAppError, LoadError) as error:
        return _print_errors([str(error)])
    except KeyboardInterrupt:
        return 130


def compare(plan: Plan, machine: Machine, json_file: Path, plot_file: Path) -> int:
    """Run all rounds on the running servers, print the report and return the exit code."""
    description = describe_machine(machine.client, machine.redis)
    print(report.format_header(plan, description), flush=True)
    first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
    databases = Databases.create(machine.servers, machine.client, first_day)
    _print_step(f"{plan.slots:,} slots for slotlock and as many for the peers")
    for slots in (databases.slotlock_slots, databases.peer_slots):
        slots.seed(SlotRange(0, plan.slots))
    runs: list[Run] = []
    for processes in plan.process_counts:
        for run in _run_targets(plan, machine, databases, processes, first_day):
            runs.append(run)
            print(report.format_run(run), flush=True)
    print(report.summary(runs))
    report.write_json(json_file, plan, description, runs)
    plot.draw_plot(runs, plot_file)
    print(f"all figures: {json_file}; plot: {plot_file}")
    return 1 if any(run.problems for run in runs) else 0


def _run_targets(
    plan: Plan, machine: Machine, databases: Databases, processes: int, first_day: datetime
) -> Iterator[Run]:
    with ExitStack() as stack:
        targets = []
        for target in create_targets(databases, PEERS_HOME, processes):
            _print_step(f"starting {target.name}, processes: {processes}")
            app = stack.enter_context(running(target.name, target.command, machine.folder))
            targets.append(RunningTarget(target, app))
        setup = BenchmarkSetup(
            plan, processes, targets, machine.redis, machine.pids, first_day, machine.folder
        )
        _print_step("warm-up")
        warm_up(setup)
        yield from run_rounds(setup)


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
