"""Corruptions of tickets, of fencing tokens and of the messages to subscribers."""

import random
from collections import defaultdict
from itertools import pairwise

from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.promises.watchers import STALE_S
from bench.faults.history import Json
from slotlock.infrastructure.redis.keys import (
    HOLD_SWEEPER_LOCK,
    PARTITIONS,
    admission_lock,
    lock_keys,
)
from tests.support.bench.corruptions.places import (
    NEW_ID,
    answers,
    ended_at,
    lines_by_slot,
    slot_of,
    states_by_session,
)
from tests.support.bench.recorded_history import RecordedHistory, numbered


def _ticket_answers(history: RecordedHistory, outcome: str) -> dict[str, list[Json]]:
    """Return the operations that show a ticket as answered with such an outcome, by ticket."""
    found: defaultdict[str, list[Json]] = defaultdict(list)
    for each in (*answers(history, "ticket", "Ticket"), *answers(history, "request", "Ticket")):
        if (each["outcome"]["outcome"] or {}).get("__typename") == outcome:
            found[each["outcome"]["id"]].append(each["outcome"])
    return found


def lose_a_booked_ticket(history: RecordedHistory, rng: random.Random) -> None:
    """Say that a ticket is lost which has its booking."""
    for shown in rng.choice(list(_ticket_answers(history, "Booked").values())):
        shown.update(status="LOST", outcome=None)


def report_both_outcomes_of_a_ticket(history: RecordedHistory, rng: random.Random) -> None:
    """Say of a ticket that it is lost and booked."""
    for shown in rng.choice(list(_ticket_answers(history, "Booked").values())):
        shown["status"] = "LOST"


def lose_a_ticket_without_a_loss(history: RecordedHistory, rng: random.Random) -> None:
    """Say that a ticket is lost although Redis lost nothing."""
    other = next(each for each in history.faults if "Redis" not in each["kind"])
    requests = answers(history, "request", "SlotFull", "AlreadyBooked", "Ticket")
    operation = rng.choice(requests)
    ticket = f"ticket_{slot_of(operation)}{operation['user_id']}{'0' * 59}"
    operation["outcome"] = {"__typename": "Ticket", "id": ticket, "status": "LOST", "outcome": None}
    operation["started_at"] = rng.uniform(other["started_at"], other["ended_at"] - 1)
    operation["finished_at"] = operation["started_at"] + 1


def never_answer_a_ticket(history: RecordedHistory, rng: random.Random) -> None:
    """Leave a ticket in the queue."""
    for shown in rng.choice(list(_ticket_answers(history, "Booked").values())):
        shown.update(status="QUEUED", outcome=None)


def write_without_a_lock(history: RecordedHistory, rng: random.Random) -> None:
    """Never take the lock of a slot that was written many times."""
    lines = lines_by_slot(history)
    slots = sorted(lines, key=lambda slot: len(lines[slot]))[-2:]
    slot = rng.choice(slots)
    history.fences = numbered(grant for grant in history.fences if slot not in grant["key"])


def work_without_a_lock(history: RecordedHistory, rng: random.Random) -> None:
    """Never take the lock of the hold sweeper or of a partition of the queue."""
    name = rng.choice([HOLD_SWEEPER_LOCK, *map(admission_lock, range(PARTITIONS))])
    key = lock_keys(name).lock
    history.fences = numbered(grant for grant in history.fences if grant["key"] != key)


def drop_the_fences_of_a_lock(history: RecordedHistory, rng: random.Random) -> None:
    """Lose every token of any lock."""
    key = rng.choice(sorted({grant["key"] for grant in history.fences}))
    history.fences = [grant for grant in history.fences if grant["key"] != key]


def let_a_fence_fall(history: RecordedHistory, rng: random.Random) -> None:
    """Hand out a smaller token than before."""
    earlier = rng.choice(history.fences)
    history.fences.append({**earlier, "at": earlier["at"] + 1000, "fence": earlier["fence"] - 1})


def leave_a_subscriber_stale(history: RecordedHistory, rng: random.Random) -> None:
    """Send a subscriber nothing more of a slot."""
    disturbances = Disturbances(history.faults)
    stale = [
        states[index:]
        for states in states_by_session(history)
        for index in range(1, len(states))
        if disturbances.calm_s(states[index]["at"], ended_at(history, states[0])) > 2 * STALE_S
    ]
    concealed = rng.choice(stale)
    history.watched = [line for line in history.watched if line not in concealed]


def let_availability_go_back(history: RecordedHistory, rng: random.Random) -> None:
    """Send a subscriber two versions in the wrong order."""
    earlier, later = rng.choice(
        [pair for states in states_by_session(history) for pair in pairwise(states)]
    )
    for name in ("version", "remaining"):
        earlier[name], later[name] = later[name], earlier[name]


def misinform_a_subscriber(history: RecordedHistory, rng: random.Random) -> None:
    """Send a subscriber a wrong number of free places."""
    rng.choice(rng.choice(states_by_session(history)))["remaining"] += 4


def notify_a_subscriber_early(history: RecordedHistory, rng: random.Random) -> None:
    """Send a subscriber a version before it was written."""
    later = [line for states in states_by_session(history) for line in states[1:]]
    rng.choice(later)["at"] -= 60


def conceal_a_promotion(history: RecordedHistory, rng: random.Random) -> None:
    """Send a subscriber nothing of a place from the waiting list, with no later fault."""
    begun_at = {
        (line["watcher"], line["session"]): line["at"]
        for line in history.watched
        if line["kind"] == "begin"
    }
    events = [
        line
        for line in history.watched
        if line["kind"] == "booking"
        and line["at"] - begun_at[line["watcher"], line["session"]] > 2 * STALE_S
        and ended_at(history, line) - line["at"] > 2 * STALE_S
    ]
    event = rng.choice(events)
    history.watched.remove(event)
    history.faults = [fault for fault in history.faults if fault["healthy_at"] < event["at"]]


def invent_an_expiry(history: RecordedHistory, rng: random.Random) -> None:
    """Report to a subscriber that a hold expired which did not."""
    begin = rng.choice([line for line in history.watched if line["kind"] == "begin"])
    event = {"kind": "booking", "booking": NEW_ID, "action": "EXPIRED", "by": None, "length": 2}
    history.watched.insert(history.watched.index(begin) + 1, {**begin, **event})


def end_with_a_stale_subscriber(history: RecordedHistory, rng: random.Random) -> None:
    """Let the last value of a subscriber differ from that of a query."""
    compared = [each for each in history.operations if each["operation"] == "converged"]
    rng.choice(compared)["outcome"]["subscribed"]["version"] -= 1
