"""Whether some order of acts, one after the other, explains what was answered and what is so."""

import copy
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import permutations

from tests.support.acts import Act, Answer
from tests.support.foretelling import Model

REFUSED_FOR_NOW = {"Locked", "TeamBusy"}

# An act, the times at which it may have been decided, and its answer.
Done = tuple[Act, tuple[datetime, ...], Answer]


def futures(model: Model, done: Sequence[Done]) -> Iterator[Model]:
    """What may have become of the books, for every order that explains all answers."""
    done = [each for each in done if each[2][0] not in REFUSED_FOR_NOW]
    if not done:
        yield model
    for place, (act, times, told) in enumerate(done):
        for now in times:
            after = copy.deepcopy(model)
            if after.apply(act, now) == told:
                yield from futures(after, [*done[:place], *done[place + 1 :]])


def swept(model: Model, now: datetime) -> Iterator[Model]:
    """What may be so after a sweep, which goes from slot to slot in any order."""
    due = [slot_id for slot_id, slot in model.slots.items() if slot.due(now)]
    # The order matters to those who wait in several slots of one choice only.
    free_to_differ = any(model.slots[slot_id].choice for slot_id in due)
    for order in permutations(due) if free_to_differ else [due]:
        after = copy.deepcopy(model)
        after.settle(order, now)
        yield after
