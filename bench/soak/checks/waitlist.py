"""Whether places went to those in line in their turn, and nobody ever had two at once."""

from collections import defaultdict
from collections.abc import Iterable, Set
from datetime import timedelta
from itertools import pairwise

from bench.soak.checks.booking_records import BookingRecord
from bench.soak.run_log import Json, RunLog

# An act has the time at which it looked: one that had to look twice is written later than it says.
CLOCK_SKEW = timedelta(seconds=1)


def check_waitlist_order(
    run_log: RunLog,
    slots: list[Json],
    records: list[BookingRecord],
    ended_entries: list[Json],
    misordered_pairs: Set[tuple[str, str]] = frozenset(),
) -> None:
    """Nobody who joined later was served while somebody who joined earlier still waited.

    `untimely`: turns that were seen in line in another order than their times say, the one in
    front first. The line is what counts.
    """
    served: defaultdict[str, list[BookingRecord]] = defaultdict(list)
    stayed: defaultdict[str, list[Json]] = defaultdict(list)
    for record in records:
        if record.waiting_since is not None:
            served[record.slot_id].append(record)
    for turn in ended_entries:
        stayed[str(turn["slot"])].append(turn)
    for slot in slots:
        if "campaign" in slot:  # who waits for their class is passed over
            continue
        name = str(slot["_id"])
        in_turn = sorted(served[name], key=lambda r: (r.waiting_since, r.created_at))
        run_log.checks["turns served"] += len(in_turn)
        for earlier, later in pairwise(in_turn):
            if (
                later.created_at < earlier.created_at - CLOCK_SKEW
                and (later.id, earlier.id) not in misordered_pairs
            ):
                what = (
                    f"slot {name}: {later.id} since {later.waiting_since} "
                    f"at {later.created_at}, before"
                )
                run_log.record_violation(
                    "order", f"{what} {earlier.id} since {earlier.waiting_since}"
                )
        _check_passed_over(run_log, name, in_turn, slot["waitlist"], stayed[name])


def _check_passed_over(
    run_log: RunLog,
    slot: str,
    promoted: list[BookingRecord],
    waiting: list[Json],
    ended_entries: list[Json],
) -> None:
    for record in promoted:
        since = record.waiting_since
        if since is None:
            continue
        for turn in waiting:
            if turn["since"] < since - CLOCK_SKEW:
                what = f"slot {slot}: {record.id} since {since} was served, {turn} still waits"
                run_log.record_violation("order", what)
        for turn in ended_entries:
            if turn["since"] < since - CLOCK_SKEW and turn["at"] > record.created_at + CLOCK_SKEW:
                what = (
                    f"slot {slot}: {record.id} since {since} at {record.created_at}, before {turn}"
                )
                run_log.record_violation("order", what)


def check_duplicates(run_log: RunLog, slots: list[Json], records: list[BookingRecord]) -> None:
    """Nobody had two places in a slot, or in a choice, for longer than an act takes."""
    choice_of = {
        str(slot["_id"]): slot["choiceGroup"]
        for slot in slots
        if slot.get("choiceGroup") and slot["status"] != "cancelled"
    }
    by_slot: defaultdict[tuple[str, str], list[BookingRecord]] = defaultdict(list)
    by_choice: defaultdict[tuple[str, str], list[BookingRecord]] = defaultdict(list)
    for record in records:
        by_slot[record.slot_id, record.user_id].append(record)
        if record.slot_id in choice_of and "one_of_choice" not in record.history[0].get(
            "overriddenLimits", ()
        ):
            by_choice[choice_of[record.slot_id], record.user_id].append(record)
    for where, those in ((by_slot, "slot"), (by_choice, "choice")):
        for (name, user), made in where.items():
            for one, other in _overlapping(made):
                what = f"{user} in {those} {name}: {one.id} and {other.id} from {other.created_at}"
                run_log.record_violation(f"twice in a {those}", what)


def _overlapping(records: Iterable[BookingRecord]) -> Iterable[tuple[BookingRecord, BookingRecord]]:
    last: BookingRecord | None = None
    for record in sorted(records, key=lambda r: r.created_at):
        if last is not None and (
            last.is_live or last.history[-1]["at"] > record.created_at + CLOCK_SKEW
        ):
            yield last, record
        last = record
