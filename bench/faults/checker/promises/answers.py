"""Checks responses that change nothing: errors that no fault explains, and states that are read."""

import re
from collections.abc import Sequence

from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.linearizability import SlotOrder
from bench.faults.checker.promises.watchers import ObservedState, check_observed_state
from bench.faults.checker.report import Report
from bench.faults.clients.plan import REQUEST_TIMEOUT_S
from bench.faults.history import UNAVAILABLE, Operation

# What a request may get from a busy machine, too; the client repeats it.
BUSY = {"TIMEOUT", "CONNECTION_LOST", "OUTCOME_UNKNOWN", "OVERLOADED", UNAVAILABLE}
# Of the requests without a fault, such a share has a response on the slowest machine.
ANSWERED_SHARE = 0.75
# So few without a response say nothing.
FEW = 20
# A process that lost a server finds it again within this time.
RECONNECTED_S = 10.0
ANY_FAULT = re.compile("")


def check_errors(
    operations: Sequence[Operation], disturbances: Disturbances, report: Report
) -> None:
    """Report errors that no client should see, and apps that do not respond without a fault."""
    busy, calm_count = list[Operation](), 0
    for operation in operations:
        until = operation.finished_at or operation.started_at + REQUEST_TIMEOUT_S
        since = operation.started_at - RECONNECTED_S
        is_calm = not disturbances.may_concern(ANY_FAULT, since, until)
        calm_count += is_calm
        # Refused tokens are reported with their sessions.
        if operation.error in BUSY:
            busy += [operation] * is_calm
        elif operation.error not in (None, "UNAUTHENTICATED"):
            description = f"{operation.operation} of {operation.user_id}: {operation.error}"
            report.add("unexplained error", description, [operation])
    if len(busy) > max(calm_count * (1 - ANSWERED_SHARE), FEW):
        description = f"{len(busy)} of {calm_count} requests without a fault"
        report.add("unavailable without a fault", description, busy)


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
            state = ObservedState(finished_at, outcome["version"], outcome["remaining"])
            slot_id = str(outcome["id"])[-24:]
            problem = check_observed_state(
                state, operation.started_at, orders.get(slot_id), disturbances
            )
            if problem:
                report.add("read wrongly", f"slot {slot_id}: {problem}", [operation])
