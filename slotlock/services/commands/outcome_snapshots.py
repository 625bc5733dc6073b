"""Outcomes as they are stored: with the slots as one caller may see them, or without slots."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from slotlock.domain.admission.tickets import CurrentSlotPlaceholder
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.refusals import SlotNotFound
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.users.user import UserId


def redact_for(outcome: Any, user_ids: Sequence[UserId]) -> Any:
    """Return the outcome without the bookings and waitlist entries of other users."""
    if isinstance(outcome, Slot):
        return replace(
            outcome,
            bookings=tuple(
                b for b in outcome.bookings if b.user_id in user_ids or outcome.capacity == 1
            ),
            waitlist=tuple(w for w in outcome.waitlist if w.user_id in user_ids),
            loaded_waitlist=0,
            user_contexts={},
            group_counts={},
            change=EMPTY_CHANGE,
        )
    if isinstance(outcome, tuple):
        return tuple(redact_for(each, user_ids) for each in outcome)
    if not hasattr(outcome, "__dataclass_fields__"):
        return outcome
    values = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
    return replace(
        outcome,
        **{n: redact_for(v, user_ids) for n, v in values.items() if isinstance(v, Slot | tuple)},
    )


def strip_slots(outcome: Any) -> Any:
    """Return a refusal without its slots; readers see them as they are when they read it."""
    slots = _fields_of_type(outcome, Slot)
    return replace(
        outcome, **{name: CurrentSlotPlaceholder(slot.id) for name, slot in slots.items()}
    )


def stripped_slot_ids(outcome: Any) -> set[SlotId]:
    """Return the ids of the slots that a stored refusal was stripped of."""
    return {mark.slot_id for mark in _fields_of_type(outcome, CurrentSlotPlaceholder).values()}


def restore_slots(outcome: Any, slots: Mapping[SlotId, Slot]) -> Any:
    """Return the refusal with its slots as they are now; SlotNotFound if one is missing."""
    marks = _fields_of_type(outcome, CurrentSlotPlaceholder)
    if gone := [mark.slot_id for mark in marks.values() if mark.slot_id not in slots]:
        return SlotNotFound(gone[0])
    return replace(outcome, **{name: slots[mark.slot_id] for name, mark in marks.items()})


def _fields_of_type(outcome: Any, kind: type) -> dict[str, Any]:
    values = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
    return {name: value for name, value in values.items() if isinstance(value, kind)}
