"""Corruptions of responses."""

import random

from bench.faults.history import Json
from tests.support.bench.corruptions.places import (
    NEW_ID,
    answers,
    at_the_end,
    documents_by_slot,
    final_bookings,
    insert,
    lines_by_slot,
    single_bookings,
    slot_of,
)
from tests.support.bench.recorded_history import RecordedHistory

FULL_SHOWN_AS = (
    *("LimitReached", "TimeConflict", "SlotStarted", "CutoffPassed", "NotYetOpen", "Closed"),
    *("GroupFull", "NotEligible", "HoldLimitReached", "SlotNotFound", "AlreadyBooked"),
)


def show_full_slots_as_others(history: RecordedHistory, rng: random.Random) -> None:
    """Show SlotFull as each other refusal: in slots without rules, or to users without bookings."""
    documents = documents_by_slot(history)
    of_campaign = {
        slot
        for slot, each in documents.items()
        if each[-1].get("campaign") or each[-1].get("choiceGroup")
    }
    limited = {
        booking["user"]
        for slot in of_campaign
        for document in documents[slot]
        for booking in document["bookings"]
    }
    full = [
        each
        for each in answers(history, "book", "SlotFull")
        if each["user_id"] not in limited or slot_of(each) not in of_campaign
    ]
    for name, operation in zip(FULL_SHOWN_AS, rng.sample(full, len(FULL_SHOWN_AS)), strict=True):
        operation["outcome"]["__typename"] = name


def refuse_without_a_reason(history: RecordedHistory, rng: random.Random) -> None:
    """Say that a slot is full which never was."""
    never_full = {
        slot
        for slot, documents in documents_by_slot(history).items()
        if all(each["remaining"] > 0 and not each["waitlist"] for each in documents)
    }
    booked = [each for each in answers(history, "book", "Booked") if slot_of(each) in never_full]
    outcome = {"__typename": "SlotFull"}
    insert(history, rng.choice(booked), user_id=NEW_ID, outcome=outcome)


def refuse_what_is_written(history: RecordedHistory, rng: random.Random) -> None:
    """Refuse a booking that was written, long after an unknown outcome of the same user there."""
    operation = rng.choice(single_bookings(history))
    operation["outcome"] = {"__typename": "Locked"}
    started_at = operation["started_at"] - 100
    unknown = {"outcome": None, "finished_at": None, "error": "TIMEOUT"}
    insert(history, operation, started_at=started_at, **unknown)


def refuse_a_cancellation_that_is_written(history: RecordedHistory, rng: random.Random) -> None:
    """Refuse a cancellation that happened."""
    sent = [
        each["input"]["booking"] for each in history.operations if each["operation"] == "cancel"
    ]
    cancelled = [
        each
        for each in answers(history, "cancel", "BookingCancelled")
        if sent.count(each["input"]["booking"]) == 1
    ]
    rng.choice(cancelled)["outcome"] = {"__typename": "Locked"}


def lose_a_cancellation(history: RecordedHistory, rng: random.Random) -> None:
    """Say that a booking is cancelled which is live to the end."""
    booking_id, user = rng.choice(final_bookings(history))
    cancelled = {"__typename": "BookingCancelled", "booking": {"id": booking_id}}
    _say_at_the_end(history, "cancel", user, {"booking": booking_id}, cancelled)


def miss_a_live_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Say that a live and confirmed booking is not there."""
    booking_id, user = rng.choice(final_bookings(history))
    missing = {"__typename": rng.choice(("BookingNotFound", "HoldExpired"))}
    _say_at_the_end(history, "confirm", user, {"booking": booking_id}, missing)


def confirm_an_ended_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Confirm a booking that ended long before."""
    cancelled = rng.choice(answers(history, "cancel", "BookingCancelled"))
    given = {"booking": cancelled["input"]["booking"], "key": None}
    confirmed = {"__typename": "BookingConfirmed"}
    _say_at_the_end(history, "confirm", cancelled["user_id"], given, confirmed)


