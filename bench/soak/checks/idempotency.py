"""Whether one key had one effect and one answer, from however many sides and times it was sent."""

import hashlib
from collections import Counter

import orjson

from bench.soak.run_log import ClientOperation, Json, RunLog, SentRequest

# No booking can be found gone first and then be confirmed, moved or cancelled.
ENDED_OUTCOMES = {"BookingNotFound", "HoldExpired"}


def check_keys(run_log: RunLog, record_ids: set[str]) -> None:
    """Hold every answer under every key against the others. `kept`: the ids of kept answers."""
    for act in run_log.operations:
        if act.idempotency_key is None:
            continue
        run_log.checks["keys"] += 1
        finals = [sent for sent in act.requests if sent.is_final]
        run_log.compared_responses += max(len(finals) - 1, 0)
        if any(sent.outcome == "KeyReused" for sent in finals):
            run_log.record_violation("key", f"{_describe(act)}: KeyReused for the same question")
        if (grant := act.first_success) is None:
            continue
        if record_id(act) in record_ids:
            _check_responses(run_log, act, grant, finals)
        else:
            run_log.record_violation(
                "key", f"{_describe(act)}: {grant.outcome}, and no answer is kept"
            )


def _check_responses(
    run_log: RunLog, operation: ClientOperation, success: SentRequest, finals: list[SentRequest]
) -> None:
    earliest = min(sent.ended_at for sent in finals if sent.is_success)
    for sent in finals:
        if sent.is_success and sent.response != success.response:
            run_log.record_violation(
                "answers differ", f"{_describe(operation)}: {_difference(operation, success, sent)}"
            )
        elif not sent.is_success and sent.started_at > earliest:
            run_log.record_violation(
                "refused after it was done", f"{_describe(operation)}: {sent.outcome}"
            )
        elif not sent.is_success and _mentions_own_effect(sent, success):
            late = sent.ended_at - earliest
            what = (
                f"{_describe(operation)}: {sent.outcome} beside {success.outcome}, "
                f"{late:+.3f} s after it"
            )
            run_log.record_violation("refused for its own effect", what)


def _mentions_own_effect(request: SentRequest, success: SentRequest) -> bool:
    """Whether a refusal speaks of what the same key did."""
    if request.outcome in ENDED_OUTCOMES and success.outcome not in ("Booked", "AllBooked"):
        return True
    told = [request.response.get("booking") or {}]
    told += [each["refusal"].get("booking") or {} for each in request.response.get("refusals", ())]
    made = [success.response.get("booking") or {}, *success.response.get("bookings", ())]
    return bool({b["id"] for b in told if b} & {b["id"] for b in made if b})


def _difference(operation: ClientOperation, one: SentRequest, other: SentRequest) -> str:
    if one.outcome != other.outcome:
        return f"{one.outcome} and {other.outcome}"
    parts = [
        f"{name}: {_short(one.response[name])} and {_short(other.response.get(name))}"
        for name in one.response
        if one.response[name] != other.response.get(name)
    ]
    times = Counter(sent.outcome for sent in operation.requests)
    return f"{'; '.join(parts)}; sends {dict(times)}"


def _short(value: object) -> str:
    return orjson.dumps(value).decode()[:260]


def record_id(operation: ClientOperation) -> str:
    """The id under which the answer to its key is kept."""
    return record_id_of(operation.user_id, key_hash(operation))


def key_hash(operation: ClientOperation) -> str:
    """What tickets name its key by."""
    return _hash([operation.idempotency_key])[:32]


def record_id_of(user_id: str, hashed_key: str) -> str:
    """The id under which the answer to a key of this hash is kept."""
    return _hash([user_id, hashed_key])


def _hash(values: list[Json | str | None]) -> str:
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def _describe(operation: ClientOperation) -> str:
    return (
        f"{operation.name} by {operation.user_id} under {operation.idempotency_key} "
        f"at {operation.requests[0].started_at:.3f}"
    )
