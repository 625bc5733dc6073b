"""Corruptions of what guardians booked: for them, users who booked for others become guardians."""

import random
from collections.abc import Iterator

from bench.faults.history import GUARDIANS, Json
from tests.support.bench.corruptions.places import answers, insert
from tests.support.bench.recorded_history import RecordedHistory


def add_guardians(history: RecordedHistory) -> list[Json]:
    """Let members be guardians of those for whom they book; return such bookings."""
    booked = [
        each
        for each in answers(history, "book", "Booked")
        if "userId" in each["input"] and not each["client"].startswith("organizer")
    ]
    pairs = {(each["user_id"], each["input"]["userId"][-24:]) for each in booked}
    for child in {child for _, child in pairs}:
        guardians = [by for by, of_child in sorted(pairs) if of_child == child]
        _set_guardians(history, child, guardians, 0.0)
    for booking in _bookings(history):
        by = (booking.get("history") or [{"by": booking["user"]}])[0]["by"]
        if (by, booking["user"]) in pairs:
            booking["madeAs"] = "guardian"
    return booked


def forget_that_a_guardian_made_it(history: RecordedHistory, rng: random.Random) -> None:
    """Store a booking of a guardian as one that nobody made for a child."""
    booking_id = rng.choice(add_guardians(history))["outcome"]["booking"]["id"][-24:]
    for booking in _bookings(history):
        if booking["id"] == booking_id:
            booking.pop("madeAs")


def book_for_a_lost_child(history: RecordedHistory, rng: random.Random) -> None:
    """Let a user be no guardian any more before they book."""
    first_sent = [each for each in add_guardians(history) if not each["input"]["idempotencyKey"]]
    operation = rng.choice(first_sent)
    child = operation["input"]["userId"][-24:]
    _set_guardians(history, child, [], operation["started_at"] - 0.02)


def _set_guardians(
    history: RecordedHistory, child: str, guardians: list[str], started_at: float
) -> None:
    given = {"userId": f"user_{child}", "guardianIds": [f"user_{each}" for each in guardians]}
    fields = {"operation": GUARDIANS, "input": given, "error": None}
    times = {"started_at": started_at, "finished_at": started_at + 0.01}
    insert(history, history.operations[0], **fields, **times, outcome={"__typename": "UserUpdated"})


def _bookings(history: RecordedHistory) -> Iterator[Json]:
    """Yield each booking of each document, with its id."""
    for line in history.versions:
        if line["collection"] == "slots":
            yield from line["document"]["bookings"]
        elif line["collection"] == "ended_bookings":
            line["document"]["id"] = line["id"]
            yield line["document"]