def miss_a_waiting_user(history: RecordedHistory, rng: random.Random) -> None:
    """Say that a waiting user does not wait."""
    waiting = [
        (slot, entry["user"])
        for slot, documents in documents_by_slot(history).items()
        for entry in documents[-1]["waitlist"]
    ]
    slot, user = rng.choice(waiting)
    _say_at_the_end(history, "leave", user, {"slot": f"slot_{slot}"}, {"__typename": "NotWaiting"})


def _say_at_the_end(
    history: RecordedHistory, operation: str, user: str, given: Json, outcome: Json
) -> None:
    """Add a response after all others."""
    like, times = history.operations[0], at_the_end(history)
    fields = {"operation": operation, "user_id": user, "input": given, "outcome": outcome}
    insert(history, like, **fields, **times)


def show_another_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Show a user, who has booked already, a booking that the user does not have."""
    shown = [
        each for each in answers(history, "book", "AlreadyBooked") if each["outcome"].get("booking")
    ]
    operation = rng.choice(shown)
    operation["outcome"]["booking"] = {"id": f"booking_{slot_of(operation)}{NEW_ID}"}


def acknowledge_to_another_user(history: RecordedHistory, rng: random.Random) -> None:
    """Show a booking to a user whose booking it is not."""
    rng.choice(single_bookings(history))["user_id"] = NEW_ID


def acknowledge_before_the_write(history: RecordedHistory, rng: random.Random) -> None:
    """Respond before the booking is written."""
    operation = rng.choice(single_bookings(history))
    operation["finished_at"] = operation["started_at"] - 4
    operation["started_at"] -= 5


def acknowledge_an_older_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Show an older booking as a new one."""
    operation = rng.choice(single_bookings(history))
    operation["started_at"] = operation["finished_at"] + 5
    operation["finished_at"] += 6


def answer_a_key_twice(history: RecordedHistory, rng: random.Random) -> None:
    """Give two outcomes to one idempotency key."""
    keyed = [each for each in answers(history, "book", "Booked") if each["input"]["idempotencyKey"]]
    operation = rng.choice(keyed)
    booking = {"id": f"booking_{slot_of(operation)}{NEW_ID}"}
    times = {each: operation[each] + 1 for each in ("started_at", "finished_at")}
    insert(history, operation, outcome={"__typename": "Booked", "booking": booking}, **times)


def fail_every_request(history: RecordedHistory, _rng: random.Random) -> None:
    """Answer every request with an internal error."""
    for operation in history.operations:
        operation["outcome"], operation["error"] = None, "INTERNAL"


def fail_a_request(history: RecordedHistory, rng: random.Random) -> None:
    """Answer a request with an internal error, also during a fault."""
    insert(history, rng.choice(history.operations), outcome=None, error="INTERNAL")


def be_unavailable_without_a_fault(history: RecordedHistory, rng: random.Random) -> None:
    """Give no response before the first fault."""
    begin = min(fault["started_at"] for fault in history.faults)
    error = rng.choice(("UNAVAILABLE", "TIMEOUT", "OUTCOME_UNKNOWN"))
    for operation in history.operations:
        if operation["started_at"] < begin:
            operation.update(outcome=None, error=error)


def sign_a_user_out(history: RecordedHistory, rng: random.Random) -> None:
    """Refuse a refresh token that is valid."""
    rng.choice(answers(history, "refresh", "Session"))["outcome"] = {"__typename": "InvalidSession"}


def misread_a_slot(history: RecordedHistory, rng: random.Random) -> None:
    """Read a wrong number of free places."""
    rng.choice(answers(history, "read", "Slot"))["outcome"]["remaining"] += 4


def read_an_old_version(history: RecordedHistory, rng: random.Random) -> None:
    """Read a slot as it was long before."""
    documents = documents_by_slot(history)
    begin = min(fault["started_at"] for fault in history.faults)
    old = []
    for operation in answers(history, "read", "Slot"):
        of_slot = lines_by_slot(history)[operation["outcome"]["id"][-24:]]
        if len(of_slot) > 2 and of_slot[1]["read_at"] < begin:
            old.append(operation)
    end = at_the_end(history)
    operation = rng.choice(old)
    first = documents[operation["outcome"]["id"][-24:]][0]
    outcome = {**operation["outcome"], "version": 1, "remaining": first["remaining"]}
    insert(history, operation, outcome=outcome, **end)
