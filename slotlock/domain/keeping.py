"""How organisers keep slots: what a slot must look like, and what may still change about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slotlock.domain.booking import MAX_HOLD_MINUTES
from slotlock.domain.bookings import Left, SlotId
from slotlock.domain.campaigns import limits_problem, tidied_limits
from slotlock.domain.groups import tidied
from slotlock.domain.meetings import Meeting
from slotlock.domain.outcomes import KeepOutcome, SlotKept
from slotlock.domain.people import UserId
from slotlock.domain.refusals import CapacityBelowTaken, FieldProblem, InvalidInput, SlotCancelled
from slotlock.domain.slots import CalledOff, SeriesId, Slot, SlotKind, SlotStatus
from slotlock.domain.terms import GroupLimit, Terms
from slotlock.domain.texts import line_problem
from slotlock.domain.timetables import Timetable, meetings_of

MAX_CAPACITY = 1000
MAX_TITLE = 200
MAX_LOCATION = 200
MAX_CHOICE = 100
MAX_RESOURCE = 100
MAX_CUTOFF_MINUTES = 60 * 24 * 60
MAX_WAITLIST = 1000
MAX_OFFER_MINUTES = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class SlotDraft:
    """What an organiser fills in to create a slot: its start and end, or its timetable."""

    title: str
    start: datetime | None
    end: datetime | None
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
    group_limits: tuple[GroupLimit, ...] = ()
    timetable: Timetable | None = None
    resource: str | None = None
    terms: Terms | None = None
    series_id: SeriesId | None = None


def create(slot_id: SlotId, draft: SlotDraft, now: datetime) -> SlotKept | InvalidInput:
    """The new slot, or what is wrong with it."""
    times = _times(draft)
    if isinstance(times, InvalidInput):
        return times
    slot = Slot(
        id=slot_id,
        title=draft.title.strip(),
        start=times[0].start,
        end=times[-1].end,
        time_zone=draft.time_zone,
        capacity=draft.capacity,
        taken=0,
        location=_place(draft.location),
        kind=draft.kind,
        status=SlotStatus.PUBLISHED if draft.published else SlotStatus.DRAFT,
        version=1,
        changed_at=now,
        revised_at=now,
        hold_minutes=draft.hold_minutes,
        cutoff_minutes=draft.cutoff_minutes,
        waitlist_capacity=draft.waitlist_capacity,
        offer_minutes=draft.offer_minutes,
        choice=_name(draft.choice),
        group_limits=tidied_limits(draft.group_limits),
        meetings=() if draft.timetable is None else times,
        resource=_name(draft.resource),
        terms=draft.terms,
        series_id=draft.series_id,
    )
    problems = _problems(slot)
    return InvalidInput(problems) if problems else SlotKept(slot)


def _times(draft: SlotDraft) -> tuple[Meeting, ...] | InvalidInput:
    given = draft.start is not None and draft.end is not None
    if draft.timetable is not None and draft.start is None and draft.end is None:
        return meetings_of(draft.timetable, draft.time_zone)
    if draft.timetable is None and draft.start is not None and draft.end is not None:
        return (Meeting(draft.start, draft.end),)
    field = "timetable" if given else "startTime"
    return InvalidInput((FieldProblem(field, "Either a start and an end, or a timetable."),))


def edit(slot: Slot, changes: Mapping[str, Any]) -> tuple[Slot, KeepOutcome]:
    """The slot with the named fields replaced (names as in `SlotDraft`), if it may be so."""
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    planned = _planned(slot, changes)
    if isinstance(planned, InvalidInput):
        return slot, planned
    after = replace(slot, **planned)
    after = replace(
        after,
        title=after.title.strip(),
        location=_place(after.location),
        resource=_name(after.resource),
        group_limits=tidied_limits(after.group_limits),
    )
    if problems := _problems(after):
        return slot, InvalidInput(problems)
    if after.capacity < slot.taken:
        return slot, CapacityBelowTaken(slot, after.capacity)
    if after.asks_for_groups and not slot.asks_for_groups and (slot.taken or slot.waiting_count):
        problem = "Nobody kept the groups of those who have a place here or wait for one."
        return slot, InvalidInput((FieldProblem("groupLimits", problem),))
    if after.counts_groups and not slot.counts_groups:
        # Nobody counted how many of each there are: the line is served by whoever looks next.
        after = replace(after, known={})
    after = replace(after, revision=slot.revision + (_shown(after) != _shown(slot)))
    return after, SlotKept(after)


def _planned(slot: Slot, changes: Mapping[str, Any]) -> Mapping[str, Any] | InvalidInput:
    """The changes with the meetings that a new timetable comes to."""
    moved = changes.keys() & {"start", "end"}
    if "timetable" not in changes:
        if not (moved and slot.meetings):
            return changes
        problem = FieldProblem("startTime", "The times of a course are those of its timetable.")
        return InvalidInput((problem,))
    timetable = changes["timetable"]
    others = {name: value for name, value in changes.items() if name != "timetable"}
    if timetable is None:  # it meets once again
        return {**others, "meetings": ()}
    if moved:
        problem = FieldProblem("timetable", "Either a start and an end, or a timetable.")
        return InvalidInput((problem,))
    meetings = meetings_of(timetable, changes.get("time_zone", slot.time_zone))
    if isinstance(meetings, InvalidInput):
        return meetings
    times = {"start": meetings[0].start, "end": meetings[-1].end}
    return {**others, "meetings": meetings, **times}


def _shown(slot: Slot) -> tuple[object, ...]:
    """What a calendar shows of a slot."""
    return slot.title, slot.location, slot.time_zone, slot.times


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
        revision=slot.revision + 1,
        waiting=(),
        heads=0,
        waiting_count=0,
        left=(*slot.left, *(Left(waiting, now, by) for waiting in slot.waiting)),
    )
    return after, SlotKept(after)


def _place(location: str | None) -> str | None:
    return (location or "").strip() or None


def _name(text: str | None) -> str | None:
    """What slots have in common by its name: spelled alike, it is the same."""
    return tidied(text or "") or None


def _problems(slot: Slot) -> tuple[FieldProblem, ...]:
    found = {
        "title": line_problem(slot.title, MAX_TITLE)
        or (None if slot.title else "A slot needs a title."),
        "location": line_problem(slot.location or "", MAX_LOCATION),
        "endTime": None if slot.end > slot.start else "The end must be after the start.",
        "choice": line_problem(slot.choice or "", MAX_CHOICE),
        "capacity": _outside(slot.capacity, 1, MAX_CAPACITY),
        "resource": line_problem(slot.resource or "", MAX_RESOURCE),
        "groupLimits": limits_problem(slot.group_limits, MAX_CAPACITY),
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
