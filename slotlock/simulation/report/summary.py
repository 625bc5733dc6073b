"""What is printed in the end: who got which place, the counts, the waits, the invariants."""

from slotlock.simulation.report.metrics import SimulationResult, sort_outcomes

MAX_SLOTS, MAX_NAMES, MAX_PROBLEMS = 20, 8, 3


def format_summary(result: SimulationResult) -> str:
    """All of it, as text."""
    return "\n".join(["", *_table(result), "", *_statistics(result), "", *_invariants(result)])


def _table(result: SimulationResult) -> list[str]:
    holders, lines = result.holders(), []
    width = max(len(slot.title) for slot in result.evidence.slots)
    for slot in result.evidence.slots[:MAX_SLOTS]:
        names, capacity = holders[slot.id], result.evidence.server_state.slots[slot.id].capacity
        more = len(names) - MAX_NAMES
        shown = ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"{slot.title:{width}}  {len(names)} of {capacity}  {shown or 'nobody'}")
    if (left := len(result.evidence.slots) - MAX_SLOTS) > 0:
        lines.append(f"and {left} more slots, which --json tells of")
    return lines


def _statistics(result: SimulationResult) -> list[str]:
    ledger, seconds = (
        result.attempt_log,
        result.duration_s or float("inf"),
    )  # without an answer there is no rate
    again = [f"{kind} {count:,}" for kind, count in result.retries.items() if count]
    cpu_ms = result.cpu_seconds * 1000 / max(result.request_count, 1)
    tickets = sum(ask.ticket_id is not None for ask in ledger.attempts)
    return [
        f"answers      {_counts(sort_outcomes(ledger.outcomes))}",
        *([f"tickets      {tickets:,}"] if tickets else []),
        f"first answer {_waits(result.first_response_ms)}",
        f"final answer {_waits(result.final_response_ms)}",
        f"rush         {result.duration_s:.2f} s: "
        f"{ledger.answered_count / seconds:,.0f} final answers/s, "
        f"{ledger.booked_count / seconds:,.0f} bookings/s, "
        f"{result.request_count / seconds:,.0f} requests/s",
        f"asked again  {', '.join(again) or 'nobody had to'}",
        f"simulation   {result.cpu_seconds:.2f} s of CPU, {cpu_ms:.2f} ms a request; "
        f"seed {result.config.seed}",
    ]


def _counts(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in outcomes.items()) or "none"


def _waits(waits: dict[str, float]) -> str:
    return ", ".join(f"{name} {wait:,.1f} ms" for name, wait in waits.items()) or "none"


def _invariants(result: SimulationResult) -> list[str]:
    lines = []
    for invariant in result.invariants:
        lines.append(f"{'ok' if invariant.holds else 'BROKEN':7} {invariant.text}")
        lines += [f"        {problem}" for problem in invariant.problems[:MAX_PROBLEMS]]
        if (more := len(invariant.problems) - MAX_PROBLEMS) > 0:
            lines.append(f"        and {more} more")
    return lines
