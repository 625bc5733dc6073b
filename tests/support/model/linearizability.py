"""Whether a sequential order of concurrent operations explains their outcomes and the state."""

import copy
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import permutations

from tests.support.model.booking_model import BookingModel
from tests.support.model.operations import NormalizedOutcome, PlannedOperation

RETRYABLE_REFUSALS = {"Locked", "TeamBusy"}

# An operation, the times at which it may have been decided, and its outcome.
CompletedOperation = tuple[PlannedOperation, tuple[datetime, ...], NormalizedOutcome]


def linearizations(
    model: BookingModel, completed: Sequence[CompletedOperation]
) -> Iterator[BookingModel]:
    """Yield the state of the model after every order that explains all outcomes."""
    completed = [each for each in completed if each[2][0] not in RETRYABLE_REFUSALS]
    if not completed:
        yield model
    for index, (operation, times, outcome) in enumerate(completed):
        for now in times:
            after = copy.deepcopy(model)
            if after.apply(operation, now) == outcome:
                yield from linearizations(after, [*completed[:index], *completed[index + 1 :]])


def states_after_sweep(model: BookingModel, now: datetime) -> Iterator[BookingModel]:
    """Yield the possible states after a sweep, which visits the slots in any order."""
    due = [slot_id for slot_id, slot in model.slots.items() if slot.needs_sweep_at(now)]
    # The order only matters for users who wait in several slots of one choice group.
    depends_on_order = any(model.slots[slot_id].choice_group for slot_id in due)
    for order in permutations(due) if depends_on_order else [due]:
        after = copy.deepcopy(model)
        after.expire_and_promote(order, now)
        after.end_waitlists(order, now)
        yield after
