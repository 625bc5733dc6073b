"""The text at the end: rosters, counts, waiting times and invariants."""

from slotlock.simulation.report.metrics import SimulationResult, sort_outcomes

MAX_SLOTS, MAX_NAMES, MAX_PROBLEMS = 20, 8, 3


def format_summary(result: SimulationResult) -> str:
    """Return the whole summary."""
    return "\n".join(["", *_rosters(result), "", *_statistics(result), "", *_invariants(result)])


def _rosters(result: SimulationResult) -> list[str]:
    holders, lines = result.holders(), []
    width = max(len(slot.title) for slot in result.evidence.slots)
    for slot in result.evidence.slots[:MAX_SLOTS]:
        names, capacity = holders[slot.id], result.evidence.server_state.slots[slot.id].capacity
        more = len(names) - MAX_NAMES
        shown = ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"{slot.title:{width}}  {len(names)} of {capacity}  {shown or 'nobody'}")
    if (more_slots := len(result.evidence.slots) - MAX_SLOTS) > 0:
        lines.append(f"and {more_slots} more slots; --json writes all of them")
    return lines


def _statistics(result: SimulationResult) -> list[str]:
    attempt_log = result.attempt_log
    # Without a final response there is no rate.
    seconds = result.duration_s or float("inf")
    retries = [f"{kind} {count:,}" for kind, count in result.retries.items() if count]
    cpu_ms = result.cpu_seconds * 1000 / max(result.request_count, 1)
    tickets = sum(attempt.ticket_id is not None for attempt in attempt_log.attempts)
    return [
        f"outcomes        {_counts(sort_outcomes(attempt_log.outcomes))}",
        *([f"tickets         {tickets:,}"] if tickets else []),
        f"first response  {_waits(result.first_response_ms)}",
        f"final response  {_waits(result.final_response_ms)}",
        f"rush            {result.duration_s:.2f} s: "
        f"{attempt_log.answered_count / seconds:,.0f} final responses/s, "
        f"{attempt_log.booked_count / seconds:,.0f} bookings/s, "
        f"{result.request_count / seconds:,.0f} requests/s",
        f"retries         {', '.join(retries) or 'none'}",
        f"simulation      {result.cpu_seconds:.2f} s of CPU, {cpu_ms:.2f} ms per request; "
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
