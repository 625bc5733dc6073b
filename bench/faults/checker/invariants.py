"""What holds in every version of a slot, from each to the next, and for the fencing tokens."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from bench.faults.checker.disturbances import REDIS_FAULT, Disturbances
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersion, SlotVersions
from bench.faults.history import Json, Operation
from slotlock.infrastructure.redis.keys import (
    HOLD_SWEEPER_LOCK,
    PARTITIONS,
    admission_lock,
    lock_keys,
)

# How far MongoDB's time in a process may be ahead: by drift, a few milliseconds; see ADR 0037.
CLOCK_AHEAD_S = 0.1
BY_USERS = ("booked", "held", "moved")
# If so many writes of a slot should have had its lock, at least one of them had it. If a lock of
# background work was taken so often, each other one was taken at least once.
LOCKED_WRITES = 12
# A hold that is over ends within this time without a fault.
SWEPT_S = 4.0


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
            if versions.final_at:
                _check_vanished(slot_id, before, after, versions, report)
        both = of_slot[-1].bookings.keys() & versions.ended_bookings.keys()
        both |= {id_ for id_, _ in of_slot[-1].waitlist} & versions.ended_entries.keys()
        if both:
            evidence = [of_slot[-1].document]
            report.add("live and ended", f"{sorted(both)} of slot {slot_id}", versions=evidence)


def check_locked(
    versions: SlotVersions,
    grants_by_lock: Mapping[str, int],
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report slots that were written many times, and never with their lock.

    A process whose Redis is disturbed, or slower than its budget, writes without the lock. On a
    slow machine that is the rule, so the share of all writes with a lock counts.
    """
    granted = {id_: grants_by_lock.get(lock_keys(id_).lock, 0) for id_ in versions.slots}
    writes = {
        slot_id: [
            version.document
            for version in of_slot
            if version.number > 1
            and not disturbances.may_concern(REDIS_FAULT, version.written_at, version.read_at)
        ]
        for slot_id, of_slot in versions.slots.items()
    }
    share = sum(granted.values()) / max(sum(map(len, writes.values())), 1)
    for slot_id, of_slot in writes.items():
        if granted[slot_id] == 0 and len(of_slot) * min(share, 1.0) >= LOCKED_WRITES:
            report.add("written without a lock", f"slot {slot_id}", versions=of_slot)


def check_fences(grants: Iterable[Json], report: Report) -> Counter[str]:
    """Check that each grant of a lock has a greater fencing token than all earlier ones.

    Returns how often each lock was granted, by its key.
    """
    latest, counts, grants = dict[str, Json](), Counter[str](), list(grants)
    # Grants that were recorded before they had numbers show no gap.
    for before, after in pairwise([0, *(each["number"] for each in grants if "number" in each)]):
        if after != before + 1:
            report.add("grant not recorded", f"{after} after {before}")
    for grant in sorted(grants, key=lambda each: float(each["at"])):
        report.counts["fencing tokens"] += 1
        earlier = latest.get(grant["key"])
        if earlier is not None and grant["fence"] <= earlier["fence"]:
            report.add("fence fell", grant["key"], versions=[earlier, grant])
        latest[grant["key"]] = grant
        counts[grant["key"]] += 1
    return counts


def check_background_locks(grants_by_lock: Mapping[str, int], report: Report) -> None:
    """Report a lock of background work that nobody took, although others were taken many times."""
    names = (HOLD_SWEEPER_LOCK, *map(admission_lock, range(PARTITIONS)))
    granted = {name: grants_by_lock.get(lock_keys(name).lock, 0) for name in names}
    for name, count in granted.items():
        if count == 0 and max(granted.values()) >= LOCKED_WRITES:
            report.add("worked without a lock", name)


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
    # A slot that has started promotes nobody, so that users may wait there who booked meanwhile.
    booked = [each.user_id for each in version.bookings.values()]
    waiting = [user for _, user in version.waitlist]
    is_open = version.changed_at < version.starts_at
    lists = [[*booked, *waiting]] if is_open else [booked, waiting]
    for each in (*lists, [id_ for id_, _ in version.waitlist]):
        if twice := [value for value, count in Counter(each).items() if count > 1]:
            report.add("user twice in a slot", f"{name}: {twice}", versions=evidence)
    since = [entry.get("since", "") for entry in version.document["waitlist"]]
    if since != sorted(since):
        report.add("waiting list out of order", f"{name}: since {since}", versions=evidence)


def _check_waitlist(slot_id: str, before: SlotVersion, after: SlotVersion, report: Report) -> None:
    """Check that entries are served in order and remain, and that no booking passes them."""
    evidence = [before.document, after.document]
    waiting = [entry for entry in before.waitlist if entry in after.waitlist]
    if list(after.waitlist[: len(waiting)]) != waiting:
        report.add("waiting list out of order", f"slot {slot_id}", versions=evidence)
    order = {id_: index for index, (id_, _) in enumerate(before.waitlist)}
    passed = min((order[id_] for id_, _ in waiting), default=len(order))
    # After its start a slot promotes nobody, and an organizer may still give a place to somebody.
    is_ordered = after.changed_at < after.starts_at and not _has_group_limits(after)
    for id_ in after.bookings.keys() - before.bookings.keys():
        creation = after.bookings[id_].creation
        is_overtaking = creation in BY_USERS and waiting
        is_early = order.get(id_, -1) > passed
        if (is_early or is_overtaking) and is_ordered:
            description = f"slot {slot_id}: {creation} {id_}, while {waiting[0][0]} waits"
            report.add("overtaking in the waiting list", description, versions=evidence)


def _has_group_limits(version: SlotVersion) -> bool:
    """Return whether an entry may wait for the limit of its group while others pass it."""
    return bool((version.document.get("campaign") or {}).get("groupLimits"))


def check_settled(
    versions: SlotVersions,
    operations: Sequence[Operation],
    disturbances: Disturbances,
    report: Report,
) -> None:
    """Report what nobody cleaned up: free places for which users wait, and holds that are over.

    The processes have ended when the final documents are read; they ran until the last response.
    """
    ran_until = max((each.finished_at or 0.0 for each in operations), default=0.0)
    for slot_id, of_slot in versions.slots.items():
        last = of_slot[-1]
        if last.status != "published" or slot_id not in versions.final_at:
            continue
        is_bookable = ran_until < last.starts_at and not _has_group_limits(last)
        if is_bookable and last.remaining > 0 and last.waitlist:
            report.add("free and waiting", f"slot {slot_id}", versions=[last.document])
        for id_, booking in last.bookings.items():
            until = booking.held_until
            if until is not None and disturbances.calm_s(until, ran_until) > SWEPT_S:
                report.add("hold not expired", f"{id_} of slot {slot_id}", versions=[last.document])


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
