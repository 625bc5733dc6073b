"""Measures of the result of a draw, by which organizers compare methods on the same wishes."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.draws.drawing import DrawnEntry, WishResult
from slotlock.domain.shared.value_object import value_object

# Wishes that their entry could not have had, whatever others got, are no reason for envy.
_RULED_OUT = (
    WishResult.BLOCKED,
    WishResult.GROUP_FULL,
    WishResult.UNAVAILABLE,
)


@value_object
class DrawMeasures:
    """How good a result is for its users; each user of a team counts.

    `average_rank` is the mean rank of the granted wishes, from 1; None if nothing was granted.
    `envious` counts the users with less than another entry has without its best place, judged by
    their own wishes: for some `k`, that one has at least two places more among their first `k`.
    """

    users: int
    without_place: int
    places: int
    average_rank: float | None
    envious: int


def measure(drawn: Sequence[DrawnEntry]) -> DrawMeasures:
    """Return the measures of a result."""
    holders = _holders(drawn)
    users = without_place = places = ranks = envious = 0
    for each in drawn:
        size = len(each.entry.members)
        granted = [
            rank
            for rank, outcome in enumerate(each.outcomes, start=1)
            if outcome.result is WishResult.GRANTED
        ]
        users += size
        without_place += 0 if granted else size
        places += size * len(granted)
        ranks += size * sum(granted)
        envious += size if _envies_up_to_one_place(each, holders) else 0
    return DrawMeasures(users, without_place, places, ranks / places if places else None, envious)


def _holders(drawn: Sequence[DrawnEntry]) -> dict[SlotId, list[int]]:
    """Return the numbers of the entries with a place in each slot, if they have another one."""
    holders: dict[SlotId, list[int]] = defaultdict(list)
    for each in drawn:
        granted = each.granted
        for slot_id in granted if len(granted) > 1 else ():
            holders[slot_id].append(each.number)
    return holders


def _envies_up_to_one_place(each: DrawnEntry, holders: dict[SlotId, list[int]]) -> bool:
    own, others = 0, Counter[int]()
    for outcome in each.outcomes:
        if outcome.result in _RULED_OUT:
            continue
        own += outcome.result is WishResult.GRANTED
        numbers = holders.get(outcome.slot_id, ())
        others.update(numbers)
        if max(map(others.__getitem__, numbers), default=0) > own + 1:
            return True
    return False
