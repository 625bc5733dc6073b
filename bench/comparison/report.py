"""The report: a line for each run, the medians, and slotlock's ratios to the peers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from bench.comparison.figures import Figures
from bench.comparison.load import CONNECTIONS, WORKLOADS
from bench.comparison.plan import Plan
from bench.comparison.ratios import (
    Metric,
    app_cpu,
    p99,
    rate,
    ratios,
    select_runs,
    spread_of_ratios,
)
from bench.comparison.rounds import Run
from bench.comparison.scenarios.report import (
    board_lines,
    crowd_lines,
    fan_out_lines,
    queue_lines,
)
from bench.comparison.targets.targets import (
    LIMITED,
    LIMITED_WORKLOADS,
    P1,
    P2,
    P2B,
    PEERS,
    SLOTLOCK,
    USERS,
)
from slotlock.infrastructure.mongo.slots.slot_documents import SLOT_INDEXES

ABOUT = f"""\
P1 is Express, mongoose and ioredis over REST.
P2 is Fastify, Mercurius (JIT), the MongoDB driver and ioredis over GraphQL.
P2b is P2 with batches of conditional updates and a cache of verified tokens.
"limited" is slotlock with rate limits, which charge every request and refuse none.
The same: one mongod and one Valkey, w: majority and journaled, NODE_ENV=production,
  slots of one place, wrk with {CONNECTIONS} keep-alive connections, tokens of {USERS} users.
Different:
  P1 reads without authentication; books by find and save; releases its lock with a plain DEL.
  P2 verifies the token each time; books by one conditional update; releases only its own lock.
  slotlock caches verified tokens, but also checks with every request that the session is open,
    that the slot is published and has not started, and that the user has no place in it.
    It reads, decides and writes conditionally on the version, publishes every change, and
    maintains {len(SLOT_INDEXES)} indexes and the sessions where a peer has one index.
spread: each booking its own slot; hot: bookings of 20 slots; one: read a slot;
  list: 50 open slots of a day; mixed: 80 % one, 10 % list, 10 % spread.
