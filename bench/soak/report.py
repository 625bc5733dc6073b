"""The output at the end of a run: a table of all counts, and the verdict."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.checks.ticket_history import count_ticket_ends
from bench.soak.clients.watchers import Watcher
from bench.soak.world import World


def table(world: World, records: list[BookingRecord], watchers: list[Watcher]) -> str:
    """Return all counts, a line each."""
    run_log, operations = world.run_log, defaultdict[str, Counter[str]](Counter)
    for (name, outcome), count in run_log.outcomes.items():
        operations[name][outcome] += count
    observations = Counter(f"{o.source} {o.status}" for o in run_log.ticket_observations)
    lines = [_value("requests", sum(run_log.outcomes.values()))]
    lines += [_line(f"  {name}", outcomes) for name, outcomes in sorted(operations.items())]
    lines.append(_value("responses compared", run_log.compared_responses))
    lines.append(_line("ticket ends", count_ticket_ends(run_log)))
    lines.append(_line("ticket observations", observations))
    lines.append(_line("chaos", run_log.chaos))
    lines.append(_line("bookings created by", Counter(record.actions[0] for record in records)))
    lines.append(
        _line("bookings ended by", Counter(r.actions[-1] for r in records if not r.is_live))
    )
    lines.append(_value("bookings live", sum(record.is_live for record in records)))
    lines.append(_line("checks", run_log.checks))
    for watcher in watchers:
        counts = f"{watcher.messages} messages over {watcher.connection_count} connections"
        lines.append(f"  {watcher.name:<22}{counts}")
    lines += _memory_lines(world)
    return "\n".join(lines)


def _value(name: str, value: int) -> str:
    return f"{name:<24}{value}"


def _line(name: str, counts: Counter[str]) -> str:
    return f"{name:<24}" + ", ".join(f"{count} {label}" for label, count in counts.most_common())


def _memory_lines(world: World) -> Iterable[str]:
    for app in (*world.apps, world.worker):
        runs = ", ".join(
            f"{run.first_mib:.0f}→{run.last_mib:.0f} "
            f"({(run.ended_at or run.started_at) - run.started_at:.0f} s)"
            for run in app.process_runs
        )
        yield f"{f'memory {app.name} (MiB)':<24}{runs}"


def verdict(world: World) -> str:
    """Return PASS, or FAIL with the number of violations of each kind."""
    violations = world.run_log.violations
    if not violations:
        return f"PASS (seed {world.seed})"
    counts = ", ".join(f"{count} {kind}" for kind, count in violations.items())
    return f"FAIL (seed {world.seed}): {counts}"
