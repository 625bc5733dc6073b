"""A crowd: hundreds of users wait for one slot of 1,000 places, then for the next one."""

from collections.abc import Iterator

from bench.comparison.load import Requests
from bench.comparison.rounds import BenchmarkSetup, Run, rotated, run_workload, tokens_file
from bench.comparison.targets.slots import SlotRange
from bench.comparison.targets.targets import BASE, SLOTLOCK

WORKLOAD = "crowd"
USERS = 1000
CONNECTIONS = 300
# No other workload uses these slots.
SLOTS = SlotRange(first=10_000_000, count=100, capacity=USERS)


def run_crowds(setup: BenchmarkSetup) -> Iterator[Run]:
    """Yield the runs of each round; only slotlock lets requests wait."""
    waiting = [each for each in setup.targets if each.target.name in (SLOTLOCK, BASE)]
    for number in range(setup.plan.rounds):
        for running in rotated(waiting, number):
            tokens = tokens_file(setup, running.target, USERS)
            requests = Requests(
                running.target.kind, WORKLOAD, SLOTS.count, setup.first_day, tokens, SLOTS.first
            )
            yield run_workload(setup, number + 1, running, requests, CONNECTIONS)
