"""How organisers keep slots: what a slot must look like, and what may still change about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slotlock.domain.outcomes import (
    CapacityBelowTaken,
    FieldProblem,
    InvalidInput,
    KeepOutcome,
    SlotCancelled,
    SlotKept,
)
from slotlock.domain.slots import Slot, SlotId, SlotKind, SlotStatus
from slotlock.domain.texts import line_problem

MAX_CAPACITY = 1000
MAX_TITLE = 200
MAX_LOCATION = 200


@dataclass(frozen=True, slots=True)
class SlotDraft:
    """What an organiser fills in to create a slot."""

    title: str
    start: datetime
    end: datetime
    time_zone: str
    capacity: int
    location: str | None
    kind: SlotKind
    published: bool


def create(slot_id: SlotId, draft: SlotDraft, now: datetime) -> SlotKept | InvalidInput:
    """The new slot, or what is wrong with it."""
    slot = Slot(
        id=slot_id,
        title=draft.title.strip(),
        start=draft.start,
        end=draft.end,
        time_zone=draft.time_zone,
        capacity=draft.capacity,
        taken=0,
        location=_place(draft.location),
        kind=draft.kind,
        status=SlotStatus.PUBLISHED if draft.published else SlotStatus.DRAFT,
        version=1,
        changed_at=now,
    )
    problems = _problems(slot)
    return InvalidInput(problems) if problems else SlotKept(slot)


def edit(slot: Slot, changes: Mapping[str, Any], now: datetime) -> KeepOutcome:
    """The slot with the named fields replaced (names as in `SlotDraft`), if it may be so."""
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    after = replace(slot, **changes)
    after = replace(after, title=after.title.strip(), location=_place(after.location))
    if problems := _problems(after):
        return InvalidInput(problems)
    if after.capacity < slot.taken:
        return CapacityBelowTaken(slot, after.capacity)
    return SlotKept(slot if after == slot else _next(after, now))


def publish(slot: Slot, now: datetime) -> KeepOutcome:
    """The slot open to everyone. Publishing twice changes nothing."""
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    if slot.status is SlotStatus.PUBLISHED:
        return SlotKept(slot)
    return SlotKept(_next(replace(slot, status=SlotStatus.PUBLISHED), now))


def call_off(slot: Slot, now: datetime) -> KeepOutcome:
    """The slot cancelled for everyone. Its bookings stay on its roster, so all can be told."""
    if slot.status is SlotStatus.CANCELLED:
        return SlotKept(slot)
    return SlotKept(_next(replace(slot, status=SlotStatus.CANCELLED), now))


def _next(slot: Slot, now: datetime) -> Slot:
    return replace(slot, version=slot.version + 1, changed_at=now)


def _place(location: str | None) -> str | None:
    return (location or "").strip() or None


def _problems(slot: Slot) -> tuple[FieldProblem, ...]:
    found = {
        "title": line_problem(slot.title, MAX_TITLE)
        or (None if slot.title else "A slot needs a title."),
        "location": line_problem(slot.location or "", MAX_LOCATION),
        "endTime": None if slot.end > slot.start else "The end must be after the start.",
        "capacity": None
        if 1 <= slot.capacity <= MAX_CAPACITY
        else f"A slot has 1 to {MAX_CAPACITY} places.",
    }
    return tuple(FieldProblem(field, message) for field, message in found.items() if message)
