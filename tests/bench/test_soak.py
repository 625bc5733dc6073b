"""The checks of the long run see what is broken; a run that passes would prove nothing else."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

from bench.soak.checks.acknowledged import check_acknowledged, check_origins
from bench.soak.checks.booking_records import (
    BookingRecord,
    ended_record,
    history_problem,
    live_records,
)
from bench.soak.checks.idempotency import check_keys, key_hash, record_id
from bench.soak.checks.ticket_history import check_queue_is_empty, check_tickets
from bench.soak.checks.waitlist import check_waitlist_order
from bench.soak.run_log import ClientOperation, RunLog, SentRequest, TicketObservation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SLOT, ANNA, BEN = (str(ObjectId()) for _ in range(3))


def booking(made: str = "booked", **more: Any) -> BookingRecord:
    """Anna's live booking of a second ago, unless it says otherwise."""
    entry = {"at": NOW, "by": ObjectId(ANNA), "action": made, "status": "confirmed"}
    kept = {"id": ObjectId(), "user": ObjectId(ANNA), "history": [entry], **more}
    (record,) = live_records({"_id": ObjectId(SLOT), "bookings": [kept]})
    return record


def answered(key: str | None, *outcomes: tuple[str, dict[str, Any]]) -> ClientOperation:
    """An act of Anna's that was sent once for each of the answers, one after the other."""
    act = ClientOperation("book", ANNA, "", {}, "", key, ((SLOT, ANNA),))
    for place, (outcome, answer) in enumerate(outcomes):
        began = NOW.timestamp() + place
        act.requests.append(SentRequest(began, began + 0.5, outcome, answer))
    return act


def told(record: BookingRecord) -> dict[str, Any]:
    """The answer that tells of a booking."""
    return {"booking": {"id": f"booking_{record.slot_id}{record.id}"}}


def test_a_booking_that_was_acknowledged_and_is_gone_is_seen() -> None:
    ledger, record = RunLog(), booking()
    ledger.operations.append(answered(None, ("Booked", told(record))))
    check_acknowledged(ledger, {record.id: record}, set())
    assert not ledger.violations
    check_acknowledged(ledger, {}, set())
    assert ledger.violations["acknowledged"] == 1


def test_a_second_booking_of_one_act_is_seen() -> None:
    ledger, one, other = RunLog(), booking(), booking()
    ledger.operations.append(answered("a key", ("lost", {}), ("Booked", told(one))))
    check_origins(ledger, {one.id: one})
    assert not ledger.violations
    check_origins(ledger, {one.id: one, other.id: other})
    assert ledger.violations["from nowhere"] == 1


def test_a_part_of_a_set_of_slots_is_seen() -> None:
    one, other = booking(), booking(user=ObjectId(BEN))
    act = answered(None, ("lost", {}))
    act.name, act.claims = "bookAll", ((SLOT, ANNA), (SLOT, BEN))
    ledger = RunLog()
    ledger.operations.append(act)
    check_origins(ledger, {one.id: one, other.id: other})
    assert not ledger.violations
    check_origins(ledger, {one.id: one})
    assert ledger.violations == {"partial bookSlots": 1}


def test_another_answer_under_one_key_is_seen() -> None:
    ledger, one, other = RunLog(), booking(), booking()
    act = answered("a key", ("Booked", told(one)), ("Booked", told(other)), ("SlotFull", {}))
    ledger.operations.append(act)
    check_keys(ledger, record_ids={record_id(act)})
    assert ledger.violations == {"answers differ": 1, "refused after it was done": 1}


def test_whoever_is_served_before_their_turn_is_seen() -> None:
    ledger = RunLog()
    early, late = (NOW - timedelta(minutes=minutes) for minutes in (9, 5))
    later = booking("promoted", waitedSince=late)
    waiting = [{"id": ObjectId(), "user": ObjectId(BEN), "since": early}]
    slot = {"_id": ObjectId(SLOT), "waitlist": waiting}
    check_waitlist_order(ledger, [slot], [later], [])
    assert ledger.violations["order"] == 1


def test_a_log_that_is_not_whole_is_seen() -> None:
    assert history_problem(booking()) is None
    assert history_problem(booking("confirmed")) == "begins with confirmed to confirmed"
    gone = {"_id": ObjectId(), "slot": ObjectId(SLOT), "user": ObjectId(ANNA)}
    entry = {"at": NOW, "by": ObjectId(ANNA), "action": "booked", "status": "confirmed"}
    assert history_problem(ended_record({**gone, "history": [entry]})) == "ended and is confirmed"


def request(*words: str) -> ClientOperation:
    """A request of Anna's under a key, sent a second apart: given a ticket, or as the words say."""
    act = ClientOperation(
        "request", ANNA, "", {"input": {"hold": False}}, "", "a key", ((SLOT, ANNA),)
    )
    for place, word in enumerate(words):
        began = NOW.timestamp() + place
        answer = {"id": TICKET} if word == "Ticket" else {}
        act.requests.append(SentRequest(began, began + 0.5, word, answer))
    return act


HASHED = key_hash(request())
TICKET = f"ticket_{SLOT}{ANNA}{HASHED}{'0' * 16}{'1' * 11}"


