"""Measures how the cost of a request grows: `python -m bench.growth` (make bench-growth).

The cost is the CPU time of slotlock, mongod and Valkey per request. It is measured with more slots,
with more processes, with more bookings in a slot, and with more users in a campaign.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from bench.comparison.load import LoadError
from bench.comparison.servers import running_servers
from bench.comparison.targets.apps import TargetAppError
from bench.growth import report, updates
from bench.growth.cases import Case, campaign_cases, process_cases, roster_cases, slot_cases
from bench.growth.runs import GrowthRun, run_group
from bench.machine import describe_machine, load_warning, machine_summary, missing_tools
from slotlock.devserver.binaries import ServerStartError

JSON_FILE = Path(__file__).parents[2] / ".bench" / "growth.json"
SLOT_COUNTS = (10_000, 100_000, 1_000_000)
ROUNDS, SECONDS = 3, 2
UPDATES_SECONDS = 40
# The embedded MongoDB caches 0.5 GB, which a million slots with their indexes exceed.
MONGO_CACHE = "cache_size=2GB"


def all_groups(*, quick: bool) -> list[list[Case]]:
    """Return the cases by group; the quick ones are without a million slots."""
    return [
        slot_cases(SLOT_COUNTS[:-1] if quick else SLOT_COUNTS),
        process_cases((1, 2), SLOT_COUNTS[0]),
        roster_cases((1, 100, 1_000)),
        campaign_cases((10, 1_000, 100_000)),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every run was correct, 1 if one was wrong, 2 if the machine lacks a tool."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, at most 100,000 slots")
    parser.add_argument(
        "--updates", action="store_true", help="only what the update of a booking costs mongod"
    )
    args = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if args.updates:
        return _measure_updates()
    if missing := missing_tools(("wrk",)):
        return _print_errors(missing)
    if args.quick:
        print("--quick leaves out: 1,000,000 slots, the second and the third round")
    first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
    runs: list[GrowthRun] = []
    warning = load_warning()
    try:
        with running_servers() as servers:
            servers.client.admin.command(
                "setParameter", 1, wiredTigerEngineRuntimeConfig=MONGO_CACHE
            )
            description = describe_machine(servers.client, servers.redis)
            print(", ".join(f"{name} {value}" for name, value in description.items()), flush=True)
            for cases in all_groups(quick=args.quick):
                rounds = 1 if args.quick else ROUNDS
                print(f"... {cases[0].group}", file=sys.stderr, flush=True)
                for run in run_group(cases, servers, first_day, rounds, SECONDS):
                    runs.append(run)
                    print(report.format_run(run), flush=True)
    except (ServerStartError, TargetAppError, LoadError) as error:
        return _print_errors([str(error)])
    except KeyboardInterrupt:
        return 130
    print("\n".join(["", *report.table(runs)]))
    if warning:
        print(warning)
    JSON_FILE.parent.mkdir(exist_ok=True)
    report.write_json(JSON_FILE, description, runs)
    wrong = sum(bool(run.problems) for run in runs)
    print(f"{wrong} of {len(runs)} runs were wrong; all figures: {JSON_FILE}")
    return 1 if wrong else 0


def _measure_updates() -> int:
    try:
        with running_servers() as servers:
            version = servers.client.server_info()["version"]
            print(f"mongod {version}, {machine_summary()}", flush=True)
            print("\n".join(updates.measure(servers, UPDATES_SECONDS)))
    except ServerStartError as error:
        return _print_errors([str(error)])
    return 0


def _print_errors(lines: Sequence[str]) -> int:
    for line in lines:
        print(f"bench: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
