"""What a long run prints at its end: one table of counts, and whether it passed."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.checks.ticket_history import count_ticket_ends
from bench.soak.clients.watchers import Watcher
from bench.soak.world import World


def table(world: World, records: list[BookingRecord], watchers: list[Watcher]) -> str:
    """Every count, a line each."""
    ledger, acts = world.run_log, defaultdict[str, Counter[str]](Counter)
    for (name, outcome), count in ledger.outcomes.items():
        acts[name][outcome] += count
    lines = [f"{'requests':<24}{sum(ledger.outcomes.values())}"]
    lines += [_line(f"  {name}", outcomes) for name, outcomes in sorted(acts.items())]
    lines.append(f"{'answers compared by key':<24}{ledger.compared_responses}")
    lines.append(_line("tickets ended", count_ticket_ends(ledger)))
    lines.append(
        _line("tickets told", Counter(f"{t.source} {t.status}" for t in ledger.ticket_observations))
    )
    lines.append(_line("chaos", ledger.chaos))
    lines.append(_line("bookings made by", Counter(record.actions[0] for record in records)))
    lines.append(
        _line("bookings ended by", Counter(r.actions[-1] for r in records if not r.is_live))
    )
    lines.append(f"{'bookings live':<24}{sum(record.is_live for record in records)}")
    lines.append(_line("checks", ledger.checks))
    for watcher in watchers:
        told = f"{watcher.messages} messages over {watcher.connection_count} connections"
        lines.append(f"  {watcher.name:<22}{told}")
    lines += _memory_lines(world)
    return "\n".join(lines)


def _line(name: str, counts: Counter[str]) -> str:
    return f"{name:<24}" + ", ".join(f"{count} {what}" for what, count in counts.most_common())


def _memory_lines(world: World) -> Iterable[str]:
    for app in (*world.apps, world.worker):
        lives = ", ".join(
            f"{life.first_mib:.0f}→{life.last_mib:.0f} "
            f"({(life.ended_at or life.started_at) - life.started_at:.0f} s)"
            for life in app.process_runs
        )
        yield f"{f'memory {app.name} (MiB)':<24}{lives}"


def verdict(world: World) -> str:
    """PASS, or FAIL and how often what was broken."""
    broken = world.run_log.violations
    if not broken:
        return f"PASS (seed {world.seed})"
    return f"FAIL (seed {world.seed}): " + ", ".join(f"{n} {what}" for what, n in broken.items())
