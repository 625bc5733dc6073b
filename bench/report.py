"""What a reader gets: a line for each run, the medians, and slotlock's ratio to the better peer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from bench.load import CONNECTIONS, WORKLOADS
from bench.rounds import Plan, Run
from bench.targets import USERS

SLOTLOCK, PEER = "slotlock", "P2"

ABOUT = f"""\
P1 is Express, mongoose and ioredis over REST.
P2 is Fastify, Mercurius (JIT), the MongoDB driver and ioredis over GraphQL.
Alike: one mongod and one Valkey, w: majority and journaled, two processes each,
  NODE_ENV=production, slots of one place, wrk with {CONNECTIONS} keep-alive connections,
  {USERS} people's tokens.
Not alike:
  P1 reads without asking who it is for; books by find and save; frees its lock with a plain DEL.
  P2 verifies the token each time; books by one conditional update; frees only its own lock.
  slotlock remembers a verified token, but also sees that its session is still open (5 s late at
    most), that the slot is published and has not begun, and that the person has no place in it;
    it reads, decides and writes guarded by version, announces every change, looks up the person
    who booked, and keeps four indexes and the sessions where a peer keeps one index.
All are started once, warmed up and stay up; before each run all slots are free, Valkey is empty."""


def format_header(plan: Plan, machine: Mapping[str, str]) -> str:
    """What is about to be measured, and on what."""
    size = f"{plan.rounds} rounds of {plan.seconds} s a run, {plan.slots:,} slots"
    return f"{size}\n{', '.join(f'{name} {what}' for name, what in machine.items())}\n{ABOUT}\n"


def format_run(run: Run) -> str:
    """One run in one line, and its problems loudly."""
    load = run.load
    answers = ", ".join(f"{name} {n}" for name, n in sorted(load.outcomes.items()) if n)
    verdict = "WRONG" if run.problems else "correct"
    line = (
        f"round {run.round}  {run.workload:6}  {run.target:8}  {load.rate:8,.0f}/s  "
        f"p99 {load.p99_us / 1000:7.1f} ms  {verdict}: {answers}; {run.tally.booked} in MongoDB"
    )
    shouts = [f"  !!! {run.target}, {run.workload}: {problem}" for problem in run.problems]
    return "\n".join([line, *shouts])


def summary(runs: Sequence[Run]) -> str:
    """The medians, the ratios and the verdict."""
    wrong = sum(bool(run.problems) for run in runs)
    verdict = (
        f"!!! {wrong} of {len(runs)} runs were WRONG: see the lines marked !!! above"
        if wrong
        else f"All {len(runs)} runs were correct: MongoDB holds every booking that was answered."
    )
    return "\n".join(["", *_table(runs), "", *_ratios(runs), "", verdict])


def _table(runs: Sequence[Run]) -> list[str]:
    lines = [
        f"{'medians':8}{'target':10}{'requests/s':>11}{'p50 ms':>9}{'p99 ms':>9}{'app CPU us':>12}"
        f"{'busier':>8}   answers in all"
    ]
    for workload in WORKLOADS:
        for target in sorted({run.target for run in runs}):
            some = _select_runs(runs, workload, target)
            lines.append(
                f"{workload:8}{target:10}{median(run.load.rate for run in some):>11,.0f}"
                f"{median(run.load.p50_us for run in some) / 1000:>9.1f}"
                f"{median(run.load.p99_us for run in some) / 1000:>9.1f}"
                f"{_cpu(some):>12}{_busier_share(some):>8}   {_answers(some)}"
            )
    return [
        *lines,
        "app CPU us: of the app's processes, a request; busier: the busier process's share of it",
    ]


def _cpu(runs: Iterable[Run]) -> str:
    known = [cost for run in runs if (cost := run.cpu_us_per_request) is not None]
    return f"{median(known):,.0f}" if known else "-"


def _busier_share(runs: Iterable[Run]) -> str:
    shares = [run.cpu_s[0] / sum(run.cpu_s) for run in runs if sum(run.cpu_s)]
    return f"{median(shares):.0%}" if shares else "-"


def _answers(runs: Sequence[Run]) -> str:
    names = list(runs[0].load.outcomes)
    sums = {name: sum(run.load.outcomes[name] for run in runs) for name in sorted(names)}
    return ", ".join(f"{name} {n:,}" for name, n in sums.items() if n)


def ratios(runs: Sequence[Run]) -> dict[str, list[float]]:
    """slotlock's requests a second by the peer's in the same round, as the machine drifts."""
    return {
        workload: [
            us.load.rate / peer.load.rate if peer.load.rate else float("inf")
            for us, peer in zip(
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
    """Every raw figure, for those who draw or compare."""
    raw: dict[str, Any] = {
        "machine": machine,
        "plan": asdict(plan),
        "runs": [asdict(run) for run in runs],
        "ratios": ratios(runs),
    }
    file.write_text(json.dumps(raw, indent=1) + "\n")