Each target starts once and is warmed up; before each run all slots are free and Valkey is empty."""

COLUMNS: tuple[tuple[str, Metric, str], ...] = (
    ("rate / P1", rate, P1),
    ("rate / P2", rate, P2),
    ("rate / P2b", rate, P2B),
    ("p99 / P2", p99, P2),
    ("app CPU / P2", app_cpu, P2),
)


def format_header(plan: Plan, machine: Mapping[str, str]) -> str:
    """Return the size of the benchmark, the machine and the differences of the targets."""
    processes = " and ".join(map(str, plan.process_counts))
    size = (
        f"{plan.rounds} rounds of {plan.seconds} s a run, {plan.slots:,} slots, "
        f"processes of each target: {processes}"
    )
    return f"{size}\n{', '.join(f'{name} {value}' for name, value in machine.items())}\n{ABOUT}\n"


def format_run(run: Run) -> str:
    """Return one run in one line, with a line for each problem."""
    load = run.load
    verdict = "WRONG" if run.problems else "correct"
    line = (
        f"{run.processes} x  round {run.round}  {run.workload:6}  {run.target:8}  "
        f"{load.rate:8,.0f}/s  p99 {p99(run):7.1f} ms  {verdict}: {_outcomes([run])}; "
        f"{run.tally.booked} in MongoDB"
    )
    problems = [f"  !!! {run.target}, {run.workload}: {problem}" for problem in run.problems]
    return "\n".join([line, *problems])


def summary(figures: Figures) -> str:
    """Return the medians, the ratios and the verdict."""
    verdict = (
        f"!!! {figures.wrong} of {figures.count} runs were WRONG: see the lines marked !!! above"
        if figures.wrong
        else f"All {figures.count} runs were correct: MongoDB has every acknowledged booking."
    )
    scenarios = [
        *crowd_lines(figures.runs),
        *board_lines(figures.runs),
        *queue_lines(figures.queue_runs),
        *fan_out_lines(figures.fan_out_runs),
    ]
    tables = [*_medians(figures.runs), "", *_ratios(figures.runs), *scenarios]
    return "\n".join(["", *tables, "", verdict])


def cases(runs: Iterable[Run]) -> list[tuple[int, str]]:
    """Return the process counts with their workloads, in the order of the report."""
    counts = dict.fromkeys(run.processes for run in runs)
    return [(processes, workload) for processes in counts for workload in WORKLOADS]


def _medians(runs: Sequence[Run]) -> list[str]:
    lines = [
        "medians; CPU us: per request; busiest: the share of the busiest process of the app",
        f"{'':4}{'workload':9}{'target':10}{'requests/s':>10}{'p50 ms':>8}{'p99 ms':>8}{'p99.9':>8}"
        f"{'app CPU us':>11}{'mongod':>8}{'Valkey':>8}{'busiest':>9}   all outcomes",
    ]
    for processes, workload in cases(runs):
        for target in (*PEERS, SLOTLOCK, LIMITED):
            selected = select_runs(runs, processes, workload, target)
            if selected:
                lines.append(f"{processes} x {workload:9}{target:10}{_median_cells(selected)}")
    return lines


def _median_cells(runs: Sequence[Run]) -> str:
    return (
        f"{median(map(rate, runs)):>10,.0f}"
        f"{median(run.load.p50_us for run in runs) / 1000:>8.1f}"
        f"{median(map(p99, runs)):>8.1f}"
        f"{median(run.load.p999_us for run in runs) / 1000:>8.1f}"
        f"{median(map(app_cpu, runs)):>11,.0f}"
        f"{median(run.mongod_cpu_us for run in runs):>8,.0f}"
        f"{median(run.valkey_cpu_us for run in runs):>8,.0f}"
        f"{median(run.cpu.busiest_share for run in runs):>9.0%}"
        f"   {_outcomes(runs)}"
    )


def _outcomes(runs: Sequence[Run]) -> str:
    sums = {
        name: sum(run.load.outcomes[name] for run in runs) for name in sorted(runs[0].load.outcomes)
    }
    return ", ".join(f"{name} {n:,}" for name, n in sums.items() if n)


def _ratios(runs: Sequence[Run]) -> list[str]:
    titles = "".join(f"{title:>19}" for title, _, _ in COLUMNS)
    lines = [
        f"{SLOTLOCK} / peer in the same round: median (lowest-highest) of the rounds",
        f"{'':4}{'workload':9}{'requests/s':>10}{titles}",
    ]
    for case in cases(runs):
        cells = [
            str(spread_of_ratios(runs, metric, case, SLOTLOCK, base)) for _, metric, base in COLUMNS
        ]
        own_rate = median(map(rate, select_runs(runs, *case, SLOTLOCK)))
        row = "".join(f"{cell:>19}" for cell in cells)
        lines.append(f"{case[0]} x {case[1]:9}{own_rate:>10,.0f}{row}")
    return [*lines, "", *_rate_limits(runs)]


def _rate_limits(runs: Sequence[Run]) -> list[str]:
    """Return the cost of rate limits, if measured: the rate with them divided by that without."""
    limited = [run for run in runs if run.target == LIMITED]
    return [
        f"rate limits on / off, {processes} x {workload}: requests/s "
        f"{spread_of_ratios(runs, rate, (processes, workload), LIMITED, SLOTLOCK)}, app CPU "
        f"{spread_of_ratios(runs, app_cpu, (processes, workload), LIMITED, SLOTLOCK)}"
        for processes, workload in cases(limited)
        if workload in LIMITED_WORKLOADS
    ]


def write_json(file: Path, plan: Plan, machine: Mapping[str, str], figures: Figures) -> None:
    """Write all raw figures as JSON."""
    raw: dict[str, Any] = {
        "machine": machine,
        "plan": asdict(plan),
        **asdict(figures),
        "ratios": {
            f"{processes} x {workload}": {
                title: ratios(figures.runs, metric, (processes, workload), SLOTLOCK, base)
                for title, metric, base in COLUMNS
            }
            for processes, workload in cases(figures.runs)
        },
    }
    file.write_text(json.dumps(raw, indent=1) + "\n")
