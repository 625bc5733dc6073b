"""Corruptions of the recorded versions of slots."""

import random
from copy import deepcopy
from datetime import datetime, timedelta
from itertools import pairwise

from bench.faults.history import Json
from tests.support.bench.corruptions.places import (
    NEW_ID,
    answers,
    documents_by_slot,
    lines_by_slot,
    single_bookings,
    slot_of,
)
from tests.support.bench.recorded_history import RecordedHistory


def revive_a_cancelled_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Let a cancelled booking be live again until the end."""
    ended = {line["id"] for line in history.versions if line["collection"] == "ended_bookings"}
    choices = []
    for documents in documents_by_slot(history).values():
        for index, (before, after) in enumerate(pairwise(documents[:-1])):
            ids = {booking["id"] for booking in after["bookings"]}
            for booking in before["bookings"]:
                is_free = all(
                    each["remaining"] > 0
                    and booking["user"] not in [other["user"] for other in each["bookings"]]
                    for each in documents[index + 2 :]
                )
                if booking["id"] in ended - ids and is_free:
                    choices.append((documents[index + 2 :], booking))
    documents, booking = rng.choice(choices)
    for document in documents[rng.randrange(len(documents)) :]:
        document["bookings"].append(booking)
        document["remaining"] -= 1


def drop_a_waiting_list_entry(history: RecordedHistory, rng: random.Random) -> None:
    """Let an entry of a waiting list vanish."""
    choices = []
    for documents in documents_by_slot(history).values():
        booked = {each["id"] for document in documents for each in document["bookings"]}
        for entry in {entry["id"] for document in documents for entry in document["waitlist"]}:
            waiting = [each for each in documents if entry in [e["id"] for e in each["waitlist"]]]
            if len(waiting) > 1 and entry not in booked:
                choices.append((entry, waiting))
    entry, waiting = rng.choice(choices)
    for document in waiting[rng.randrange(1, len(waiting)) :]:
        document["waitlist"] = [each for each in document["waitlist"] if each["id"] != entry]


def swap_the_waiting_list(history: RecordedHistory, rng: random.Random) -> None:
    """Let two users of a waiting list change places."""
    documents = [
        after
        for of_slot in documents_by_slot(history).values()
        for before, after in pairwise(of_slot[:-1])
        if len([entry for entry in before["waitlist"] if entry in after["waitlist"]]) > 1
    ]
    rng.choice(documents)["waitlist"].reverse()


def forget_an_ended_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Let a booking vanish without its end."""
    live = {
        booking["id"]
        for documents in documents_by_slot(history).values()
        for document in documents
        for booking in document["bookings"]
    }
    ended = [
        line
        for line in history.versions
        if line["collection"] == "ended_bookings" and line["id"] in live
    ]
    history.versions.remove(rng.choice(ended))


def forget_a_booking(history: RecordedHistory, rng: random.Random) -> None:
    """Lose an acknowledged booking: no version has it."""
    operation = rng.choice(single_bookings(history))
    booking_id = operation["outcome"]["booking"]["id"][-24:]
    for document in documents_by_slot(history)[slot_of(operation)]:
        remaining_bookings = [each for each in document["bookings"] if each["id"] != booking_id]
        document["remaining"] += len(document["bookings"]) - len(remaining_bookings)
        document["bookings"] = remaining_bookings


def book_twice(history: RecordedHistory, rng: random.Random) -> None:
    """Give a user two places in one slot."""
    documents = [
        each
        for of_slot in documents_by_slot(history).values()
        for each in of_slot
        if each["bookings"] and each["remaining"] > 0
    ]
    document = rng.choice(documents)
    document["bookings"].append({**rng.choice(document["bookings"]), "id": NEW_ID})
    document["remaining"] -= 1


def overbook(history: RecordedHistory, rng: random.Random) -> None:
    """Give one place more than there are."""
    full = [
        each
        for of_slot in documents_by_slot(history).values()
        for each in of_slot
        if each["remaining"] == 0
    ]
    document = rng.choice(full)
    document["bookings"].append({"id": NEW_ID, "user": NEW_ID, "at": document["changedAt"]})
    document["remaining"] = -1


def miscount(history: RecordedHistory, rng: random.Random) -> None:
    """Store a wrong number of free places."""
    of_slot = rng.choice(list(documents_by_slot(history).values()))
    rng.choice(of_slot)["remaining"] += rng.choice((-1, 1))


