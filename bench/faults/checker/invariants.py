"""What holds in every version of a slot, from each to the next, and for the fencing tokens."""

from collections import Counter
from collections.abc import Iterable, Set
from itertools import pairwise

from bench.faults.checker.disturbances import REDIS_FAULT, Disturbances
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersion, SlotVersions
from bench.faults.history import Json
from slotlock.infrastructure.redis.keys import lock_keys

# How far MongoDB's time in a process may be ahead: by drift, a few milliseconds; see ADR 0037.
CLOCK_AHEAD_S = 0.1
BY_USERS = ("booked", "held", "moved")
# A slot that was written so often without a fault of Redis was locked at least once.
LOCKED_WRITES = 3
# A process that lost its Redis looks for it again within this time.
LOCKED_S = 5.0


def check_versions(versions: SlotVersions, report: Report) -> None:
    """Check the capacity of all slots and their waiting lists."""
    for slot_id, of_slot in versions.slots.items():
        for version in of_slot:
            _check_version(slot_id, version, report)
        ended = set[str]()
        for before, after in pairwise(of_slot):
            if after.number == before.number + 1 and after.status == "published":
                _check_waitlist(slot_id, before, after, report)
            ended |= before.ids - after.ids
            if back := ended & after.ids:
                evidence = [before.document, after.document]
                report.add("live again", f"{sorted(back)} of slot {slot_id}", versions=evidence)
                ended -= back
            if versions.has_final:
                _check_vanished(slot_id, before, after, versions, report)
        both = of_slot[-1].bookings.keys() & versions.ended_bookings.keys()
        both |= {id_ for id_, _ in of_slot[-1].waitlist} & versions.ended_entries.keys()
        if both:
            evidence = [of_slot[-1].document]
            report.add("live and ended", f"{sorted(both)} of slot {slot_id}", versions=evidence)


def check_locked(
    versions: SlotVersions, locks: Set[str], disturbances: Disturbances, report: Report
) -> None:
    """Check that every slot with some writes has a lock that was granted at all.

    While Redis is disturbed, or slower than its budget, a process writes without its lock.
    """
    for slot_id, of_slot in versions.slots.items():
        writes = [
            version
            for version in of_slot
            if version.number > 1
            and not disturbances.may_concern(
                REDIS_FAULT, version.written_at - LOCKED_S, version.read_at
            )
        ]
        if len(writes) >= LOCKED_WRITES and lock_keys(slot_id).lock not in locks:
            evidence = [version.document for version in writes]
            report.add("written without a lock", f"slot {slot_id}", versions=evidence)


def check_fences(grants: Iterable[Json], report: Report) -> set[str]:
    """Check that each grant of a lock has a greater fencing token than all earlier ones.

    Returns the keys of the locks.
    """
    latest = dict[str, Json]()
    for grant in sorted(grants, key=lambda each: float(each["at"])):
        report.counts["fencing tokens"] += 1
        earlier = latest.get(grant["key"])
        if earlier is not None and grant["fence"] <= earlier["fence"]:
            report.add("fence fell", grant["key"], versions=[earlier, grant])
        latest[grant["key"]] = grant
    return set(latest)


def _check_version(slot_id: str, version: SlotVersion, report: Report) -> None:
    evidence, name = [version.document], f"slot {slot_id} version {version.number}"
    if version.written_at and version.changed_at > version.written_at + CLOCK_AHEAD_S:
        ahead_s = version.changed_at - version.written_at
        report.add("decided in the future", f"{name}: by {ahead_s:.1f} s", versions=evidence)
    if version.status == "cancelled":
        return
    if version.free < 0:
        report.add("overbooked", f"{name}: {len(version.bookings)}", versions=evidence)
    if version.remaining != version.free:
        counted = f"{version.remaining} remaining, {version.free} free"
        report.add("wrong count", f"{name}: {counted}", versions=evidence)
    users = Counter(each.user_id for each in version.bookings.values())
    users.update(user for _, user in version.waitlist)
    if twice := [user for user, count in users.items() if count > 1]:
        report.add("user twice in a slot", f"{name}: {twice}", versions=evidence)


def _check_waitlist(slot_id: str, before: SlotVersion, after: SlotVersion, report: Report) -> None:
    """Check that entries are served in order and remain, and that no booking passes them."""
    evidence = [before.document, after.document]
    waiting = [entry for entry in before.waitlist if entry in after.waitlist]
    if list(after.waitlist[: len(waiting)]) != waiting:
        report.add("waiting list out of order", f"slot {slot_id}", versions=evidence)
    order = {id_: index for index, (id_, _) in enumerate(before.waitlist)}
    passed = min((order[id_] for id_, _ in waiting), default=len(order))
    for id_ in after.bookings.keys() - before.bookings.keys():
        creation = after.bookings[id_].creation
        is_overtaking = creation in BY_USERS and waiting
        if order.get(id_, -1) > passed or is_overtaking:
            description = f"slot {slot_id}: {creation} {id_}, while {waiting[0][0]} waits"
            report.add("overtaking in the waiting list", description, versions=evidence)


def _check_vanished(
    slot_id: str, before: SlotVersion, after: SlotVersion, versions: SlotVersions, report: Report
) -> None:
    evidence = [before.document, after.document]
    # An entry that is promoted has the id of its booking.
    ended_ids = versions.ended_bookings.keys() | versions.ended_entries.keys()
    for id_ in {id_ for id_, _ in before.waitlist} - after.ids - ended_ids:
        report.add("waiting list entry vanished", f"{id_} of slot {slot_id}", versions=evidence)
    for id_ in before.bookings.keys() - after.bookings.keys():
        ended = versions.ended_bookings.get(id_)
        if ended is None:
            report.add("booking vanished", f"{id_} of slot {slot_id}", versions=evidence)
            continue
        if ended["history"][-1]["action"] != "expired":
            continue
        held_until = before.bookings[id_].held_until
        if held_until is None:
            report.add("confirmed booking expired", id_, versions=[*evidence, ended])
        elif after.written_at and after.written_at + CLOCK_AHEAD_S < held_until:
            report.add("hold expired early", id_, versions=[*evidence, ended])
