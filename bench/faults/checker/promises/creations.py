"""Checks the slots that organizers created with idempotency keys: one slot for each key."""

from collections import defaultdict
from collections.abc import Sequence

from bench.faults.checker.effects import REJECTED, key_of
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersions
from bench.faults.history import CREATE_SLOT, Operation


def check_creations(
    operations: Sequence[Operation], versions: SlotVersions, report: Report
) -> None:
    """Report keys with two slots, slots that were lost, and refusals whose slot exists.

    The title of a slot contains its key.
    """
    ids_of_title: defaultdict[str, list[str]] = defaultdict(list)
    for slot_id, of_slot in versions.slots.items():
        ids_of_title[str(of_slot[0].document.get("title"))].append(slot_id)
    by_key: defaultdict[tuple[str, str], list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.operation == CREATE_SLOT and (key := key_of(operation)):
            by_key[operation.user_id, key].append(operation)
    report.counts["creations with a key"] = len(by_key)
    for (_, key), of_key in by_key.items():
        _check_key(key, of_key, ids_of_title[str(of_key[0].input["title"])], report)


def _check_key(
    key: str, operations: Sequence[Operation], slot_ids: Sequence[str], report: Report
) -> None:
    created = {
        str(outcome["id"])[-24:]
        for operation in operations
        if (outcome := operation.outcome) and outcome["__typename"] == "Slot"
    }
    description = f"{key}: created {sorted(created)}, stored {sorted(slot_ids)}"
    if len(created) > 1:
        report.add("key with two outcomes", description, operations)
    elif len(slot_ids) > 1:
        report.add("second effect", description, operations)
    elif created - set(slot_ids):
        report.add("lost slot", description, operations)
    elif slot_ids and all(map(_is_refused, operations)):
        report.add("refused, but written", description, operations)


def _is_refused(operation: Operation) -> bool:
    """Return whether the server said that this request created nothing."""
    if operation.outcome is None:
        return operation.error in REJECTED
    return bool(operation.outcome["__typename"] != "Slot")