def exceed_a_limit(history: RecordedHistory, rng: random.Random) -> None:
    """Give a user two bookings in a campaign that allows one."""
    latest: dict[str, Json] = {}
    choices = []
    for line in history.versions:
        document = line["document"]
        terms = document.get("campaign") or {}
        if terms.get("maxBookings") != 1 or line["kind"] == "final":
            continue
        latest[line["id"]] = document
        users = {booking["user"] for booking in document["bookings"]}
        choices += [
            (document, booking)
            for other in latest.values()
            for booking in other["bookings"]
            if booking["user"] not in users and document["remaining"] > 0
        ]
    document, booking = rng.choice(choices)
    document["bookings"].append({**booking, "id": NEW_ID})
    document["remaining"] -= 1


def expire_a_confirmed_booking(history: RecordedHistory, rng: random.Random) -> None:
    """End a confirmed booking as if it had been a hold."""
    live = {
        booking["id"]
        for documents in documents_by_slot(history).values()
        for document in documents
        for booking in document["bookings"]
        if not booking.get("history")
    }
    ended = [
        line["document"]["history"][-1]
        for line in history.versions
        if line["collection"] == "ended_bookings" and line["id"] in live
    ]
    rng.choice(ended)["action"] = "expired"


def decide_in_the_future(history: RecordedHistory, rng: random.Random) -> None:
    """Let a writer's clock be ahead."""
    lines = [line for line in history.versions if line.get("cluster_time")]
    document = rng.choice(lines)["document"]
    changed_at = datetime.fromisoformat(document["changedAt"]) + timedelta(seconds=5)
    document["changedAt"] = changed_at.isoformat()


def _chosen_version(history: RecordedHistory, rng: random.Random, first: int, last: int) -> Json:
    """Return a line of a slot that has more than two versions, but none of its first or last."""
    slots = [lines for lines in lines_by_slot(history).values() if len(lines) > 4]
    lines = rng.choice(slots)
    return rng.choice(lines[first : len(lines) - last])


def drop_a_version(history: RecordedHistory, rng: random.Random) -> None:
    """Lose a version within the others."""
    history.versions.remove(_chosen_version(history, rng, 0, 2))


def drop_the_last_version(history: RecordedHistory, rng: random.Random) -> None:
    """Lose the last version of a slot before its final document."""
    slots = [lines for lines in lines_by_slot(history).values() if len(lines) > 2]
    history.versions.remove(rng.choice(slots)[-2])


def drop_a_document(history: RecordedHistory, rng: random.Random) -> None:
    """Lose the document of a version."""
    _chosen_version(history, rng, 0, 1)["document"] = None


def write_a_version_twice(history: RecordedHistory, rng: random.Random) -> None:
    """Write two different versions with one number."""
    line = _chosen_version(history, rng, 1, 1)
    copy = deepcopy(line)
    copy["document"]["bookings"], copy["document"]["waitlist"] = [], []
    copy["document"]["remaining"] = copy["document"]["capacity"] - 1
    history.versions.insert(history.versions.index(line) + 1, copy)


def let_a_version_fall(history: RecordedHistory, rng: random.Random) -> None:
    """Write an older version again."""
    of_slot = _chosen_version(history, rng, 0, 3)
    later = [line for line in lines_by_slot(history)[of_slot["id"]] if line["kind"] != "final"]
    history.versions.insert(history.versions.index(later[-1]) + 1, deepcopy(of_slot))


def drop_a_slot(history: RecordedHistory, rng: random.Random) -> None:
    """Lose a slot that was created with a key."""
    slot = rng.choice(_creations(history))["outcome"]["id"][-24:]
    history.versions = [line for line in history.versions if line["id"] != slot]


def create_a_slot_twice(history: RecordedHistory, rng: random.Random) -> None:
    """Create a second slot for one key."""
    slot = rng.choice(_creations(history))["outcome"]["id"][-24:]
    history.versions += [{**line, "id": NEW_ID} for line in lines_by_slot(history)[slot]]


def _creations(history: RecordedHistory) -> list[Json]:
    created = answers(history, "createSlot", "Slot")
    return [each for each in created if each["input"].get("idempotencyKey")]
