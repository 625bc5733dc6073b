"""Checks a saved history: every response, every version and every promise."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.faults.checker.causes import check_causes
from bench.faults.checker.effects import Effect, check_tickets, to_effects
from bench.faults.checker.invariants import check_fences, check_versions
from bench.faults.checker.linearizability import MISSING_BOOKINGS, SlotOrder
from bench.faults.checker.promises.creations import check_creations
from bench.faults.checker.promises.limits import check_limits
from bench.faults.checker.promises.sessions import check_sessions
from bench.faults.checker.report import Report
from bench.faults.checker.versions import read_versions
from bench.faults.history import (
    FAULTS,
    FENCES,
    SLOT_VERSIONS,
    Json,
    Operation,
    read_lines,
    read_operations,
)

# Without its Redis an app decides requests of the queue at once.
QUEUE_FAULTS = re.compile("redis|valkey|sentinel|cluster|link|partition|isolat", re.IGNORECASE)
QUEUE_RECOVERY_S = 30.0


def check_directory(directory: Path) -> Report:
    """Check the history in a directory and return what was broken."""
    report, operations = Report(), read_operations(directory)
    report.counts["operations"] = len(operations)
    versions = read_versions(directory, report)
    effects = to_effects(operations, report)
    check_versions(versions, report)
    orders = {slot_id: SlotOrder(slot_id, each) for slot_id, each in versions.slots.items()}
    of_slots = _by_slot(effects)
    for slot_id, order in orders.items():
        order.narrow(of_slots[slot_id])
        order.check(of_slots[slot_id], report)
    check_causes(effects, orders, versions, report)
    _check_moves(effects, orders, report)
    check_tickets(operations, report)
    check_sessions(operations, report)
    check_creations(operations, versions, report)
    check_limits(read_lines(directory / SLOT_VERSIONS), report)
    check_fences(read_lines(directory / FENCES), report)
    _check_queue(effects, orders, list(read_lines(directory / FAULTS)), report)
    _check_subscribers(operations, report)
    return report


def _by_slot(effects: Sequence[Effect]) -> defaultdict[str, list[Effect]]:
    """Return the effects with a response, by the slot that the response is about."""
    of_slots: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        if effect.response is None:
            continue
        slot_id = effect.slot_id
        if effect.name == "move" and effect.outcome in MISSING_BOOKINGS:
            slot_id = str(effect.operations[0].input["bookingId"])[-48:-24]
        of_slots[slot_id].append(effect)
    return of_slots


def _check_moves(effects: Sequence[Effect], orders: dict[str, SlotOrder], report: Report) -> None:
    """Check that a booking that was moved left its old slot."""
    for effect in effects:
        if effect.outcome != "BookingMoved":
            continue
        old_slot = str(effect.operations[0].input["bookingId"])[-48:-24]
        order = orders.get(old_slot)
        index = order.vanished.get(effect.booking_id or "") if order else None
        if order and (index is None or order.existed_from[index] > effect.finished_at):
            documents = [order.versions[-1].document]
            report.add("half a move", f"{effect.booking_id}", effect.operations, documents)


def _check_queue(
    effects: Sequence[Effect], orders: dict[str, SlotOrder], faults: list[Json], report: Report
) -> None:
    """Check that tickets for one slot were served in the order of their requests.

    An app whose Redis is slow or unavailable decides a request at once, without the queue.
    """
    disturbed = [
        (fault["started_at"], (fault["ended_at"] or float("inf")) + QUEUE_RECOVERY_S)
        for fault in faults
        if QUEUE_FAULTS.search(f"{fault['kind']} {fault['target']}")
    ]
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
                if any(a <= effect.finished_at and effect.started_at <= b for a, b in disturbed):
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


def _check_subscribers(operations: Sequence[Operation], report: Report) -> None:
    for operation in operations:
        outcome = operation.outcome or {}
        if operation.operation == "availabilityWentBack":
            report.add("availability went back", operation.client, [operation])
        elif operation.operation == "converged":
            report.counts["subscriptions compared"] += 1
            subscribed, queried = outcome["subscribed"], outcome["queried"]
            if any(subscribed.get(n) != queried.get(n) for n in ("version", "remaining")):
                report.add("stale subscriber", operation.client, [operation])
