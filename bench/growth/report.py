"""The report: the cost of a request in each case, and its ratio to the smallest case."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from bench.comparison.ratios import Spread
from bench.growth.runs import GrowthRun


def rate(run: GrowthRun) -> float:
    """Return the requests per second."""
    return run.load.rate


def cost(run: GrowthRun) -> float:
    """Return the CPU microseconds of a request in all processes."""
    return run.cost_us


def format_run(run: GrowthRun) -> str:
    """Return one run in one line, with a line for each problem."""
    verdict = "WRONG" if run.problems else "correct"
    line = (
        f"round {run.round}  {run.group} {run.size:,}  {run.workload:6} {run.load.rate:8,.0f}/s  "
        f"{run.cost_us:6,.0f} us  {verdict}"
    )
    return "\n".join([line, *(f"  !!! {problem}" for problem in run.problems)])


def table(runs: Sequence[GrowthRun]) -> list[str]:
    """Return the medians of each case, and its ratios to the smallest case of its group."""
    lines = [
        "CPU us a request, medians; ratios to the first case in the same round: median (range)",
        f"{'group':16}{'size':>10}  {'workload':8}{'requests/s':>11}{'p99 ms':>8}"
        f"{'app':>8}{'mongod':>8}{'Valkey':>8}{'cost, ratio':>20}{'rate, ratio':>20}",
    ]
    for group, workload in dict.fromkeys((run.group, run.workload) for run in runs):
        selected = [run for run in runs if (run.group, run.workload) == (group, workload)]
        for size in sorted({run.size for run in selected}):
            own = [run for run in selected if run.size == size]
            lines.append(
                f"{group:16}{size:>10,}  {workload:8}{_median_cells(own)}"
                f"{ratio_to_smallest(selected, size, cost)!s:>20}"
                f"{ratio_to_smallest(selected, size, rate)!s:>20}"
            )
    return lines


def ratio_to_smallest(
    runs: Sequence[GrowthRun], size: int, metric: Callable[[GrowthRun], float]
) -> Spread:
    """Return the metric of a size divided by that of the smallest size in the same round."""
    smallest = min(run.size for run in runs)
    own, base = (
        sorted((run for run in runs if run.size == wanted), key=lambda run: run.round)
        for wanted in (size, smallest)
    )
    return Spread.of(
        [metric(run) / metric(base_run) for run, base_run in zip(own, base, strict=True)]
    )


def _median_cells(runs: Sequence[GrowthRun]) -> str:
    requests = [max(run.load.requests, 1) for run in runs]
    app, mongod, valkey = (
        median(seconds / n * 1e6 for seconds, n in zip(column, requests, strict=True))
        for column in (
            [run.cpu.app_sum_s for run in runs],
            [run.cpu.mongod_s for run in runs],
            [run.cpu.valkey_s for run in runs],
        )
    )
    return (
        f"{median(map(rate, runs)):>11,.0f}"
        f"{median(run.load.p99_us for run in runs) / 1000:>8.1f}"
        f"{app:>8,.0f}{mongod:>8,.0f}{valkey:>8,.0f}"
    )


def write_json(file: Path, machine: Mapping[str, str], runs: Sequence[GrowthRun]) -> None:
    """Write all raw figures as JSON."""
    raw = {"machine": machine, "runs": [asdict(run) for run in runs]}
    file.write_text(json.dumps(raw, indent=1) + "\n")
