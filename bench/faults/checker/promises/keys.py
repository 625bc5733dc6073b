"""Checks idempotency keys: stored outcomes, claims of one request, and keys for something else."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

import orjson

from bench.faults.checker.effects import LOST, UNDECIDED, Effect, claims_of
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersions
from bench.faults.history import REUSE, UNANSWERED, Operation

LOST_RECORD = "RequestLost"


def check_records(requests: Sequence[Effect], versions: SlotVersions, report: Report) -> None:
    """Report outcomes that differ from those that the server stored for their keys.

    A response is stored with what it did. A lost ticket has no outcome, now or later.
    """
    keys_of: defaultdict[str, set[object]] = defaultdict(set)
    for request in requests:
        if request.record_key is None or not request.response:
            continue
        report.counts["keys"] += 1
        stored = versions.records.get(record_id(*request.record_key))
        name = stored["_type"] if stored else LOST_RECORD
        booking = (stored or {}).get("booking") or {}
        is_same = name == request.outcome
        if request.outcome == "Booked":
            is_same &= str(booking.get("id")) == request.shown_booking_id
            keys_of[request.shown_booking_id or ""].add(request.record_key)
        elif request.outcome == LOST:
            is_same = name == LOST_RECORD
        elif not request.is_accepted and not _is_answered(request):
            continue  # a refusal without a ticket is not stored
        if not is_same:
            description = f"{request.outcome} of {request.user_id}, stored is {name}"
            report.add("outcome differs from its record", description, request.operations)
    for booking_id, keys in keys_of.items():
        if len(keys) > 1:
            report.add("booking of two keys", f"{booking_id}: {sorted(map(str, keys))}")


def _is_answered(request: Effect) -> bool:
    """Return whether a ticket shows the outcome."""
    outcomes = [each.outcome or {} for each in request.operations]
    return any((each.get("outcome") or {}).get("__typename") for each in outcomes)


def record_id(user_id: str, hashed_key: str) -> str:
    """Return the id of the idempotency record of a key with this hash."""
    return hashlib.sha256(orjson.dumps([user_id, hashed_key])).hexdigest()


def check_claims(requests: Sequence[Effect], report: Report) -> None:
    """Report responses with fewer bookings than were requested."""
    for request in requests:
        if request.outcome == "AllBooked":
            booked, claims = (request.response or {})["bookings"], claims_of(request)
            if len(booked) != len(claims):
                description = f"{len(booked)} of {len(claims)} claims of {request.user_id}"
                report.add("some claims only", description, request.operations)


def check_reused_keys(operations: Sequence[Operation], report: Report) -> None:
    """Report keys that the server accepted for another request, and those without a response."""
    for operation in operations:
        outcome = (operation.outcome or {}).get("__typename")
        if operation.operation == REUSE and outcome not in (None, "KeyReused", *UNDECIDED):
            report.add("key reused", f"{operation.user_id}: {outcome}", [operation])
        if operation.operation == UNANSWERED:
            report.add("no final response", operation.user_id, [operation])
