"""The checks of the soak run detect faults; otherwise a run that passes would prove nothing."""

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


def booking(action: str = "booked", **fields: Any) -> BookingRecord:
    """Return Anna's live booking that began with this action."""
    entry = {"at": NOW, "by": ObjectId(ANNA), "action": action, "status": "confirmed"}
    document = {"id": ObjectId(), "user": ObjectId(ANNA), "history": [entry], **fields}
    (record,) = live_records({"_id": ObjectId(SLOT), "bookings": [document]})
    return record


def book_operation(key: str | None, *outcomes: tuple[str, dict[str, Any]]) -> ClientOperation:
    """Return an operation of Anna with one request per outcome, a second apart."""
    operation = ClientOperation("book", ANNA, "", {}, "", key, ((SLOT, ANNA),))
    for number, (outcome, response) in enumerate(outcomes):
        started_at = NOW.timestamp() + number
        operation.requests.append(SentRequest(started_at, started_at + 0.5, outcome, response))
    return operation


def booked_response(record: BookingRecord) -> dict[str, Any]:
    """Return the response that acknowledges a booking."""
    return {"booking": {"id": f"booking_{record.slot_id}{record.id}"}}


def test_an_acknowledged_booking_that_is_gone_is_detected() -> None:
    run_log, record = RunLog(), booking()
    run_log.operations.append(book_operation(None, ("Booked", booked_response(record))))
    check_acknowledged(run_log, {record.id: record}, set())
    assert not run_log.violations
    check_acknowledged(run_log, {}, set())
    assert run_log.violations["acknowledged"] == 1


def test_a_second_booking_of_one_operation_is_detected() -> None:
    run_log, one, other = RunLog(), booking(), booking()
    lost: tuple[str, dict[str, Any]] = ("lost", {})
    run_log.operations.append(book_operation("a key", lost, ("Booked", booked_response(one))))
    check_origins(run_log, {one.id: one})
    assert not run_log.violations
    check_origins(run_log, {one.id: one, other.id: other})
    assert run_log.violations["unrequested booking"] == 1


def test_a_partial_set_of_slots_is_detected() -> None:
    one, other = booking(), booking(user=ObjectId(BEN))
    operation = book_operation(None, ("lost", {}))
    operation.name, operation.claims = "bookAll", ((SLOT, ANNA), (SLOT, BEN))
    run_log = RunLog()
    run_log.operations.append(operation)
    check_origins(run_log, {one.id: one, other.id: other})
    assert not run_log.violations
    check_origins(run_log, {one.id: one})
    assert run_log.violations == {"partial bookSlots": 1}


def test_different_responses_to_one_key_are_detected() -> None:
    run_log, one, other = RunLog(), booking(), booking()
    operation = book_operation(
        "a key",
        ("Booked", booked_response(one)),
        ("Booked", booked_response(other)),
        ("SlotFull", {}),
    )
    run_log.operations.append(operation)
    check_keys(run_log, record_ids={record_id(operation)})
    assert run_log.violations == {"responses differ": 1, "refused after its success": 1}


def test_a_promotion_before_an_earlier_waitlist_entry_is_detected() -> None:
    run_log = RunLog()
    early, late = (NOW - timedelta(minutes=minutes) for minutes in (9, 5))
    promoted = booking("promoted", waitedSince=late)
    waitlist = [{"id": ObjectId(), "user": ObjectId(BEN), "since": early}]
    slot = {"_id": ObjectId(SLOT), "waitlist": waitlist}
    check_waitlist_order(run_log, [slot], [promoted], [])
    assert run_log.violations["order"] == 1


def test_an_inconsistent_history_is_detected() -> None:
    assert history_problem(booking()) is None
    assert history_problem(booking("confirmed")) == "begins with confirmed to confirmed"
    document = {"_id": ObjectId(), "slot": ObjectId(SLOT), "user": ObjectId(ANNA)}
    entry = {"at": NOW, "by": ObjectId(ANNA), "action": "booked", "status": "confirmed"}
    ended = ended_record({**document, "history": [entry]})
    assert history_problem(ended) == "is ended with status confirmed"


def request_operation(*outcomes: str) -> ClientOperation:
    """Return a queued booking of Anna under a key, with one request per outcome."""
    operation = ClientOperation(
        "request", ANNA, "", {"input": {"hold": False}}, "", "a key", ((SLOT, ANNA),)
    )
    for number, outcome in enumerate(outcomes):
        started_at = NOW.timestamp() + number
        response = {"id": TICKET} if outcome == "Ticket" else {}
        operation.requests.append(SentRequest(started_at, started_at + 0.5, outcome, response))
    return operation


