"""Checks that waitlists are first come, first served, and that nobody has two places at once."""

from collections import defaultdict
from collections.abc import Iterable, Set
from datetime import timedelta
from itertools import pairwise

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.run_log import Json, RunLog

# The server reads the clock before it reads the slot, so a retried write carries an older time.
CLOCK_SKEW = timedelta(seconds=1)


def check_waitlist_order(
    run_log: RunLog,
    slots: list[Json],
    records: list[BookingRecord],
    ended_entries: list[Json],
    misordered_pairs: Set[tuple[str, str]] = frozenset(),
) -> None:
    """Check that no later entry was promoted while an earlier one waited.

    `misordered_pairs` are entries whose times contradict their order in the waitlist.
    The order in the waitlist counts.
    """
    promoted: defaultdict[str, list[BookingRecord]] = defaultdict(list)
    left: defaultdict[str, list[Json]] = defaultdict(list)
    for record in records:
        if record.waiting_since is not None:
            promoted[record.slot_id].append(record)
    for entry in ended_entries:
        left[str(entry["slot"])].append(entry)
    for slot in slots:
        if "campaign" in slot:  # a full class limit lets later entries overtake
            continue
        slot_id = str(slot["_id"])
        by_arrival = sorted(promoted[slot_id], key=lambda r: (r.waiting_since, r.created_at))
        run_log.checks["promotions"] += len(by_arrival)
        for earlier, later in pairwise(by_arrival):
            if (
                later.created_at < earlier.created_at - CLOCK_SKEW
                and (later.id, earlier.id) not in misordered_pairs
            ):
                run_log.record_violation(
                    "order",
                    f"slot {slot_id}: {later.id} since {later.waiting_since} "
                    f"at {later.created_at}, before {earlier.id} since {earlier.waiting_since}",
                )
        _check_overtaken(run_log, slot_id, by_arrival, slot["waitlist"], left[slot_id])


def _check_overtaken(
    run_log: RunLog,
    slot_id: str,
    promoted: list[BookingRecord],
    waitlist: list[Json],
    ended_entries: list[Json],
) -> None:
    for record in promoted:
        since = record.waiting_since
        if since is None:
            continue
        what = f"slot {slot_id}: {record.id} since {since}"
        for entry in waitlist:
            if entry["since"] < since - CLOCK_SKEW:
                run_log.record_violation("order", f"{what} was promoted, {entry} still waits")
        for entry in ended_entries:
            if entry["since"] < since - CLOCK_SKEW and entry["at"] > record.created_at + CLOCK_SKEW:
                run_log.record_violation("order", f"{what} at {record.created_at}, before {entry}")


def check_duplicates(run_log: RunLog, slots: list[Json], records: list[BookingRecord]) -> None:
    """Check that no user had two bookings in one slot or choice group at the same time."""
    choice_groups = {
        str(slot["_id"]): slot["choiceGroup"]
        for slot in slots
        if slot.get("choiceGroup") and slot["status"] != "cancelled"
    }
    by_slot: defaultdict[tuple[str, str], list[BookingRecord]] = defaultdict(list)
    by_choice_group: defaultdict[tuple[str, str], list[BookingRecord]] = defaultdict(list)
    for record in records:
        by_slot[record.slot_id, record.user_id].append(record)
        limits = record.history[0].get("overriddenLimits", ())
        if record.slot_id in choice_groups and "one_of_choice" not in limits:
            by_choice_group[choice_groups[record.slot_id], record.user_id].append(record)
    for groups, kind in ((by_slot, "slot"), (by_choice_group, "choice group")):
        for (name, user_id), bookings in groups.items():
            for one, other in _overlapping(bookings):
                run_log.record_violation(
                    f"twice in a {kind}",
                    f"{user_id} in {kind} {name}: {one.id} and {other.id} from {other.created_at}",
                )


def _overlapping(records: Iterable[BookingRecord]) -> Iterable[tuple[BookingRecord, BookingRecord]]:
    last: BookingRecord | None = None
    for record in sorted(records, key=lambda r: r.created_at):
        if last is not None and (
            last.is_live or last.history[-1]["at"] > record.created_at + CLOCK_SKEW
        ):
            yield last, record
        last = record
