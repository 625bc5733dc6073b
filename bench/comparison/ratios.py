"""Ratios between runs of the same round, with their median and their spread."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.comparison.rounds import Run

Metric = Callable[[Run], float]


def rate(run: Run) -> float:
    """Return the requests per second."""
    return run.load.rate


def p99(run: Run) -> float:
    """Return the 99th percentile of the latency in milliseconds."""
    return run.load.p99_us / 1000


def app_cpu(run: Run) -> float:
    """Return the CPU microseconds of the app per request."""
    return run.app_cpu_us


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the lowest and the highest of some values."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of one value or more."""
        return cls(median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


def select_runs(runs: Iterable[Run], processes: int, workload: str, target: str) -> list[Run]:
    """Return the runs of a target with so many processes, one per round."""
    return [
        run
        for run in runs
        if (run.processes, run.workload, run.target) == (processes, workload, target)
    ]


def ratios(
    runs: Sequence[Run], metric: Metric, case: tuple[int, str], target: str, base: str
) -> list[float]:
    """Return the metric of a target divided by that of another in the same round.

    `case` is the number of processes and the workload. A division by zero returns infinity.
    """
    own, other = (select_runs(runs, *case, name) for name in (target, base))
    return [
        metric(run) / metric(base_run) if metric(base_run) else float("inf")
        for run, base_run in zip(own, other, strict=True)
    ]


def spread_of_ratios(
    runs: Sequence[Run], metric: Metric, case: tuple[int, str], target: str, base: str
) -> Spread | None:
    """Return the spread of these ratios, or None if a target does not have this workload."""
    values = ratios(runs, metric, case, target, base)
    return Spread.of(values) if values else None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of one value or more."""
    ordered = sorted(values)
    rank = math.ceil(round(len(ordered) * percent / 100, 6))
    return ordered[max(rank, 1) - 1]