KEY_HASH = key_hash(request_operation())
TICKET = f"ticket_{SLOT}{ANNA}{KEY_HASH}{'0' * 16}{'1' * 11}"


def observation(
    state: BookingRecord | str, at_s: float, ticket_id: str = TICKET
) -> TicketObservation:
    """Return the state of a ticket after some seconds: its booking, a status or a refusal."""
    ticket: dict[str, Any] = {"id": ticket_id, "status": "ANSWERED"}
    if isinstance(state, BookingRecord):
        ticket["outcome"] = {"__typename": "Booked", **booked_response(state)}
    elif state in ("QUEUED", "LOST", "FAILED"):
        ticket["status"] = state
    else:
        ticket["outcome"] = {"__typename": state}
    started_at = NOW.timestamp() + at_s
    return TicketObservation(started_at, started_at + 0.1, ticket)


def violations(
    operation: ClientOperation,
    *observations: TicketObservation,
    recorded: BookingRecord | str | None = None,
    stored: Sequence[BookingRecord] = (),
    hidden: Sequence[tuple[float, float]] = (),
) -> set[str]:
    """Check a ticket against the recorded outcome and the stored bookings.

    Redis loses all data in the second second. The slot is `hidden` in periods after NOW.
    """
    run_log, outcomes = RunLog(), dict[str, tuple[str, str | None]]()
    run_log.operations.append(operation)
    run_log.ticket_observations += observations
    run_log.redis_losses.append((NOW.timestamp() + 1, NOW.timestamp() + 2))
    if isinstance(recorded, BookingRecord):
        outcomes[record_id(operation)] = "Booked", recorded.id
    elif recorded is not None:
        outcomes[record_id(operation)] = recorded, None
    hidden_periods = [(NOW.timestamp() + since, NOW.timestamp() + until) for since, until in hidden]
    stored_by_id = {record.id: record for record in stored}
    check_tickets(run_log, stored_by_id, outcomes, hidden_periods)
    return set(run_log.violations)


def test_correct_tickets_cause_no_violation() -> None:
    booked = booking()
    queued, lost = observation("QUEUED", 0), observation("LOST", 2)
    operation = request_operation("Ticket")
    answered = observation(booked, 3)
    assert not violations(operation, queued, answered, recorded=booked, stored=[booked])
    assert not violations(operation, queued, observation("SlotFull", 3), recorded="SlotFull")
    assert not violations(operation, queued, lost, recorded="RequestLost")
    retried = request_operation("Ticket", "lost", "Ticket", "Ticket")
    answered = observation(booked, 5)
    assert not violations(retried, queued, lost, answered, recorded=booked, stored=[booked])


def test_a_ticket_without_an_end_is_detected() -> None:
    operation = request_operation("Ticket")
    assert violations(operation, observation("QUEUED", 0)) == {"ticket without an end"}
    assert violations(operation, observation("FAILED", 2)) == {"ticket failed"}


def test_a_ticket_with_two_outcomes_is_detected() -> None:
    one, other = booking(), booking()
    operation, first = request_operation("Ticket"), observation(one, 1)
    second = observation(other, 2)
    found = violations(operation, first, second, recorded=one, stored=[one, other])
    assert found == {"ticket outcomes differ", "ticket booked twice"}
    second = observation("SlotFull", 2)
    found = violations(operation, first, second, recorded=one, stored=[one])
    assert found == {"ticket outcomes differ"}


def test_an_answered_ticket_that_is_queued_again_is_detected() -> None:
    booked, operation = booking(), request_operation("Ticket")
    answered = observation(booked, 1)
    queued, lost = observation("QUEUED", 2), observation("LOST", 2)
    found = violations(operation, answered, queued, recorded=booked, stored=[booked])
    assert "ticket taken back" in found
    found = violations(operation, answered, lost, recorded=booked, stored=[booked])
    assert found == {"ticket taken back"}


def test_a_ticket_whose_booking_is_gone_or_another_users_is_detected() -> None:
    booked, operation = booking(), request_operation("Ticket")
    bens = booking(id=ObjectId(booked.id), user=ObjectId(BEN))
    for stored in ([], [bens]):
        found = violations(operation, observation(booked, 1), recorded=booked, stored=stored)
        assert found == {"ticket without its booking"}


