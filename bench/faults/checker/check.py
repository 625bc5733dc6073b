"""Checks a saved history: every response, every version and every promise."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.faults.checker.causes import check_causes
from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.effects import LOST, Effect, claims_of, to_effects
from bench.faults.checker.invariants import (
    check_background_locks,
    check_fences,
    check_locked,
    check_settled,
    check_versions,
)
from bench.faults.checker.linearizability import OF_OLD_SLOT, SlotOrder, explanations_by
from bench.faults.checker.promises.answers import check_errors, check_reads
from bench.faults.checker.promises.creations import check_creations
from bench.faults.checker.promises.guardians import check_guardians
from bench.faults.checker.promises.histories import check_histories
from bench.faults.checker.promises.keys import check_claims, check_records, check_reused_keys
from bench.faults.checker.promises.limits import check_limits, check_unpublished
from bench.faults.checker.promises.mails import check_mails
from bench.faults.checker.promises.sessions import check_sessions
from bench.faults.checker.promises.tickets import check_queue, check_tickets
from bench.faults.checker.promises.watchers import check_watchers, to_sessions
from bench.faults.checker.report import Report
from bench.faults.checker.versions import read_versions
from bench.faults.history import (
    CONVERGED,
    FAULTS,
    FENCES,
    MAILS,
    PROBLEMS,
    SHOWN_STATE,
    SLOT_VERSIONS,
    WATCHED,
    Operation,
    read_lines,
    read_operations,
)

# Refusals that no version of one slot explains: lost tickets, and what depends on teams, guardians
# or other claims of the same request.
UNEXPLAINED = {LOST, "ClaimsRefused", "NotTeammate"}


def check_directory(directory: Path) -> Report:
    """Check the history in a directory and return what was broken."""
    report, operations = Report(), read_operations(directory)
    disturbances = Disturbances(read_lines(directory / FAULTS))
    report.counts["operations"] = len(operations)
    versions = read_versions(directory, report)
    requests = to_effects(operations, report)
    effects = [claim for each in requests for claim in claims_of(each)]
    users = versions.users_by_booking
    for effect in effects:  # somebody else may change the booking, such as a guardian
        effect.user_id = users.get(effect.booking_id or "", effect.user_id)
    check_versions(versions, report)
    orders = {slot_id: SlotOrder(slot_id, each) for slot_id, each in versions.slots.items()}
    of_slots = _by_slot(effects, orders)
    for slot_id, order in orders.items():
        order.narrow(of_slots[slot_id])
    explanations = explanations_by(orders.values(), versions.clock_offset_s)
    for slot_id, order in orders.items():
        order.check(of_slots[slot_id], explanations, report)
    for slot_id in of_slots.keys() - orders.keys():
        operations_of = [each.operations[0] for each in of_slots[slot_id]]
        report.add("response about an unknown slot", slot_id, operations_of)
    check_causes(effects, orders, versions, disturbances, report)
    _check_moves(effects, orders, report)
    check_histories(effects, versions, report)
    check_records(requests, versions, report)
    check_claims(requests, report)
    check_reused_keys(operations, report)
    check_settled(versions, operations, disturbances, report)
    check_unpublished(operations, orders, report)
    check_tickets(operations, disturbances, report)
    check_queue(effects, orders, disturbances, report)
    check_sessions(operations, report)
    check_creations(operations, versions, report)
    check_errors(operations, disturbances, report)
    check_reads(operations, orders, disturbances, report)
    check_guardians(effects, operations, versions, disturbances, report)
    check_limits(read_lines(directory / SLOT_VERSIONS), report)
    grants = check_fences(read_lines(directory / FENCES), report)
    check_locked(versions, grants, disturbances, report)
    check_background_locks(grants, report)
    sessions = to_sessions(read_lines(directory / WATCHED))
    check_watchers(sessions, orders, versions, operations, disturbances, report)
    _check_converged(operations, report)
    if (directory / MAILS).exists():
        check_mails(read_lines(directory / MAILS), versions, disturbances, report)
    for problem in read_lines(directory / PROBLEMS):
        report.add(problem["kind"], problem["description"])
    return report


def _by_slot(
    effects: Sequence[Effect], orders: dict[str, SlotOrder]
) -> defaultdict[str, list[Effect]]:
    """Return the effects with a response, by the slot that the response is about."""
    of_slots: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        if effect.response is None or effect.outcome in UNEXPLAINED:
            continue
        slot_id = effect.slot_id
        if effect.name == "move":
            old_slot = str(effect.operations[0].input["bookingId"])[-48:-24]
            slot_id = old_slot if _is_of_old_slot(effect, old_slot, orders) else slot_id
        of_slots[slot_id].append(effect)
    return of_slots


def _is_of_old_slot(move: Effect, old_slot: str, orders: dict[str, SlotOrder]) -> bool:
    """Return whether a refusal is about the slot that the booking should have left."""
    both = [orders[slot].versions[-1] for slot in (old_slot, move.slot_id) if slot in orders]
    if move.outcome in OF_OLD_SLOT or len(both) < 2:
        return move.outcome in OF_OLD_SLOT
    old, new = both
    if move.outcome == "SlotCancelled" and old.status == "cancelled":
        return new.status != "cancelled" or old.changed_at < new.changed_at
    return move.outcome == "SlotStarted" and old.starts_at < new.starts_at


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


def _check_converged(operations: Sequence[Operation], report: Report) -> None:
    for operation in operations:
        if operation.operation == CONVERGED and operation.outcome:
            report.counts["subscriptions compared"] += 1
            subscribed, queried = operation.outcome["subscribed"], operation.outcome["queried"]
            if any(subscribed.get(n) != queried.get(n) for n in SHOWN_STATE):
                report.add("stale subscriber", operation.client, [operation])
