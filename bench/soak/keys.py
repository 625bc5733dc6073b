"""Whether one key had one effect and one answer, from however many sides and times it was sent."""

import hashlib
from collections import Counter

import orjson

from bench.soak.ledger import Act, Json, Ledger, Send

# No booking can be found gone first and then be confirmed, moved or cancelled.
ENDS_IT = {"BookingNotFound", "HoldExpired"}


def check_keys(ledger: Ledger, kept: set[str]) -> None:
    """Hold every answer under every key against the others. `kept`: the ids of kept answers."""
    for act in ledger.acts:
        if act.key is None:
            continue
        ledger.checks["keys"] += 1
        finals = [sent for sent in act.sends if sent.final]
        ledger.compared += max(len(finals) - 1, 0)
        if any(sent.outcome == "KeyReused" for sent in finals):
            ledger.violation("key", f"{_name(act)}: KeyReused for the same question")
        if (grant := act.grant) is None:
            continue
        if key_id(act) in kept:
            _check_kept(ledger, act, grant, finals)
        else:
            ledger.violation("key", f"{_name(act)}: {grant.outcome}, and no answer is kept")


def _check_kept(ledger: Ledger, act: Act, grant: Send, finals: list[Send]) -> None:
    earliest = min(sent.ended for sent in finals if sent.granted)
    for sent in finals:
        if sent.granted and sent.answer != grant.answer:
            ledger.violation("answers differ", f"{_name(act)}: {_difference(act, grant, sent)}")
        elif not sent.granted and sent.began > earliest:
            ledger.violation("refused after it was done", f"{_name(act)}: {sent.outcome}")
        elif not sent.granted and _knows(sent, grant):
            late = sent.ended - earliest
            what = f"{_name(act)}: {sent.outcome} beside {grant.outcome}, {late:+.3f} s after it"
            ledger.violation("refused for its own effect", what)


def _knows(sent: Send, grant: Send) -> bool:
    """Whether a refusal speaks of what the same key did."""
    if sent.outcome in ENDS_IT and grant.outcome not in ("Booked", "AllBooked"):
        return True
    told = [sent.answer.get("booking") or {}]
    told += [each["refusal"].get("booking") or {} for each in sent.answer.get("refusals", ())]
    made = [grant.answer.get("booking") or {}, *grant.answer.get("bookings", ())]
    return bool({b["id"] for b in told if b} & {b["id"] for b in made if b})


def _difference(act: Act, one: Send, other: Send) -> str:
    if one.outcome != other.outcome:
        return f"{one.outcome} and {other.outcome}"
    parts = [
        f"{name}: {_short(one.answer[name])} and {_short(other.answer.get(name))}"
        for name in one.answer
        if one.answer[name] != other.answer.get(name)
    ]
    times = Counter(sent.outcome for sent in act.sends)
    return f"{'; '.join(parts)}; sends {dict(times)}"


def _short(value: object) -> str:
    return orjson.dumps(value).decode()[:260]


def key_id(act: Act) -> str:
    """The id under which the answer to its key is kept."""
    return kept_id(act.by, key_hash(act))


def key_hash(act: Act) -> str:
    """What tickets name its key by."""
    return _hash([act.key])[:32]


def kept_id(by: str, hashed_key: str) -> str:
    """The id under which the answer to a key of this hash is kept."""
    return _hash([by, hashed_key])


def _hash(values: list[Json | str | None]) -> str:
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def _name(act: Act) -> str:
    return f"{act.name} by {act.by} under {act.key} at {act.sends[0].began:.3f}"
