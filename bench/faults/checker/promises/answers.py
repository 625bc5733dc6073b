"""Checks responses that change nothing: errors that no fault explains, and states that are read."""

import re
from collections.abc import Sequence

from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.linearizability import SlotOrder
from bench.faults.checker.promises.watchers import Told, check_told
from bench.faults.checker.report import Report
from bench.faults.history import UNAVAILABLE, Operation

# What every request may get at any time on a busy machine; the client repeats it.
# Refused tokens are reported with their sessions.
BUSY = {"TIMEOUT", "CONNECTION_LOST", "OUTCOME_UNKNOWN", "OVERLOADED", "UNAUTHENTICATED"}
# A process that lost a server finds it again within this time.
RECONNECTED_S = 10.0
ANY_FAULT = re.compile("")


def check_errors(
    operations: Sequence[Operation], disturbances: Disturbances, report: Report
) -> None:
    """Report errors that no client should see, and unavailable servers without a fault."""
    for operation in operations:
        error = operation.error
        if error is None or error in BUSY:
            continue
        since = operation.started_at - RECONNECTED_S
        until = operation.finished_at or operation.started_at
        is_explained = error == UNAVAILABLE and disturbances.may_concern(ANY_FAULT, since, until)
        if not is_explained:
            description = f"{operation.operation} of {operation.user_id}: {error}"
            report.add("unexplained error", description, [operation])


def check_reads(
    operations: Sequence[Operation],
    orders: dict[str, SlotOrder],
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report slots that were read as they never were, or as they were long before."""
    for operation in operations:
        outcome, finished_at = operation.outcome or {}, operation.finished_at
        if operation.operation == "read" and outcome.get("__typename") == "Slot" and finished_at:
            told = Told(finished_at, outcome["version"], outcome["remaining"])
            slot_id = str(outcome["id"])[-24:]
            problem = check_told(told, operation.started_at, orders.get(slot_id), disturbances)
            if problem:
                report.add("read wrongly", f"slot {slot_id}: {problem}", [operation])
