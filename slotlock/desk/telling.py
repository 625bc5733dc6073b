"""An answer as its reader was told it, to be kept and told again."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from slotlock.domain.bookings import SlotId
from slotlock.domain.people import UserId
from slotlock.domain.refusals import SlotNotFound
from slotlock.domain.slots import Slot
from slotlock.domain.tickets import SlotAsItIs


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


def without_slots(outcome: Any) -> Any:
    """A refusal that tells of its slot as it is when it is read: thousands are kept at once."""
    slots = _fields_of(outcome, Slot)
    return replace(outcome, **{name: SlotAsItIs(slot.id) for name, slot in slots.items()})


def slots_missing(outcome: Any) -> set[SlotId]:
    """The slots that a kept answer wants to be told with."""
    return {mark.slot_id for mark in _fields_of(outcome, SlotAsItIs).values()}


def with_slots(outcome: Any, slots: Mapping[SlotId, Slot]) -> Any:
    """The answer with its slots as they are now."""
    marks = _fields_of(outcome, SlotAsItIs)
    if gone := [mark.slot_id for mark in marks.values() if mark.slot_id not in slots]:
        return SlotNotFound(gone[0])
    return replace(outcome, **{name: slots[mark.slot_id] for name, mark in marks.items()})


def _fields_of(outcome: Any, kind: type) -> dict[str, Any]:
    values = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
    return {name: value for name, value in values.items() if isinstance(value, kind)}
