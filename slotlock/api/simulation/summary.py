"""What is printed in the end: who got which place, the counts, the waits, the invariants."""

from slotlock.api.simulation.findings import Run, ordered

MOST_SLOTS, MOST_NAMES, MOST_PROBLEMS = 20, 8, 3


def summary(run: Run) -> str:
    """All of it, as text."""
    return "\n".join(["", *_table(run), "", *_figures(run), "", *_invariants(run)])


def _table(run: Run) -> list[str]:
    holders, lines = run.holders(), []
    width = max(len(slot.title) for slot in run.evidence.slots)
    for slot in run.evidence.slots[:MOST_SLOTS]:
        names, capacity = holders[slot.id], run.evidence.truth.slots[slot.id].capacity
        more = len(names) - MOST_NAMES
        shown = ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"{slot.title:{width}}  {len(names)} of {capacity}  {shown or 'nobody'}")
    if (left := len(run.evidence.slots) - MOST_SLOTS) > 0:
        lines.append(f"and {left} more slots, which --json tells of")
    return lines


def _figures(run: Run) -> list[str]:
    ledger, seconds = run.ledger, run.seconds or float("inf")  # without an answer there is no rate
    again = [f"{kind} {count:,}" for kind, count in run.retries.items() if count]
    cpu_ms = run.cpu_seconds * 1000 / max(run.requests, 1)
    tickets = sum(ask.ticket_id is not None for ask in ledger.asks)
    return [
        f"answers      {_counts(ordered(ledger.outcomes))}",
        *([f"tickets      {tickets:,}"] if tickets else []),
        f"first answer {_waits(run.first_ms)}",
        f"final answer {_waits(run.final_ms)}",
        f"rush         {run.seconds:.2f} s: {ledger.answered / seconds:,.0f} final answers/s, "
        f"{ledger.booked / seconds:,.0f} bookings/s, {run.requests / seconds:,.0f} requests/s",
        f"asked again  {', '.join(again) or 'nobody had to'}",
        f"simulation   {run.cpu_seconds:.2f} s of CPU, {cpu_ms:.2f} ms a request; "
        f"seed {run.plan.seed}",
    ]


def _counts(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in outcomes.items()) or "none"


def _waits(waits: dict[str, float]) -> str:
    return ", ".join(f"{name} {wait:,.1f} ms" for name, wait in waits.items()) or "none"


def _invariants(run: Run) -> list[str]:
    lines = []
    for invariant in run.invariants:
        lines.append(f"{'ok' if invariant.holds else 'BROKEN':7} {invariant.text}")
        lines += [f"        {problem}" for problem in invariant.problems[:MOST_PROBLEMS]]
        if (more := len(invariant.problems) - MOST_PROBLEMS) > 0:
            lines.append(f"        and {more} more")
    return lines
