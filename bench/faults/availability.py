"""How long bookings were impossible: the gaps between acknowledged bookings."""

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from bench.faults.history import CONVERGED, PROBE, UNANSWERED, HistoryWriter, Operation

NOT_REQUESTS = {CONVERGED, UNANSWERED}


def longest_gap_s(acknowledged_at: Sequence[float], started_at: float, ended_at: float) -> float:
    """Return the longest time in this period that ends with or without an acknowledged booking.

    A gap that begins in the period counts to its end, because a fault can outlast its cause.
    `acknowledged_at` is sorted; all times are in seconds of one clock.
    """
    first = bisect_left(acknowledged_at, started_at)
    last = bisect_right(acknowledged_at, ended_at)
    times = [started_at, *acknowledged_at[first : last + 1]]
    if last >= len(acknowledged_at):
        times.append(ended_at)
    return max(later - earlier for earlier, later in pairwise(times))


class LoopWatch:
    """Measures how long the event loop of the campaign itself stood still.

    The campaign shares the machine with the servers. A gap is not theirs if it stood still, too.
    """

    INTERVAL_S = 0.1

    def __init__(self) -> None:
        self.longest_stall_s = 0.0

    async def run(self) -> None:
        """Measure until the task is cancelled."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(self.INTERVAL_S)
            stall_s = time.monotonic() - before - self.INTERVAL_S
            self.longest_stall_s = max(self.longest_stall_s, stall_s)


class WatchedHistory(HistoryWriter):
    """A history that also counts outcomes, and notes when each app acknowledged a probe's booking.

    A probe repeats no request, so that no earlier response counts again.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.outcomes: Counter[str] = Counter()
        self.acknowledged_at: defaultdict[str, list[float]] = defaultdict(list)

    def write(self, operation: Operation) -> None:
        """Add an operation that is over."""
        super().write(operation)
        if operation.operation in NOT_REQUESTS:
            return
        name = operation.error or str((operation.outcome or {}).get("__typename"))
        self.outcomes[f"{operation.operation} {name}"] += 1
        if name != "Booked" or operation.finished_at is None:
            return
        if operation.client.startswith(PROBE):
            self.acknowledged_at[operation.input["app"]].append(operation.finished_at)

    @property
    def request_count(self) -> int:
        """Return the number of requests that are over."""
        return sum(self.outcomes.values())
