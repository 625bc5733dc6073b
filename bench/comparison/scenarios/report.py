"""The report of the scenarios: a line for each run, and the medians."""

from collections.abc import Callable, Sequence
from statistics import median

from bench.comparison.ratios import Spread, rate, select_runs
from bench.comparison.rounds import Run
from bench.comparison.scenarios import board, crowd
from bench.comparison.scenarios.fan_out import FanOutRun
from bench.comparison.scenarios.queue import QueueRun
from bench.comparison.targets.targets import P2, SLOTLOCK

FAN_OUT_COLUMNS: tuple[tuple[str, Callable[[FanOutRun], float]], ...] = (
    ("first to last ms", lambda run: run.first_to_last_ms),
    ("publish to last ms", lambda run: run.to_last_ms),
    ("app CPU us a delivery", lambda run: run.app_cpu_us),
    ("KiB a subscriber", lambda run: run.memory_kib),
)


def format_queue_run(run: QueueRun) -> str:
    """Return one run in one line, with a line for each problem."""
    verdict = "WRONG" if run.problems else "correct"
    line = (
        f"round {run.round}  queue  {run.ticket_rate:8,.0f} tickets/s, "
        f"{run.rate:,.0f} final answers/s, {verdict}: {run.load.outcomes['ticket']} tickets, "
        f"{run.load.outcomes['full']} refused at once, {run.booked} in MongoDB"
    )
    return "\n".join([line, *(f"  !!! queue: {problem}" for problem in run.problems)])


def format_fan_out_run(run: FanOutRun) -> str:
    """Return one run in one line."""
    return (
        f"round {run.round}  fan-out to {run.subscribers:,}  {run.target:8}  first to last "
        f"{run.first_to_last_ms:.1f} ms, publish to last {run.to_last_ms:.1f} ms"
    )


def crowd_lines(runs: Sequence[Run]) -> list[str]:
    """Return the successful bookings of crowds a second."""
    lines = []
    for processes in dict.fromkeys(run.processes for run in runs):
        selected = select_runs(runs, processes, crowd.WORKLOAD, SLOTLOCK)
        if selected:
            lines.append(
                f"crowd, {crowd.CONNECTIONS} users wait for one slot of {crowd.USERS} places, "
                f"{processes} x slotlock: {_whole_numbers(list(map(rate, selected)))} bookings/s, "
                f"p50 {median(run.load.p50_us for run in selected) / 1000:.0f} ms, "
                f"p99 {median(run.load.p99_us for run in selected) / 1000:.0f} ms, CPU us app "
                f"{median(run.app_cpu_us for run in selected):.0f}, mongod "
                f"{median(run.mongod_cpu_us for run in selected):.0f}, Valkey "
                f"{median(run.valkey_cpu_us for run in selected):.0f}"
            )
    return lines


def board_lines(runs: Sequence[Run]) -> list[str]:
    """Return what many first loads of the board cost, from the cost of one request."""
    lines = []
    for processes in dict.fromkeys(run.processes for run in runs):
        selected = select_runs(runs, processes, board.WORKLOAD, SLOTLOCK)
        if selected:
            loads, us = board.FIRST_LOADS, 1e6
            lines.append(
                f"open the board, {loads:,} first loads of a list of {board.COURSES} courses, "
                f"{processes} x slotlock: {loads:,} requests, "
                f"{loads / median(map(rate, selected)):.1f} s, CPU s app "
                f"{loads * median(run.app_cpu_us for run in selected) / us:.1f}, mongod "
                f"{loads * median(run.mongod_cpu_us for run in selected) / us:.1f}, Valkey "
                f"{loads * median(run.valkey_cpu_us for run in selected) / us:.1f}"
            )
    return lines


def queue_lines(runs: Sequence[QueueRun]) -> list[str]:
    """Return the tickets that were decided a second."""
    if not runs:
        return []
    requests = [run.load.requests for run in runs]
    app = [run.cpu.app_sum_s / n * 1e6 for run, n in zip(runs, requests, strict=True)]
    workers = [run.worker_cpu_s / n * 1e6 for run, n in zip(runs, requests, strict=True)]
    mongod = [run.cpu.mongod_s / n * 1e6 for run, n in zip(runs, requests, strict=True)]
    return [
        f"queue, 2 processes and 2 workers: {_whole_numbers([run.ticket_rate for run in runs])} "
        f"tickets/s decided, {_whole_numbers([run.rate for run in runs])} final answers/s, "
        f"CPU us a request: app {median(app):.0f}, workers {median(workers):.0f}, "
        f"mongod {median(mongod):.0f}"
    ]


def fan_out_lines(runs: Sequence[FanOutRun]) -> list[str]:
    """Return the figures of both targets and their ratios, for each number of subscribers."""
    lines = []
    for subscribers in dict.fromkeys(run.subscribers for run in runs):
        own, peer = (
            [run for run in runs if (run.subscribers, run.target) == (subscribers, target)]
            for target in (SLOTLOCK, P2)
        )
        for title, metric in FAN_OUT_COLUMNS:
            own_values, peer_values = list(map(metric, own)), list(map(metric, peer))
            lines.append(
                f"fan-out to {subscribers:,}, {title}: {SLOTLOCK} {median(own_values):.1f}, "
                f"{P2} {median(peer_values):.1f}; ratio {divide(own_values, peer_values)}"
            )
    return lines


def divide(values: Sequence[float], base_values: Sequence[float]) -> Spread:
    """Return the ratios of two targets in the same round."""
    return Spread.of(
        [
            value / base if base else float("inf")
            for value, base in zip(values, base_values, strict=True)
        ]
    )


def _whole_numbers(values: Sequence[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"
