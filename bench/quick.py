"""The quick benchmark: slotlock beside two Node peers on this machine, by turns, with the count."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from pymongo import MongoClient
from redis import Redis

from bench import peers, report
from bench.apps import AppError, running
from bench.load import LoadError
from bench.machine import describe, missing_tools
from bench.packages import InstallError
from bench.rounds import Field, Plan, Run, play, warm_up
from bench.slots import Document
from bench.targets import targets
from slotlock.api.embedded import CannotStart, Servers, embedded_servers

PEERS_HOME = Path(__file__).parent.parent / ".bench" / "peers"
FEWEST_SLOTS = 20
# Tokens live 15 minutes and are made once a round, which has nine runs.
LONGEST_RUN = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every run was correct, 1 when one was not, 2 when it cannot be measured here."""
    asked = _parser().parse_args(arguments)
    plan = Plan(asked.rounds, asked.seconds, asked.slots)
    # Leave by the front door, where what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if missing := missing_tools():
        return _refuse(missing)
    try:
        _say("installing the peers, starting the servers")
        peers.install(PEERS_HOME)
        with (
            tempfile.TemporaryDirectory(prefix="slotlock-bench-") as folder,
            embedded_servers(Path(folder, "data")) as servers,
        ):
            return measure(plan, servers, Path(folder), asked.json)
    except (CannotStart, InstallError, AppError, LoadError) as error:
        return _refuse([str(error)])
    except KeyboardInterrupt:
        return 130


def measure(plan: Plan, servers: Servers, folder: Path, json_file: Path | None) -> int:
    """Everything between the start and the end of the servers."""
    with ExitStack() as stack:
        client: MongoClient[Document] = stack.enter_context(MongoClient(servers.mongo_url))
        redis = stack.enter_context(Redis.from_url(servers.redis_url))
        entrants = []
        for target in targets(servers, client, PEERS_HOME):
            _say(f"{target.name}: slots, start")
            target.slots.seed(plan.slots)
            app = stack.enter_context(running(target.name, target.command, folder))
            entrants.append((target, app))
        machine = describe(client, redis)
        print(report.opening(plan, machine), flush=True)
        field = Field(plan, entrants, redis, folder)
        warm_up(field)
        runs: list[Run] = []
        for run in play(field):
            runs.append(run)
            print(report.line_of(run), flush=True)
    print(report.summary(runs))
    if json_file is not None:
        report.write_json(json_file, plan, machine, runs)
    return 1 if any(run.problems for run in runs) else 0


def _say(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


def _refuse(lines: Sequence[str]) -> int:
    for line in lines:
        print(f"bench: {line}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.add_argument("--rounds", type=_number(1, 100), default=3, metavar="N")
    parser.add_argument(
        "--seconds", type=_number(1, LONGEST_RUN), default=4, metavar="S", help="of each run"
    )
    parser.add_argument(
        "--slots", type=_number(FEWEST_SLOTS, 10_000_000), default=200_000, metavar="N"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every raw figure there")
    return parser


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"a number from {least} to {most}")
        return int(text)

    return number


if __name__ == "__main__":
    sys.exit(main())
