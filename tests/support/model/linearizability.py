"""Whether some order of acts, one after the other, explains what was answered and what is so."""

import copy
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import permutations

from tests.support.model.booking_model import BookingModel
from tests.support.model.operations import NormalizedOutcome, PlannedOperation

RETRYABLE_REFUSALS = {"Locked", "TeamBusy"}

# An act, the times at which it may have been decided, and its answer.
CompletedOperation = tuple[PlannedOperation, tuple[datetime, ...], NormalizedOutcome]


def linearizations(
    model: BookingModel, completed: Sequence[CompletedOperation]
) -> Iterator[BookingModel]:
    """What may have become of the books, for every order that explains all answers."""
    completed = [each for each in completed if each[2][0] not in RETRYABLE_REFUSALS]
    if not completed:
        yield model
    for place, (act, times, told) in enumerate(completed):
        for now in times:
            after = copy.deepcopy(model)
            if after.apply(act, now) == told:
                yield from linearizations(after, [*completed[:place], *completed[place + 1 :]])


def states_after_sweep(model: BookingModel, now: datetime) -> Iterator[BookingModel]:
    """What may be so after a sweep, which goes from slot to slot in any order."""
    due = [slot_id for slot_id, slot in model.slots.items() if slot.needs_sweep_at(now)]
    # The order matters to those who wait in several slots of one choice only.
    free_to_differ = any(model.slots[slot_id].choice_group for slot_id in due)
    for order in permutations(due) if free_to_differ else [due]:
        after = copy.deepcopy(model)
        after.expire_and_promote(order, now)
        yield after
