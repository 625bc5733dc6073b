"""What a long run prints at its end: one table of counts, and whether it passed."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from bench.soak.records import Record
from bench.soak.tickets import ends
from bench.soak.watch import Watcher
from bench.soak.world import World


def table(world: World, records: list[Record], watchers: list[Watcher]) -> str:
    """Every count, a line each."""
    ledger, acts = world.ledger, defaultdict[str, Counter[str]](Counter)
    for (name, outcome), count in ledger.outcomes.items():
        acts[name][outcome] += count
    lines = [f"{'requests':<24}{sum(ledger.outcomes.values())}"]
    lines += [_line(f"  {name}", outcomes) for name, outcomes in sorted(acts.items())]
    lines.append(f"{'answers compared by key':<24}{ledger.compared}")
    lines.append(_line("tickets ended", ends(ledger)))
    lines.append(_line("tickets told", Counter(f"{t.how} {t.status}" for t in ledger.tellings)))
    lines.append(_line("chaos", ledger.chaos))
    lines.append(_line("bookings made by", Counter(record.deeds[0] for record in records)))
    lines.append(_line("bookings ended by", Counter(r.deeds[-1] for r in records if not r.live)))
    lines.append(f"{'bookings live':<24}{sum(record.live for record in records)}")
    lines.append(_line("checks", ledger.checks))
    for watcher in watchers:
        told = f"{watcher.messages} messages over {watcher.times} connections"
        lines.append(f"  {watcher.name:<22}{told}")
    lines += _memory(world)
    return "\n".join(lines)


def _line(name: str, counts: Counter[str]) -> str:
    return f"{name:<24}" + ", ".join(f"{count} {what}" for what, count in counts.most_common())


def _memory(world: World) -> Iterable[str]:
    for app in (*world.apps, world.worker):
        lives = ", ".join(
            f"{life.first:.0f}→{life.last:.0f} ({(life.ended or life.began) - life.began:.0f} s)"
            for life in app.lives
        )
        yield f"{f'memory {app.name} (MiB)':<24}{lives}"


def verdict(world: World) -> str:
    """PASS, or FAIL and how often what was broken."""
    broken = world.ledger.violations
    if not broken:
        return f"PASS (seed {world.seed})"
    return f"FAIL (seed {world.seed}): " + ", ".join(f"{n} {what}" for what, n in broken.items())
