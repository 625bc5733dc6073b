"""What a recorded history contains, for those who corrupt it."""

from collections import defaultdict
from copy import deepcopy

from bench.faults.history import Json
from tests.support.bench.recorded_history import RecordedHistory

NEW_ID = "f" * 24


def lines_by_slot(history: RecordedHistory) -> dict[str, list[Json]]:
    lines: defaultdict[str, list[Json]] = defaultdict(list)
    for line in history.versions:
        if line["collection"] == "slots":
            lines[line["id"]].append(line)
    return lines


def documents_by_slot(history: RecordedHistory) -> dict[str, list[Json]]:
    """Return the documents of each slot by version; the last one is the final one."""
    return {
        slot: [line["document"] for line in lines] for slot, lines in lines_by_slot(history).items()
    }


def states_by_session(history: RecordedHistory) -> list[list[Json]]:
    """Return the states of each slot that each session received."""
    states: defaultdict[tuple[str, int, str], list[Json]] = defaultdict(list)
    for line in history.watched:
        if line["kind"] == "availability":
            states[line["watcher"], line["session"], line["slot"]].append(line)
    return list(states.values())


def ended_at(history: RecordedHistory, state: Json) -> float:
    """Return when the session of a line ended."""
    session = (state["watcher"], state["session"])
    ends = (line for line in history.watched if line["kind"] == "end")
    return next(float(line["at"]) for line in ends if (line["watcher"], line["session"]) == session)


def answers(history: RecordedHistory, operation: str, *names: str) -> list[Json]:
    """Return the operations with such a response."""
    return [
        each
        for each in history.operations
        if each["operation"] == operation and (each["outcome"] or {}).get("__typename") in names
    ]


def slot_of(operation: Json) -> str:
    """Return the slot that an operation books."""
    return str(operation["input"]["slotId"])[-24:]


def single_bookings(history: RecordedHistory) -> list[Json]:
    """Return the bookings that were requested once, by users without unknown outcomes there."""
    unknown = {
        (each["user_id"], each["input"]["slotId"])
        for each in history.operations
        if each["outcome"] is None and "slotId" in each["input"]
    }
    return [
        each
        for each in answers(history, "book", "Booked")
        if not each["input"]["idempotencyKey"]
        and "userId" not in each["input"]
        and (each["user_id"], each["input"]["slotId"]) not in unknown
    ]


def insert(history: RecordedHistory, like: Json, **fields: object) -> None:
    """Add an operation like another one."""
    copy = {**deepcopy(like), "id": 10**9 + len(history.operations), **fields}
    history.operations.append(copy)


def at_the_end(history: RecordedHistory) -> Json:
    """Return the times of an operation after all others."""
    last = max(line["read_at"] for line in history.versions)
    return {"started_at": last + 1, "finished_at": last + 2, "error": None}


def final_bookings(history: RecordedHistory) -> list[tuple[str, str]]:
    """Return the confirmed bookings at the end: the id that clients know, and the user."""
    return [
        (f"booking_{slot}{booking['id']}", booking["user"])
        for slot, documents in documents_by_slot(history).items()
        for booking in documents[-1]["bookings"]
        if not booking.get("history") or booking["history"][-1]["status"] == "confirmed"
    ]
