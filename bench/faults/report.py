"""The report of a campaign: a table as Markdown, and the same figures as JSON."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.faults.availability import longest_gap_s
from bench.faults.injection.injector import InjectedFault

# After such a fault, no server can accept bookings before an election, or before its end.
NEEDS_ELECTION = {
    "mongod primary killed",
    "mongod primary frozen",
    "partition: primary alone",
    "partition: primary with an app",
    "disk of the primary full",
}
HAS_NO_MAJORITY = {"mongod both secondaries frozen", "partition: no majority"}


def physical_limit(kind: str, election_timeout_ms: int) -> str:
    """Return for how long MongoDB itself accepts no booking after a fault; else 0."""
    if kind in NEEDS_ELECTION:
        return f"election, {election_timeout_ms / 1000:g} s and more"
    return "the fault itself" if kind in HAS_NO_MAJORITY else "0"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """How often a kind of fault was injected, and the longest times without a booking."""

    kind: str
    count: int
    longest_fault_s: float
    longest_gap_s: float


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
    faults: int
    violations: list[str]
    longest_stall_s: float
    rows: list[FaultRow]
    skipped: dict[str, str]
    outcomes: dict[str, int]


def fault_rows(injected: Sequence[InjectedFault], acknowledged_at: list[float]) -> list[FaultRow]:
    """Return a row for each kind of fault, sorted by name."""
    by_kind = defaultdict[str, list[InjectedFault]](list)
    for fault in injected:
        by_kind[fault.kind].append(fault)
    return [
        FaultRow(
            kind,
            len(faults),
            round(max(fault.ended_at - fault.started_at for fault in faults), 1),
            round(
                max(
                    longest_gap_s(acknowledged_at, fault.started_at, fault.healthy_at)
                    for fault in faults
                ),
                1,
            ),
        )
        for kind, faults in sorted(by_kind.items())
    ]


def table(report: Report) -> str:
    """Return the report as Markdown."""
    lines = [
        f"seed {report.seed}, {report.minutes:g} minutes, Redis {report.redis}, "
        f"election timeout {report.election_timeout_ms} ms, {report.machine}",
        f"{report.requests} requests ({report.requests_per_s:.0f}/s), {report.faults} faults, "
        f"{report.slot_versions} slot versions, {len(report.violations)} violations, "
        f"longest stall of the campaign itself {report.longest_stall_s:.1f} s",
        "",
        "| fault | times | longest fault (s) | longest time without a booking (s) | limit |",
        "|---|---:|---:|---:|---|",
    ]
    lines += [
        f"| {row.kind} | {row.count} | {row.longest_fault_s} | {row.longest_gap_s} | "
        f"{physical_limit(row.kind, report.election_timeout_ms)} |"
        for row in report.rows
    ]
    lines += [f"skipped: {kind}, because {reason}" for kind, reason in report.skipped.items()]
    lines += [f"VIOLATION {violation}" for violation in report.violations]
    return "\n".join(lines)


def to_json(report: Report) -> dict[str, object]:
    """Return the report for a JSON file."""
    return asdict(report)
