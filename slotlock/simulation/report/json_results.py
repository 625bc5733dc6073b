"""The results as JSON; docs/guides/simulation.md shows the shape."""

from dataclasses import asdict
from typing import Any

import orjson

from slotlock.simulation.report.metrics import SimulationResult, sort_outcomes, time_series, wait_ms


def to_json(result: SimulationResult) -> bytes:
    """Everything of a run, indented, with a newline in the end."""
    return orjson.dumps(to_document(result), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_document(result: SimulationResult) -> dict[str, Any]:
    """The shape: times in seconds since the opening, waits and percentiles in ms.

    `arguments` (as given), `campaignId`, `openedAt` (RFC 3339), `seconds` (to the last answer),
    `requests`, `cpuSeconds` (of the simulation, during the rush), `outcomes` {name: count},
    `retries` {reason: count}, `firstAnswerMs` and `finalAnswerMs` {p50 p90 p99 max}, `invariants`
    [{name text holds problems}], `slots` [{id title capacity remaining holders}], `timeSeries`
    [{seconds asked answers{outcome: count so far} placesLeft}], and `asks` [{person slot outcome
    bookingId askedAt firstMs finalMs}]. What never came is null.
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
        "firstAnswerMs": result.first_response_ms,
        "finalAnswerMs": result.final_response_ms,
        "invariants": [{**asdict(each), "holds": each.holds} for each in result.invariants],
        "slots": _slots(result),
        "timeSeries": _time_series(result),
        "asks": _attempts(result),
    }


def _slots(result: SimulationResult) -> list[dict[str, Any]]:
    holders = result.holders()
    return [
        {
            "id": slot.id,
            "title": slot.title,
            "capacity": truth.capacity,
            "remaining": truth.remaining,
            "holders": holders[slot.id],
        }
        for slot, truth in result.evidence.slots_with_state()
    ]


def _time_series(result: SimulationResult) -> list[dict[str, Any]]:
    return [
        {
            "seconds": moment.seconds,
            "asked": moment.sent,
            "answers": moment.outcomes,
            "placesLeft": moment.places_left,
        }
        for moment in time_series(result)
    ]


def _attempts(result: SimulationResult) -> list[dict[str, Any]]:
    return [
        {
            "person": ask.user.name,
            "slot": ask.slot.title,
            "outcome": ask.outcome,
            "bookingId": ask.booking_id,
            "askedAt": _round_or_none(ask.sent_at, 4),
            "firstMs": _round_or_none(wait_ms(ask, ask.first_response_at), 1),
            "finalMs": _round_or_none(wait_ms(ask, ask.final_response_at), 1),
        }
        for ask in result.attempt_log.attempts
    ]


def _round_or_none(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
