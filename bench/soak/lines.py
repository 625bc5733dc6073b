"""Whether places went to those in line in their turn, and nobody ever had two at once."""

from collections import defaultdict
from collections.abc import Iterable, Set
from datetime import timedelta
from itertools import pairwise

from bench.soak.ledger import Json, Ledger
from bench.soak.records import Record

# An act has the time at which it looked: one that had to look twice is written later than it says.
SKEW = timedelta(seconds=1)


def check_turns(
    ledger: Ledger,
    slots: list[Json],
    records: list[Record],
    left: list[Json],
    untimely: Set[tuple[str, str]] = frozenset(),
) -> None:
    """Nobody who joined later was served while somebody who joined earlier still waited.

    `untimely`: turns that were seen in line in another order than their times say, the one in
    front first. The line is what counts.
    """
    served: defaultdict[str, list[Record]] = defaultdict(list)
    stayed: defaultdict[str, list[Json]] = defaultdict(list)
    for record in records:
        if record.waited is not None:
            served[record.slot].append(record)
    for turn in left:
        stayed[str(turn["slot"])].append(turn)
    for slot in slots:
        if "campaign" in slot:  # who waits for their class is passed over
            continue
        name = str(slot["_id"])
        in_turn = sorted(served[name], key=lambda r: (r.waited, r.at))
        ledger.checks["turns served"] += len(in_turn)
        for earlier, later in pairwise(in_turn):
            if later.at < earlier.at - SKEW and (later.id, earlier.id) not in untimely:
                what = f"slot {name}: {later.id} since {later.waited} at {later.at}, before"
                ledger.violation("order", f"{what} {earlier.id} since {earlier.waited}")
        _check_passed_over(ledger, name, in_turn, slot["waiting"], stayed[name])


def _check_passed_over(
    ledger: Ledger, slot: str, in_turn: list[Record], waiting: list[Json], left: list[Json]
) -> None:
    for record in in_turn:
        since = record.waited
        if since is None:
            continue
        for turn in waiting:
            if turn["at"] < since - SKEW:
                what = f"slot {slot}: {record.id} since {since} was served, {turn} still waits"
                ledger.violation("order", what)
        for turn in left:
            if turn["since"] < since - SKEW and turn["at"] > record.at + SKEW:
                what = f"slot {slot}: {record.id} since {since} at {record.at}, before {turn}"
                ledger.violation("order", what)


def check_twice(ledger: Ledger, slots: list[Json], records: list[Record]) -> None:
    """Nobody had two places in a slot, or in a choice, for longer than an act takes."""
    choice_of = {
        str(slot["_id"]): slot["choice"]
        for slot in slots
        if slot.get("choice") and slot["status"] != "cancelled"
    }
    by_slot: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    by_choice: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        by_slot[record.slot, record.user].append(record)
        if record.slot in choice_of and "one_of_choice" not in record.log[0].get("over", ()):
            by_choice[choice_of[record.slot], record.user].append(record)
    for where, those in ((by_slot, "slot"), (by_choice, "choice")):
        for (name, user), made in where.items():
            for one, other in _overlapping(made):
                what = f"{user} in {those} {name}: {one.id} and {other.id} from {other.at}"
                ledger.violation(f"twice in a {those}", what)


def _overlapping(records: Iterable[Record]) -> Iterable[tuple[Record, Record]]:
    last: Record | None = None
    for record in sorted(records, key=lambda r: r.at):
        if last is not None and (last.live or last.log[-1]["at"] > record.at + SKEW):
            yield last, record
        last = record
