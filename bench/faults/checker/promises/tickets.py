"""Checks the tickets of the queue: each has one outcome, and they are served in order."""

import re
from collections import defaultdict
from collections.abc import Sequence

from bench.faults.checker.disturbances import REDIS_FAULT, Disturbances
from bench.faults.checker.effects import LOST, Effect, key_hash, key_of, parse_ticket_key
from bench.faults.checker.linearizability import SlotOrder
from bench.faults.checker.report import Report
from bench.faults.history import Operation

FINAL_STATUSES = ("ANSWERED", LOST)
# Without its Redis an app decides requests of the queue at once, and for some time afterwards.
QUEUE_FAULT = re.compile(f"{REDIS_FAULT.pattern}|link|partition|isolat", re.IGNORECASE)
QUEUE_RECOVERY_S = 30.0


def check_tickets(
    operations: Sequence[Operation], disturbances: Disturbances, report: Report
) -> None:
    """Report tickets without an outcome at the end, and those that no loss explains.

    A request whose repetition was refused is lost, too: no worker books it after the refusal.
    """
    last: dict[str, Operation] = {}
    refused_from = _refusal_times(operations)
    requested_at: dict[str, float] = {}
    for operation in operations:
        shown = operation.outcome or {}
        if shown.get("__typename") != "Ticket":
            continue
        ticket, status = str(shown["id"]), shown["status"]
        since = requested_at.setdefault(ticket, operation.started_at)
        if (status == "ANSWERED") != bool(shown["outcome"]):
            report.add("wrong ticket", f"{ticket} is {status}", [operation])
        seen_at = operation.finished_at or since
        is_refused = refused_from.get(parse_ticket_key(ticket), seen_at) < seen_at
        may_be_lost = is_refused or disturbances.may_concern(REDIS_FAULT, since, seen_at)
        if status == LOST and not may_be_lost:
            report.add("lost without a loss", ticket, [operation])
        known = last.get(ticket)
        if known is None or (known.outcome or {})["status"] not in FINAL_STATUSES:
            last[ticket] = operation
        elif (
            (known.outcome or {})["status"] == "ANSWERED"
            and status != "ANSWERED"
            and operation.started_at > (known.finished_at or since)
        ):
            report.add("ticket taken back", f"{ticket} is {status}", [known, operation])
    report.counts["tickets"] = len(last)
    for ticket, operation in last.items():
        if (operation.outcome or {})["status"] not in FINAL_STATUSES:
            report.add("ticket without an outcome", ticket, [operation])


def _refusal_times(operations: Sequence[Operation]) -> dict[tuple[str, str], float]:
    """Return when a request of each caller and hash of a key that got no ticket was first sent."""
    times: dict[tuple[str, str], float] = {}
    for operation in operations:
        key, outcome = key_of(operation), operation.outcome or {}
        if operation.operation == "request" and key and outcome.get("__typename") != "Ticket":
            times.setdefault((operation.user_id, key_hash(key)), operation.started_at)
    return times


def check_queue(
    effects: Sequence[Effect],
    orders: dict[str, SlotOrder],
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report tickets for one slot that were not served in the order of their requests.

    An app whose Redis is slow or unavailable decides a request at once, without the queue.
    """
    queued: defaultdict[str, list[tuple[float, int, Effect]]] = defaultdict(list)
    for effect in effects:
        order = orders.get(effect.slot_id)
        index = order.write_of(effect) if order else None
        if effect.tickets and effect.outcome == "Booked" and index is not None:
            ticket = _first_ticket(effect)
            if ticket.outcome and ticket.outcome["status"] == "QUEUED":
                queued[effect.slot_id].append((ticket.finished_at or 0.0, index, effect))
    for slot_id, by_entry in queued.items():
        by_entry.sort(key=lambda each: each[2].started_at)
        for position, (since, index, effect) in enumerate(by_entry):
            for _, other_index, other in by_entry[position + 1 :]:
                if other.started_at <= since or other_index >= index:
                    continue
                started_at = effect.started_at - QUEUE_RECOVERY_S
                if disturbances.may_concern(QUEUE_FAULT, started_at, effect.finished_at):
                    continue
                evidence = [effect.operations[0], other.operations[0]]
                documents = [orders[slot_id].versions[i].document for i in (other_index, index)]
                report.add("overtaking in the queue", f"slot {slot_id}", evidence, documents)


def _first_ticket(effect: Effect) -> Operation:
    """Return the first response with the ticket of a request."""
    shown = [
        operation
        for operation in effect.operations
        if operation.outcome and operation.outcome["__typename"] == "Ticket"
    ]
    return min(shown, key=lambda operation: operation.finished_at or 0.0)
