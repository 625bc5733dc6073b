"""How organisers keep slots: what a slot must look like, and what may still change about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slotlock.domain.booking import MAX_HOLD_MINUTES
from slotlock.domain.bookings import Left, SlotId
from slotlock.domain.outcomes import KeepOutcome, SlotKept
from slotlock.domain.people import UserId
from slotlock.domain.refusals import CapacityBelowTaken, FieldProblem, InvalidInput, SlotCancelled
from slotlock.domain.slots import CalledOff, Slot, SlotKind, SlotStatus
from slotlock.domain.texts import line_problem

MAX_CAPACITY = 1000
MAX_TITLE = 200
MAX_LOCATION = 200
MAX_CHOICE = 100
MAX_CUTOFF_MINUTES = 60 * 24 * 60
MAX_WAITLIST = 1000
MAX_OFFER_MINUTES = 7 * 24 * 60


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
    hold_minutes: int = 5
    cutoff_minutes: int = 0
    waitlist_capacity: int = 100
    offer_minutes: int | None = None
    choice: str | None = None


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
        hold_minutes=draft.hold_minutes,
        cutoff_minutes=draft.cutoff_minutes,
        waitlist_capacity=draft.waitlist_capacity,
        offer_minutes=draft.offer_minutes,
        choice=_place(draft.choice),
    )
    problems = _problems(slot)
    return InvalidInput(problems) if problems else SlotKept(slot)


def edit(slot: Slot, changes: Mapping[str, Any]) -> tuple[Slot, KeepOutcome]:
    """The slot with the named fields replaced (names as in `SlotDraft`), if it may be so."""
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    after = replace(slot, **changes)
    after = replace(after, title=after.title.strip(), location=_place(after.location))
    if problems := _problems(after):
        return slot, InvalidInput(problems)
    if after.capacity < slot.taken:
        return slot, CapacityBelowTaken(slot, after.capacity)
    return after, SlotKept(after)


def publish(slot: Slot) -> tuple[Slot, KeepOutcome]:
    """The slot open to everyone. Publishing twice changes nothing."""
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    after = replace(slot, status=SlotStatus.PUBLISHED)
    return after, SlotKept(after)


def call_off(slot: Slot, by: UserId, now: datetime) -> tuple[Slot, KeepOutcome]:
    """The slot cancelled for everyone, and with it its bookings and its line.

    The bookings stay on its roster, so that all can be told; that it was called off, when and by
    whom ends the record of each. Whoever waits, waits no longer.
    """
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotKept(slot)
    after = replace(
        slot,
        status=SlotStatus.CANCELLED,
        called_off=CalledOff(now, by),
        waiting=(),
        heads=0,
        waiting_count=0,
        left=(*slot.left, *(Left(waiting, now, by) for waiting in slot.waiting)),
    )
    return after, SlotKept(after)


def _place(location: str | None) -> str | None:
    return (location or "").strip() or None


def _problems(slot: Slot) -> tuple[FieldProblem, ...]:
    found = {
        "title": line_problem(slot.title, MAX_TITLE)
        or (None if slot.title else "A slot needs a title."),
        "location": line_problem(slot.location or "", MAX_LOCATION),
        "endTime": None if slot.end > slot.start else "The end must be after the start.",
        "choice": line_problem(slot.choice or "", MAX_CHOICE),
        "capacity": _outside(slot.capacity, 1, MAX_CAPACITY),
        "holdMinutes": _outside(slot.hold_minutes, 1, MAX_HOLD_MINUTES),
        "cancelCutoffMinutes": _outside(slot.cutoff_minutes, 0, MAX_CUTOFF_MINUTES),
        "waitlistCapacity": _outside(slot.waitlist_capacity, 0, MAX_WAITLIST),
        "waitlistOfferMinutes": None
        if slot.offer_minutes is None
        else _outside(slot.offer_minutes, 1, MAX_OFFER_MINUTES),
    }
    return tuple(FieldProblem(field, message) for field, message in found.items() if message)


def _outside(number: int, least: int, most: int) -> str | None:
    return None if least <= number <= most else f"A number from {least} to {most}."
