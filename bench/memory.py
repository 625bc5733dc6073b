"""`python -m bench.memory`: the memory of slotlock while it works at its full rate.

First, as many users as a process remembers send requests, so that the caches are full. Then two
processes serve the workloads in alternation, each for ten seconds at a time and with other users,
and the bookings are checked after each run. Exits with 1 if a run was wrong, or if the memory of
the last quarter of the runs is more than 10 % above that of the second quarter.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import cycle
from pathlib import Path
from statistics import median
from time import monotonic

from bench.comparison.load import CONNECTIONS, WORKLOADS, Requests
from bench.comparison.plan import QUICK
from bench.comparison.rounds import BenchmarkSetup, Run, RunningTarget, run_workload, write_tokens
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets.apps import running
from bench.comparison.targets.slots import SlotRange
from bench.comparison.targets.targets import SLOTLOCK, USERS, Databases, create_targets
from bench.machine import machine_summary, missing_tools
from slotlock.auth.container import MAX_CACHED_TOKENS

PROCESSES, RUN_S = 2, 10
# Each process serves about half of the requests.
FILLING_RUNS = 4
SLOTS = 200_000
MIB = 2**20
MAX_GROWTH = 1.1
# Each quarter has at least every workload once.
MIN_RUNS = 4 * len(WORKLOADS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if the memory is flat and every run correct, else 1; 2 if wrk is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    args = parser.parse_args(arguments)
    if missing := missing_tools(("wrk",)):
        print(*missing, sep="\n", file=sys.stderr)
        return 2
    print(machine_summary())
    with running_servers() as servers:
        is_correct, memory_mib = measure(servers, args.minutes * 60)
    quarter = len(memory_mib) // 4
    early, late = median(memory_mib[quarter : 2 * quarter]), median(memory_mib[-quarter:])
    print(f"memory of {PROCESSES} processes: {early:.0f} MiB early, {late:.0f} MiB late")
    return 0 if is_correct and late <= MAX_GROWTH * early else 1


def measure(servers: BenchmarkServers, duration_s: float) -> tuple[bool, list[float]]:
    """Return whether every run was correct, and the memory after each run in MiB."""
    first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
    databases = Databases.create(servers.embedded, servers.client, first_day)
    databases.slotlock_slots.seed(SlotRange(0, SLOTS))
    targets = create_targets(databases, Path(), PROCESSES)
    target = next(target for target in targets if target.name == SLOTLOCK)
    plan = replace(QUICK, seconds=RUN_S, slots=SLOTS)
    is_correct, memory_mib = True, list[float]()
    with ExitStack() as stack:
        app = stack.enter_context(running(target.name, target.command, servers.folder))
        slotlock = RunningTarget(target, app)
        setup = BenchmarkSetup(plan, PROCESSES, [slotlock], servers, first_day)
        fill_caches(setup, slotlock)
        end = monotonic() + duration_s
        for number, workload in enumerate(cycle(WORKLOADS), 1):
            if monotonic() > end and number > MIN_RUNS:
                break
            tokens = write_tokens(setup, target, USERS)  # other users in each run
            run = _run(setup, number, slotlock, workload, tokens)
            is_correct = is_correct and not run.problems
            memory_mib.append(app.memory_bytes() / MIB)
            print(
                f"run {number:3}  {workload:6}  {run.load.rate:8,.0f} requests/s  "
                f"{memory_mib[-1]:6.0f} MiB  {'; '.join(run.problems) or 'correct'}",
                flush=True,
            )
    return is_correct, memory_mib


def fill_caches(setup: BenchmarkSetup, slotlock: RunningTarget) -> None:
    """Read slots as so many users that each process remembers as many tokens as it can."""
    tokens = write_tokens(setup, slotlock.target, MAX_CACHED_TOKENS)
    for number in range(1, FILLING_RUNS + 1):
        _run(setup, number, slotlock, "one", tokens)
        print(f"filling {number}  {slotlock.app.memory_bytes() / MIB:.0f} MiB", flush=True)


def _run(
    setup: BenchmarkSetup, number: int, slotlock: RunningTarget, workload: str, tokens: Path
) -> Run:
    requests = Requests(slotlock.target.kind, workload, SLOTS, setup.first_day, tokens)
    return run_workload(setup, number, slotlock, requests, CONNECTIONS)


if __name__ == "__main__":
    sys.exit(main())
