"""Checks what guardians booked for dependents: as guardians, and while they were that."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.faults.checker.disturbances import Disturbances
from bench.faults.checker.effects import REJECTED, Effect
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersions
from bench.faults.history import GUARDIANS, Json, Operation, raw_id

# A change without a response may be written for so long.
SETTLED_S = 30.0
# What may keep an app at a primary that has been replaced, whose users are older.
OLD_PRIMARY = re.compile("primary|mongo|partition|majority|lag|disk", re.IGNORECASE)


def check_guardians(
    effects: Sequence[Effect],
    operations: Sequence[Operation],
    versions: SlotVersions,
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report bookings by guardians that are not made as such, or after they were guardians."""
    changes: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.operation == GUARDIANS:
            changes[raw_id(operation.input["userId"])].append(operation)
    guardians = {
        child: set[str]().union(*map(_named_guardians, of_child))
        for child, of_child in changes.items()
    }
    _check_made_as(guardians, versions, report)
    removals = {child: list(_removals(of_child)) for child, of_child in changes.items()}
    for effect in effects:
        by, child = effect.operations[0].user_id, effect.user_id
        if by not in guardians.get(child, ()):
            continue
        report.counts["requests of guardians"] += 1
        is_booked = effect.is_accepted and effect.name in ("book", "request")
        for since, until, still in removals[child] if is_booked else ():
            during = effect.started_at, effect.finished_at
            is_former = since < effect.started_at and effect.finished_at < until
            if by not in still and is_former and not disturbances.may_concern(OLD_PRIMARY, *during):
                description = f"{by} for {child} in {effect.slot_id}"
                report.add("booked by a former guardian", description, effect.operations)


def _check_made_as(guardians: dict[str, set[str]], versions: SlotVersions, report: Report) -> None:
    bookings: dict[str, Json] = dict(versions.ended_bookings)
    for of_slot in versions.slots.values():
        for version in of_slot:
            bookings.update((str(each["id"]), each) for each in version.document["bookings"])
    for id_, booking in bookings.items():
        child = str(booking["user"])
        history: list[Json] = booking.get("history") or [{"by": child}]
        is_guardians = history[0]["by"] in guardians.get(child, ())
        # Organizers book for members as such.
        if is_guardians is not (booking.get("madeAs") == "guardian"):
            made_as = f"{id_} of {child} by {history[0]['by']}: {booking.get('madeAs')}"
            report.add("made as somebody else", made_as, versions=[booking])


def _named_guardians(change: Operation) -> set[str]:
    return set(map(raw_id, change.input["guardianIds"]))


def _removals(changes: Sequence[Operation]) -> Iterator[tuple[float, float, set[str]]]:
    """Yield from when until when a child had certain guardians, by the changes of one organizer."""
    open_until = 0.0
    for change, next_change in zip(changes, [*changes[1:], None], strict=True):
        if change.outcome is None:
            if change.error not in REJECTED:
                open_until = change.started_at + SETTLED_S
        elif change.outcome["__typename"] == "UserUpdated" and change.finished_at:
            until = next_change.started_at if next_change else float("inf")
            since = max(change.finished_at, open_until)
            yield since, until, _named_guardians(change)
