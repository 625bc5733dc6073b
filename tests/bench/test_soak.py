"""The checks of the long run see what is broken; a run that passes would prove nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

from bench.soak.keys import check_keys, key_id
from bench.soak.ledger import Act, Ledger, Send
from bench.soak.lines import check_turns
from bench.soak.promises import check_origins, check_promises
from bench.soak.records import Record, ended_record, flaw, live_records

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SLOT, ANNA, BEN = (str(ObjectId()) for _ in range(3))


def booking(made: str = "booked", **more: Any) -> Record:
    """Anna's live booking of a second ago, unless it says otherwise."""
    entry = {"at": NOW, "by": ObjectId(ANNA), "do": made, "to": "confirmed"}
    kept = {"id": ObjectId(), "user": ObjectId(ANNA), "log": [entry], **more}
    (record,) = live_records({"_id": ObjectId(SLOT), "bookings": [kept]})
    return record


def answered(key: str | None, *outcomes: tuple[str, dict[str, Any]]) -> Act:
    """An act of Anna's that was sent once for each of the answers, one after the other."""
    act = Act("book", ANNA, "", {}, "", key, ((SLOT, ANNA),))
    for place, (outcome, answer) in enumerate(outcomes):
        began = NOW.timestamp() + place
        act.sends.append(Send(began, began + 0.5, outcome, answer))
    return act


def told(record: Record) -> dict[str, Any]:
    """The answer that tells of a booking."""
    return {"booking": {"id": f"booking_{record.slot}{record.id}"}}


def test_a_booking_that_was_acknowledged_and_is_gone_is_seen() -> None:
    ledger, record = Ledger(), booking()
    ledger.acts.append(answered(None, ("Booked", told(record))))
    check_promises(ledger, {record.id: record}, set())
    assert not ledger.violations
    check_promises(ledger, {}, set())
    assert ledger.violations["acknowledged"] == 1


def test_a_second_booking_of_one_act_is_seen() -> None:
    ledger, one, other = Ledger(), booking(), booking()
    ledger.acts.append(answered("a key", ("lost", {}), ("Booked", told(one))))
    check_origins(ledger, {one.id: one})
    assert not ledger.violations
    check_origins(ledger, {one.id: one, other.id: other})
    assert ledger.violations["from nowhere"] == 1


def test_a_part_of_a_set_of_slots_is_seen() -> None:
    one, other = booking(), booking(user=ObjectId(BEN))
    act = answered(None, ("lost", {}))
    act.name, act.claims = "bookAll", ((SLOT, ANNA), (SLOT, BEN))
    ledger = Ledger()
    ledger.acts.append(act)
    check_origins(ledger, {one.id: one, other.id: other})
    assert not ledger.violations
    check_origins(ledger, {one.id: one})
    assert ledger.violations == {"partial bookSlots": 1}


def test_another_answer_under_one_key_is_seen() -> None:
    ledger, one, other = Ledger(), booking(), booking()
    act = answered("a key", ("Booked", told(one)), ("Booked", told(other)), ("SlotFull", {}))
    ledger.acts.append(act)
    check_keys(ledger, kept={key_id(act)})
    assert ledger.violations == {"answers differ": 1, "refused after it was done": 1}


def test_whoever_is_served_before_their_turn_is_seen() -> None:
    ledger = Ledger()
    early, late = (NOW - timedelta(minutes=minutes) for minutes in (9, 5))
    later = booking("promoted", waited=late)
    waiting = [{"id": ObjectId(), "user": ObjectId(BEN), "at": early}]
    slot = {"_id": ObjectId(SLOT), "waiting": waiting}
    check_turns(ledger, [slot], [later], [])
    assert ledger.violations["order"] == 1


def test_a_log_that_is_not_whole_is_seen() -> None:
    assert flaw(booking()) is None
    assert flaw(booking("confirmed")) == "begins with confirmed to confirmed"
    gone = {"_id": ObjectId(), "slot": ObjectId(SLOT), "user": ObjectId(ANNA)}
    entry = {"at": NOW, "by": ObjectId(ANNA), "do": "booked", "to": "confirmed"}
    assert flaw(ended_record({**gone, "log": [entry]})) == "ended and is confirmed"
