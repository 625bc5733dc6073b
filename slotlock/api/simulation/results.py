"""The results as JSON; docs/simulating.md shows the shape."""

from dataclasses import asdict
from typing import Any

import orjson

from slotlock.api.simulation.findings import Run, moments, ordered, waited


def as_json(run: Run) -> bytes:
    """Everything of a run, indented, with a newline in the end."""
    return orjson.dumps(document(run), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def document(run: Run) -> dict[str, Any]:
    """The shape: times in seconds since the opening, waits and percentiles in ms.

    `arguments` (as given), `campaignId`, `openedAt` (RFC 3339), `seconds` (to the last answer),
    `requests`, `cpuSeconds` (of the simulation, during the rush), `outcomes` {name: count},
    `retries` {reason: count}, `firstAnswerMs` and `finalAnswerMs` {p50 p90 p99 max}, `invariants`
    [{name text holds problems}], `slots` [{id title capacity remaining holders}], `overTime`
    [{seconds asked answers{outcome: count so far} placesLeft}], and `asks` [{person slot outcome
    bookingId askedAt firstMs finalMs}]. What never came is null.
    """
    return {
        "arguments": asdict(run.plan),
        "campaignId": run.campaign_id,
        "openedAt": run.opened_at.isoformat(),
        "seconds": round(run.seconds, 4),
        "requests": run.requests,
        "cpuSeconds": round(run.cpu_seconds, 4),
        "outcomes": ordered(run.ledger.outcomes),
        "retries": run.retries,
        "firstAnswerMs": run.first_ms,
        "finalAnswerMs": run.final_ms,
        "invariants": [{**asdict(each), "holds": each.holds} for each in run.invariants],
        "slots": _slots(run),
        "overTime": _over_time(run),
        "asks": _asks(run),
    }


def _slots(run: Run) -> list[dict[str, Any]]:
    holders = run.holders()
    return [
        {
            "id": slot.id,
            "title": slot.title,
            "capacity": truth.capacity,
            "remaining": truth.remaining,
            "holders": holders[slot.id],
        }
        for slot, truth in run.evidence.each()
    ]


def _over_time(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "seconds": moment.seconds,
            "asked": moment.asked,
            "answers": moment.answers,
            "placesLeft": moment.places_left,
        }
        for moment in moments(run)
    ]


def _asks(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "person": ask.person.name,
            "slot": ask.slot.title,
            "outcome": ask.outcome,
            "bookingId": ask.booking_id,
            "askedAt": _rounded(ask.asked_at, 4),
            "firstMs": _rounded(waited(ask, ask.first_at), 1),
            "finalMs": _rounded(waited(ask, ask.final_at), 1),
        }
        for ask in run.ledger.asks
    ]


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
