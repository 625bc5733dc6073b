"""The report of a campaign: a table as Markdown, and the same figures as JSON."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from bench.faults.availability import longest_gap_s
from bench.faults.injection.injector import InjectedFault
from bench.faults.injection.mongo_faults import ALL_KILLED, FULL_DISK
from bench.faults.topology.redis_servers import DOWN_AFTER_MS

NO_FAULT = "no fault"
# During such a fault, no server can accept bookings before an election, or before its end.
NEEDS_ELECTION = {
    "mongod primary killed",
    "mongod primary killed during lag",
    "mongod primary frozen",
    "partition: primary alone",
    "partition: primary with an app",
    FULL_DISK,
    "pair: Redis and primary killed",
    "pair: clock skewed, primary killed",
}
HAS_NO_MAJORITY = {ALL_KILLED, "mongod both secondaries frozen", "partition: no majority"}
# One app cannot book while the fault lasts; the other is not concerned.
STOPS_ONE_APP = {
    "app killed",
    "app stopped",
    "app frozen",
    "full queue: app killed",
    "partition: app without MongoDB",
    "partition: primary with an app",
}
NEEDS_SENTINEL = {"Redis killed", "Redis frozen"}


@dataclass(frozen=True, slots=True)
class Failover:
    """How long after the start of a fault a primary was elected, and a majority followed it."""

    election_s: float
    majority_s: float


def physical_limit(kind: str, redis: str, longest: Failover | None) -> str:
    """Return what a booking must wait for after such a fault, at the better and worse app."""
    if kind in HAS_NO_MAJORITY:
        return "the fault"
    better = "0"
    if longest is not None:
        better = f"election {longest.election_s:g} s, its majority {longest.majority_s:g} s"
    elif kind in NEEDS_ELECTION:
        return "the fault, no election"
    elif kind in NEEDS_SENTINEL and redis == "sentinel":
        better = f"0 without Redis; down-after, {DOWN_AFTER_MS / 1000:g} s"
    return f"{better}; worse app: the fault" if kind in STOPS_ONE_APP else better


@dataclass(frozen=True, slots=True)
class FaultRow:
    """How often a kind of fault was injected, and the longest times without a booking.

    For each fault, the better app is the one that was without bookings for the shorter time.
    """

    kind: str
    count: int
    longest_fault_s: float
    better_app_gap_s: float
    worse_app_gap_s: float
    longest_failover: Failover | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a campaign."""

    seed: int
    minutes: float
    redis: str
    election_timeout_ms: int
    control: str | None
    machine: str
    requests: int
    requests_per_s: float
    slot_versions: int
    fences: int
    faults: int
    violations: list[str]
    longest_stall_s: float
    rows: list[FaultRow]
    skipped: dict[str, str]
    outcomes: dict[str, int]


def fault_rows(
    injected: Sequence[InjectedFault], acknowledged_at: Sequence[list[float]]
) -> list[FaultRow]:
    """Return a row for each kind of fault, sorted by name, and one for the times between them.

    `acknowledged_at` has for each app the times of its acknowledged bookings.
    """
    by_kind = defaultdict[str, list[InjectedFault]](list)
    for fault in injected:
        by_kind[fault.kind].append(fault)
    rows = [_fault_row(kind, faults, acknowledged_at) for kind, faults in sorted(by_kind.items())]
    pauses = [
        [
            longest_gap_s(times[: bisect_right(times, later.started_at)], since, later.started_at)
            for times in acknowledged_at
        ]
        for earlier, later in pairwise(injected)
        # A gap that the fault caused counts to its end, which can be in the pause.
        if (since := max(_first_after(times, earlier.healthy_at) for times in acknowledged_at))
        < later.started_at
    ]
    return [*rows, _row(NO_FAULT, 0.0, pauses)] if pauses else rows


def _fault_row(
    kind: str, faults: Sequence[InjectedFault], acknowledged_at: Sequence[list[float]]
) -> FaultRow:
    gaps = [
        [longest_gap_s(times, fault.started_at, fault.healthy_at) for times in acknowledged_at]
        for fault in faults
    ]
    failovers = [
        Failover(
            round(fault.election.elected_at - fault.started_at, 1),
            round(fault.election.majority_at - fault.started_at, 1),
        )
        for fault in faults
        if fault.election is not None
    ]
    longest = max(failovers, key=lambda each: each.majority_s, default=None)
    longest_fault_s = max(fault.ended_at - fault.started_at for fault in faults)
    return _row(kind, longest_fault_s, gaps, longest)


def _row(
    kind: str,
    longest_fault_s: float,
    gaps: Sequence[Sequence[float]],
    longest: Failover | None = None,
) -> FaultRow:
    better, worse = round(max(map(min, gaps)), 1), round(max(map(max, gaps)), 1)
    return FaultRow(kind, len(gaps), round(longest_fault_s, 1), better, worse, longest)


def _first_after(times: list[float], moment: float) -> float:
    index = bisect_right(times, moment)
    return times[index] if index < len(times) else float("inf")


def table(report: Report) -> str:
    """Return the report as Markdown."""
    lines = [
        f"seed {report.seed}, {report.minutes:g} minutes, Redis {report.redis}, "
        f"election timeout {report.election_timeout_ms} ms, {report.machine}",
        f"{report.requests} requests ({report.requests_per_s:.0f}/s), {report.faults} faults, "
        f"{report.slot_versions} slot versions, {report.fences} fencing tokens, "
        f"{len(report.violations)} violations, "
        f"longest stall of the campaign itself {report.longest_stall_s:.1f} s",
        "",
        "| fault | times | longest fault (s) | better app (s) | worse app (s) | limit |",
        "|---|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {row.kind} | {row.count} | {row.longest_fault_s} | {row.better_app_gap_s} | "
        f"{row.worse_app_gap_s} | "
        f"{physical_limit(row.kind, report.redis, row.longest_failover)} |"
        for row in report.rows
    ]
    lines += [f"skipped: {kind}, because {reason}" for kind, reason in report.skipped.items()]
    lines += [f"VIOLATION {violation}" for violation in report.violations]
    verdict = f"{len(report.violations)} violations" if report.violations else "no violation"
    lines.append(f"verdict: {verdict} with seed {report.seed} and Redis {report.redis}")
    return "\n".join(lines)


def to_json(report: Report) -> dict[str, object]:
    """Return the report for a JSON file."""
    return asdict(report)
