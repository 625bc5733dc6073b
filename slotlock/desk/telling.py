"""An answer as its reader was told it, to be kept and told again."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot


def as_told(outcome: Any, people: Sequence[UserId]) -> Any:
    """The outcome with its slots as these people saw them, without whoever else was at hand."""
    if isinstance(outcome, Slot):
        return replace(
            outcome,
            bookings=tuple(
                b for b in outcome.bookings if b.user_id in people or outcome.capacity == 1
            ),
            waiting=tuple(w for w in outcome.waiting if w.user_id in people),
            heads=0,
            known={},
            group_counts={},
            ended=(),
            left=(),
        )
    if isinstance(outcome, tuple):
        return tuple(as_told(each, people) for each in outcome)
    if not hasattr(outcome, "__dataclass_fields__"):
        return outcome
    values = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
    return replace(
        outcome,
        **{n: as_told(v, people) for n, v in values.items() if isinstance(v, Slot | tuple)},
    )
