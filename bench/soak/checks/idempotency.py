"""Checks that one key has one effect and one outcome, however often it was sent."""

import hashlib
from collections import Counter

import orjson

from bench.soak.run_log import ClientOperation, Json, RunLog, SentRequest

# A booking that is gone cannot be confirmed, moved or cancelled later.
ENDED_OUTCOMES = {"BookingNotFound", "HoldExpired"}


def check_keys(run_log: RunLog, record_ids: set[str]) -> None:
    """Compare all responses of each key; the ids are those of the idempotency records."""
    for operation in run_log.operations:
        if operation.idempotency_key is None:
            continue
        run_log.checks["keys"] += 1
        finals = [request for request in operation.requests if request.is_final]
        run_log.compared_responses += max(len(finals) - 1, 0)
        if any(request.outcome == "KeyReused" for request in finals):
            run_log.record_violation(
                "key", f"{_describe(operation)}: KeyReused for the same request"
            )
        if (success := operation.first_success) is None:
            continue
        if record_id(operation) in record_ids:
            _check_responses(run_log, operation, success, finals)
        else:
            run_log.record_violation(
                "key", f"{_describe(operation)}: {success.outcome}, but no record"
            )


def _check_responses(
    run_log: RunLog, operation: ClientOperation, success: SentRequest, finals: list[SentRequest]
) -> None:
    earliest = min(request.ended_at for request in finals if request.is_success)
    for request in finals:
        if request.is_success and request.response != success.response:
            difference = _difference(operation, success, request)
            run_log.record_violation("responses differ", f"{_describe(operation)}: {difference}")
        elif not request.is_success and request.started_at > earliest:
            run_log.record_violation(
                "refused after its success", f"{_describe(operation)}: {request.outcome}"
            )
        elif not request.is_success and _mentions_own_effect(request, success):
            delay_s = request.ended_at - earliest
            run_log.record_violation(
                "refused for its own effect",
                f"{_describe(operation)}: {request.outcome} and also {success.outcome}, "
                f"{delay_s:+.3f} s after it",
            )


def _mentions_own_effect(request: SentRequest, success: SentRequest) -> bool:
    """Return whether a refusal names what an earlier request with the same key did."""
    if request.outcome in ENDED_OUTCOMES and success.outcome not in ("Booked", "AllBooked"):
        return True
    mentioned = [request.response.get("booking") or {}]
    mentioned += [
        refused["refusal"].get("booking") or {} for refused in request.response.get("refusals", ())
    ]
    created = [success.response.get("booking") or {}, *success.response.get("bookings", ())]
    return bool({b["id"] for b in mentioned if b} & {b["id"] for b in created if b})


def _difference(operation: ClientOperation, one: SentRequest, other: SentRequest) -> str:
    if one.outcome != other.outcome:
        return f"{one.outcome} and {other.outcome}"
    fields = [
        f"{name}: {_short(one.response[name])} and {_short(other.response.get(name))}"
        for name in one.response
        if one.response[name] != other.response.get(name)
    ]
    counts = Counter(request.outcome for request in operation.requests)
    return f"{'; '.join(fields)}; requests {dict(counts)}"


def _short(value: object) -> str:
    return orjson.dumps(value).decode()[:260]


def record_id(operation: ClientOperation) -> str:
    """Return the id of the idempotency record for an operation's key."""
    return record_id_of(operation.user_id, key_hash(operation))


def key_hash(operation: ClientOperation) -> str:
    """Return the hash of an operation's key, as ticket ids contain it."""
    return _hash([operation.idempotency_key])[:32]


def record_id_of(user_id: str, hashed_key: str) -> str:
    """Return the id of the idempotency record for a key with this hash."""
    return _hash([user_id, hashed_key])


def _hash(values: list[Json | str | None]) -> str:
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def _describe(operation: ClientOperation) -> str:
    return (
        f"{operation.name} by {operation.user_id} under {operation.idempotency_key} "
        f"at {operation.requests[0].started_at:.3f}"
    )
