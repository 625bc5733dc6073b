"""The report: a line for each run, the medians, and slotlock's ratio to the faster peer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from bench.quick.load import CONNECTIONS, WORKLOADS
from bench.quick.rounds import Plan, Run
from bench.quick.targets import USERS

SLOTLOCK, PEER = "slotlock", "P2"

ABOUT = f"""\
P1 is Express, mongoose and ioredis over REST.
P2 is Fastify, Mercurius (JIT), the MongoDB driver and ioredis over GraphQL.
The same: one mongod and one Valkey, w: majority and journaled, two processes each,
  NODE_ENV=production, slots of one place, wrk with {CONNECTIONS} keep-alive connections,
  tokens of {USERS} users.
Different:
  P1 reads without authentication; books by find and save; releases its lock with a plain DEL.
  P2 verifies the token each time; books by one conditional update; releases only its own lock.
  slotlock caches verified tokens, but also checks that the session is open (at most 5 s late),
    that the slot is published and has not started, and that the user has no place in it.
    It reads, decides and writes conditionally on the version, publishes every change, loads the
    user who booked, and maintains four indexes and the sessions where a peer has one index.
Each target starts once and is warmed up; before each run all slots are free and Valkey is empty."""


def format_header(plan: Plan, machine: Mapping[str, str]) -> str:
    """Return the size of the benchmark, the machine and the differences of the targets."""
    size = f"{plan.rounds} rounds of {plan.seconds} s a run, {plan.slots:,} slots"
    return f"{size}\n{', '.join(f'{name} {value}' for name, value in machine.items())}\n{ABOUT}\n"


def format_run(run: Run) -> str:
    """Return one run in one line, with a line for each problem."""
    load = run.load
    outcomes = ", ".join(f"{name} {n}" for name, n in sorted(load.outcomes.items()) if n)
    verdict = "WRONG" if run.problems else "correct"
    line = (
        f"round {run.round}  {run.workload:6}  {run.target:8}  {load.rate:8,.0f}/s  "
        f"p99 {load.p99_us / 1000:7.1f} ms  {verdict}: {outcomes}; {run.tally.booked} in MongoDB"
    )
    problems = [f"  !!! {run.target}, {run.workload}: {problem}" for problem in run.problems]
    return "\n".join([line, *problems])


def summary(runs: Sequence[Run]) -> str:
    """Return the medians, the ratios and the verdict."""
    wrong = sum(bool(run.problems) for run in runs)
    verdict = (
        f"!!! {wrong} of {len(runs)} runs were WRONG: see the lines marked !!! above"
        if wrong
        else f"All {len(runs)} runs were correct: MongoDB holds every acknowledged booking."
    )
    return "\n".join(["", *_table(runs), "", *_ratios(runs), "", verdict])


def _table(runs: Sequence[Run]) -> list[str]:
    lines = [
        f"{'medians':8}{'target':10}{'requests/s':>11}{'p50 ms':>9}{'p99 ms':>9}{'app CPU us':>12}"
        f"{'busier':>8}   all outcomes"
    ]
    for workload in WORKLOADS:
        for target in sorted({run.target for run in runs}):
            selected = _select_runs(runs, workload, target)
            lines.append(
                f"{workload:8}{target:10}{median(run.load.rate for run in selected):>11,.0f}"
                f"{median(run.load.p50_us for run in selected) / 1000:>9.1f}"
                f"{median(run.load.p99_us for run in selected) / 1000:>9.1f}"
                f"{_cpu(selected):>12}{_busier_share(selected):>8}   {_outcomes(selected)}"
            )
    return [
        *lines,
        "app CPU us: of the app's processes, per request; busier: the share of the busier process",
    ]


def _cpu(runs: Iterable[Run]) -> str:
    known = [cost for run in runs if (cost := run.cpu_us_per_request) is not None]
    return f"{median(known):,.0f}" if known else "-"


def _busier_share(runs: Iterable[Run]) -> str:
    shares = [run.cpu_s[0] / sum(run.cpu_s) for run in runs if sum(run.cpu_s)]
    return f"{median(shares):.0%}" if shares else "-"


def _outcomes(runs: Sequence[Run]) -> str:
    names = list(runs[0].load.outcomes)
    sums = {name: sum(run.load.outcomes[name] for run in runs) for name in sorted(names)}
    return ", ".join(f"{name} {n:,}" for name, n in sums.items() if n)


def ratios(runs: Sequence[Run]) -> dict[str, list[float]]:
    """Return slotlock's rate divided by the peer's in the same round, by workload."""
    return {
        workload: [
            own.load.rate / peer.load.rate if peer.load.rate else float("inf")
            for own, peer in zip(
                _select_runs(runs, workload, SLOTLOCK),
                _select_runs(runs, workload, PEER),
                strict=True,
            )
        ]
        for workload in WORKLOADS
    }


def _ratios(runs: Sequence[Run]) -> list[str]:
    lines = [f"{SLOTLOCK} / {PEER}, requests/s in the same round"]
    for workload, each in ratios(runs).items():
        shown = "  ".join(f"{ratio:.2f}" for ratio in each)
        lines.append(f"{workload:8}median {median(each):.2f}   by round {shown}")
    return lines


def _select_runs(runs: Iterable[Run], workload: str, target: str) -> list[Run]:
    return [run for run in runs if run.workload == workload and run.target == target]


def write_json(file: Path, plan: Plan, machine: Mapping[str, str], runs: Sequence[Run]) -> None:
    """Write all raw figures as JSON."""
    raw: dict[str, Any] = {
        "machine": machine,
        "plan": asdict(plan),
        "runs": [asdict(run) for run in runs],
        "ratios": ratios(runs),
    }
    file.write_text(json.dumps(raw, indent=1) + "\n")
