"""Whether a sequential order of concurrent operations explains their outcomes and the state."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import permutations

from tests.support.model.operations import NormalizedOutcome, PlannedOperation
from tests.support.model.oracle import Oracle

RETRYABLE_REFUSALS = {"Locked", "TeamBusy"}

# An operation, the times at which it may have been decided, and its outcome.
CompletedOperation = tuple[PlannedOperation, tuple[datetime, ...], NormalizedOutcome]


def linearizations(model: Oracle, completed: Sequence[CompletedOperation]) -> Iterator[Oracle]:
    """Yield the state of the model after every order that explains all outcomes."""
    completed = [each for each in completed if each[2][0] not in RETRYABLE_REFUSALS]
    if not completed:
        yield model
    for index, (operation, times, outcome) in enumerate(completed):
        for now in times:
            after = model.copy()
            if after.apply(operation, now) == outcome:
                yield from linearizations(after, [*completed[:index], *completed[index + 1 :]])


def states_after_sweep(model: Oracle, now: datetime) -> Iterator[Oracle]:
    """Yield the possible states after a sweep, which visits the slots in any order."""
    # The order only matters for users who wait in several slots of one choice group.
    slots = model.slots.items()
    waiting = [id_ for id_, state in slots if state.waitlist and state.slot.choice_group]
    for order in permutations(waiting):
        after = model.copy()
        after.decide(dict.fromkeys((*order, *model.slots)), now, ends_waitlists=True)
        yield after