def test_an_outcome_that_differs_from_its_record_is_detected() -> None:
    booked, operation = booking(), request_operation("Ticket")
    for recorded in (None, "RequestLost", "SlotFull", booking()):
        found = violations(operation, observation(booked, 1), recorded=recorded, stored=[booked])
        assert found == {"ticket recorded differently"}


def test_a_lost_ticket_that_is_booked_without_a_retry_is_detected() -> None:
    booked, operation, lost = booking(), request_operation("Ticket"), observation("LOST", 2)
    found = violations(operation, lost, recorded=booked, stored=[booked])
    assert found == {"ticket lost and recorded"}
    answered = observation(booked, 3)
    found = violations(operation, lost, answered, recorded=booked, stored=[booked])
    assert found == {"ticket lost and found"}


def test_a_ticket_that_is_lost_without_a_redis_loss_is_detected() -> None:
    late = request_operation("refused", "refused", "refused", "Ticket")
    del late.requests[:3]
    for operation, lost_at_s in ((late, 5), (request_operation("Ticket"), 0.2)):
        found = violations(operation, observation("LOST", lost_at_s), recorded="RequestLost")
        assert found == {"ticket lost without a Redis loss"}


def test_a_refusal_may_read_as_slot_not_found_only_while_its_slot_is_hidden() -> None:
    seen = [observation("SlotFull", 3), observation("SlotNotFound", 5), observation("SlotFull", 7)]
    operation = request_operation("Ticket")
    assert violations(operation, *seen, recorded="SlotFull", hidden=[(4.5, 6)]) == set()
    for elsewhere in ([], [(6, 8)], [(1, 4.9)]):
        found = violations(operation, *seen, recorded="SlotFull", hidden=elsewhere)
        assert found == {"ticket outcomes differ"}


def test_a_ticket_that_is_read_only_while_its_slot_is_hidden_agrees_with_its_record() -> None:
    hidden_answer, operation = observation("SlotNotFound", 5), request_operation("Ticket")
    assert violations(operation, hidden_answer, recorded="SlotFull", hidden=[(4.5, 6)]) == set()
    for recorded, elsewhere in (("SlotFull", [(6.0, 8.0)]), (None, [(4.5, 6.0)])):
        found = violations(operation, hidden_answer, recorded=recorded, hidden=elsewhere)
        assert found == {"ticket recorded differently"}
    back = observation("QUEUED", 5.5)
    found = violations(operation, hidden_answer, back, recorded="SlotFull", hidden=[(4.5, 6)])
    assert "ticket taken back" in found


def test_a_refusal_without_a_slot_that_reads_as_slot_not_found_is_detected() -> None:
    refused, not_found = observation("NotTeammate", 3), observation("SlotNotFound", 5)
    operation = request_operation("Ticket")
    found = violations(operation, refused, not_found, recorded="NotTeammate", hidden=[(2, 6)])
    assert found == {"ticket outcomes differ"}
    found = violations(operation, not_found, recorded="NotTeammate", hidden=[(2, 6)])
    assert found == {"ticket recorded differently"}


def test_one_booking_for_two_tickets_is_detected() -> None:
    booked, run_log = booking(), RunLog()
    other = TICKET.replace(KEY_HASH, KEY_HASH[::-1])
    run_log.ticket_observations += [observation(booked, 1), observation(booked, 2, other)]
    check_tickets(run_log, {booked.id: booked}, {})
    assert run_log.violations["tickets share a booking"] == 1


def test_a_booking_needs_the_outcome_of_its_ticket_as_origin() -> None:
    booked, run_log = booking(), RunLog()
    run_log.operations.append(request_operation("lost", "Ticket"))
    run_log.ticket_observations.append(observation(booked, 2))
    check_origins(run_log, {booked.id: booked})
    assert not run_log.violations
    run_log.ticket_observations = [observation("SlotFull", 2)]
    check_origins(run_log, {booked.id: booked})
    assert run_log.violations["unrequested booking"] == 1


def test_entries_that_remain_in_the_queue_are_detected() -> None:
    run_log, empty = RunLog(), {"requests": 0, "tickets": 0, "dead_letters": 0}
    check_queue_is_empty(run_log, empty)
    assert not run_log.violations
    for kind in empty:
        check_queue_is_empty(run_log, {**empty, kind: 1})
    assert run_log.violations == {"queue not empty": 3}
