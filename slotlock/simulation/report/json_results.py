"""The results as JSON; docs/guides/simulation.md shows the shape."""

from dataclasses import asdict
from typing import Any

import orjson

from slotlock.simulation.report.metrics import SimulationResult, sort_outcomes, time_series, wait_ms


def to_json(result: SimulationResult) -> bytes:
    """Return the results as indented JSON that ends in a newline."""
    return orjson.dumps(to_document(result), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_document(result: SimulationResult) -> dict[str, Any]:
    """Return the results with times in seconds since the opening, and waits in milliseconds.

    A value that never arrived is None. The keys are published, so a change needs a new guide.
    """
    return {
        "arguments": asdict(result.config),
        "campaignId": result.campaign_id,
        "openedAt": result.opened_at.isoformat(),
        "seconds": round(result.duration_s, 4),
        "requests": result.request_count,
        "cpuSeconds": round(result.cpu_seconds, 4),
        "outcomes": sort_outcomes(result.attempt_log.outcomes),
        "retries": result.retries,
        "firstResponseMs": result.first_response_ms,
        "finalResponseMs": result.final_response_ms,
        "invariants": [
            {**asdict(invariant), "holds": invariant.holds} for invariant in result.invariants
        ],
        "slots": _slots(result),
        "timeSeries": _time_series(result),
        "attempts": _attempts(result),
    }


def _slots(result: SimulationResult) -> list[dict[str, Any]]:
    holders = result.holders()
    return [
        {
            "id": slot.id,
            "title": slot.title,
            "capacity": state.capacity,
            "remaining": state.remaining,
            "holders": holders[slot.id],
        }
        for slot, state in result.evidence.slots_with_state()
    ]


def _time_series(result: SimulationResult) -> list[dict[str, Any]]:
    return [
        {
            "seconds": point.seconds,
            "sent": point.sent,
            "outcomes": point.outcomes,
            "placesLeft": point.places_left,
        }
        for point in time_series(result)
    ]


def _attempts(result: SimulationResult) -> list[dict[str, Any]]:
    return [
        {
            "user": attempt.user.name,
            "slot": attempt.slot.title,
            "outcome": attempt.outcome,
            "bookingId": attempt.booking_id,
            "sentAt": _round_or_none(attempt.sent_at, 4),
            "firstResponseMs": _round_or_none(wait_ms(attempt, attempt.first_response_at), 1),
            "finalResponseMs": _round_or_none(wait_ms(attempt, attempt.final_response_at), 1),
        }
        for attempt in result.attempt_log.attempts
    ]


def _round_or_none(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