def saying(said: BookingRecord | str, at: float, ticket: str = TICKET) -> TicketObservation:
    """A ticket so many seconds after the beginning: its booking, a status or a refusal's name."""
    known: dict[str, Any] = {"id": ticket, "status": "ANSWERED"}
    if isinstance(said, BookingRecord):
        known["outcome"] = {"__typename": "Booked", **told(said)}
    elif said in ("QUEUED", "LOST", "FAILED"):
        known["status"] = said
    else:
        known["outcome"] = {"__typename": said}
    began = NOW.timestamp() + at
    return TicketObservation(began, began + 0.1, known)


def broken(
    act: ClientOperation,
    *tellings: TicketObservation,
    kept: BookingRecord | str | None = None,
    there: Sequence[BookingRecord] = (),
) -> set[str]:
    """Which promises are broken when a request was told this, and that is in the database.

    Redis lost everything in the second second.
    """
    ledger, answers = RunLog(), dict[str, tuple[str, str | None]]()
    ledger.operations.append(act)
    ledger.ticket_observations += tellings
    ledger.redis_losses.append((NOW.timestamp() + 1, NOW.timestamp() + 2))
    if kept is not None:
        answers[record_id(act)] = (
            ("Booked", kept.id) if isinstance(kept, BookingRecord) else (kept, None)
        )
    check_tickets(ledger, {record.id: record for record in there}, answers)
    return set(ledger.violations)


def test_tickets_that_keep_all_promises_are_let_be() -> None:
    made = booking()
    queued, lost = saying("QUEUED", 0), saying("LOST", 2)
    assert not broken(request("Ticket"), queued, saying(made, 3), kept=made, there=[made])
    assert not broken(request("Ticket"), queued, saying("SlotFull", 3), kept="SlotFull")
    assert not broken(request("Ticket"), queued, lost, kept="RequestLost")
    again = request("Ticket", "lost", "Ticket", "Ticket")
    assert not broken(again, queued, lost, saying(made, 5), kept=made, there=[made])


def test_a_ticket_without_an_end_is_seen() -> None:
    assert broken(request("Ticket"), saying("QUEUED", 0)) == {"ticket without an end"}
    assert broken(request("Ticket"), saying("FAILED", 2)) == {"ticket set aside"}


def test_a_ticket_with_two_answers_is_seen() -> None:
    one, other = booking(), booking()
    act, first = request("Ticket"), saying(one, 1)
    found = broken(act, first, saying(other, 2), kept=one, there=[one, other])
    assert found == {"ticket answers differ", "ticket booked twice"}
    found = broken(act, first, saying("SlotFull", 2), kept=one, there=[one])
    assert found == {"ticket answers differ"}


def test_a_ticket_that_was_answered_and_is_in_line_again_is_seen() -> None:
    made, act = booking(), request("Ticket")
    told_before = saying(made, 1)
    found = broken(act, told_before, saying("QUEUED", 2), kept=made, there=[made])
    assert "ticket taken back" in found
    found = broken(act, told_before, saying("LOST", 2), kept=made, there=[made])
    assert found == {"ticket taken back"}


def test_a_ticket_whose_booking_is_gone_or_somebody_elses_is_seen() -> None:
    made, act = booking(), request("Ticket")
    other = booking(id=ObjectId(made.id), user=ObjectId(BEN))
    for there in ([], [other]):
        found = broken(act, saying(made, 1), kept=made, there=there)
        assert found == {"ticket without its booking"}


def test_another_answer_than_is_kept_is_seen() -> None:
    made, act = booking(), request("Ticket")
    for kept in (None, "RequestLost", "SlotFull", booking()):
        found = broken(act, saying(made, 1), kept=kept, there=[made])
        assert found == {"ticket kept otherwise"}


def test_a_lost_ticket_that_was_granted_unasked_is_seen() -> None:
    made, lost = booking(), saying("LOST", 2)
    found = broken(request("Ticket"), lost, kept=made, there=[made])
    assert found == {"ticket lost and kept"}
    found = broken(request("Ticket"), lost, saying(made, 3), kept=made, there=[made])
    assert found == {"ticket lost and found"}


def test_a_ticket_that_was_lost_while_redis_lost_nothing_is_seen() -> None:
    late = request("nobody was there", "nobody was there", "nobody was there", "Ticket")
    del late.requests[:3]
    assert broken(late, saying("LOST", 5), kept="RequestLost") == {"ticket lost in vain"}
    early = saying("LOST", 0.2)
    assert broken(request("Ticket"), early, kept="RequestLost") == {"ticket lost in vain"}


def test_one_booking_for_two_tickets_is_seen() -> None:
    made, ledger = booking(), RunLog()
    other = TICKET.replace(HASHED, HASHED[::-1])
    ledger.ticket_observations += [saying(made, 1), saying(made, 2, other)]
    check_tickets(ledger, {made.id: made}, {})
    assert ledger.violations["tickets share a booking"] == 1


def test_a_booking_by_ticket_comes_from_its_ticket_only() -> None:
    made, ledger = booking(), RunLog()
    ledger.operations.append(request("lost", "Ticket"))
    ledger.ticket_observations.append(saying(made, 2))
    check_origins(ledger, {made.id: made})
    assert not ledger.violations
    ledger.ticket_observations = [saying("SlotFull", 2)]
    check_origins(ledger, {made.id: made})
    assert ledger.violations["from nowhere"] == 1


def test_what_is_left_in_line_is_seen() -> None:
    ledger, gone = RunLog(), {"requests": 0, "tickets": 0, "dead_letters": 0}
    check_queue_is_empty(ledger, gone)
    assert not ledger.violations
    for kind in gone:
        check_queue_is_empty(ledger, {**gone, kind: 1})
    assert ledger.violations == {"left in line": 3}
