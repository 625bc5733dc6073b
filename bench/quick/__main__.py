"""The quick benchmark: slotlock and two Node peers in alternation on this machine."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from pymongo import MongoClient
from redis import Redis

from bench.machine import describe_machine, missing_tools
from bench.packages import InstallError
from bench.quick import node_peers, report
from bench.quick.load import LoadError
from bench.quick.rounds import BenchmarkSetup, Plan, Run, run_rounds, warm_up
from bench.quick.slots import Document
from bench.quick.target_apps import TargetAppError, running
from bench.quick.targets import create_targets
from slotlock.devserver.binaries import ServerStartError
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers

PEERS_HOME = Path(__file__).parents[2] / ".bench" / "peers"
MIN_SLOTS = 20
# Tokens live 15 minutes and are created once per round, which has nine runs.
MAX_RUN_S = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every run was correct, 1 if one was wrong, 2 if the machine lacks a tool."""
    args = _parser().parse_args(arguments)
    plan = Plan(args.rounds, args.seconds, args.slots)
    # An exception on SIGTERM lets the context managers stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if missing := missing_tools():
        return _print_errors(missing)
    try:
        _print_step("installing the peers, starting the servers")
        node_peers.install(PEERS_HOME)
        with (
            tempfile.TemporaryDirectory(prefix="slotlock-bench-") as folder,
            embedded_servers(Path(folder, "data")) as servers,
        ):
            return measure(plan, servers, Path(folder), args.json)
    except (ServerStartError, InstallError, TargetAppError, LoadError) as error:
        return _print_errors([str(error)])
    except KeyboardInterrupt:
        return 130


def measure(plan: Plan, servers: EmbeddedServers, folder: Path, json_file: Path | None) -> int:
    """Run all rounds on the running servers, print the report and return the exit code."""
    with ExitStack() as stack:
        client: MongoClient[Document] = stack.enter_context(MongoClient(servers.mongo_url))
        redis = stack.enter_context(Redis.from_url(servers.redis_url))
        running_targets = []
        for target in create_targets(servers, client, PEERS_HOME):
            _print_step(f"{target.name}: slots, start")
            target.slots.seed(plan.slots)
            app = stack.enter_context(running(target.name, target.command, folder))
            running_targets.append((target, app))
        machine = describe_machine(client, redis)
        print(report.format_header(plan, machine), flush=True)
        setup = BenchmarkSetup(plan, running_targets, redis, folder)
        warm_up(setup)
        runs: list[Run] = []
        for run in run_rounds(setup):
            runs.append(run)
            print(report.format_run(run), flush=True)
    print(report.summary(runs))
    if json_file is not None:
        report.write_json(json_file, plan, machine, runs)
    return 1 if any(run.problems for run in runs) else 0


def _print_step(message: str) -> None:
    print(f"... {message}", file=sys.stderr, flush=True)


def _print_errors(lines: Sequence[str]) -> int:
    for line in lines:
        print(f"bench: {line}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.add_argument("--rounds", type=_bounded_int(1, 100), default=3, metavar="N")
    parser.add_argument(
        "--seconds",
        type=_bounded_int(1, MAX_RUN_S),
        default=4,
        metavar="S",
        help="seconds of each run",
    )
    parser.add_argument(
        "--slots", type=_bounded_int(MIN_SLOTS, 10_000_000), default=200_000, metavar="N"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all raw figures as JSON")
    return parser


def _bounded_int(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"a number from {minimum} to {maximum}")
        return int(text)

    return parse


if __name__ == "__main__":
    sys.exit(main())
