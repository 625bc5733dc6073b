"""Series: slots that a recurrence rule makes, each a slot of its own afterwards."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import occurrences
from slotlock.domain.schedule.zones import shift_all
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.slots.editing import SlotDraft, create
from slotlock.domain.slots.resources import ResourceTaken, ResourceUsage


class OnConflict(StrEnum):
    """What becomes of a series some of whose dates are taken."""

    STRICT = "strict"
    SKIP_CONFLICTS = "skip_conflicts"


class SeriesScope(StrEnum):
    """Which slots of a series a change is for."""

    THIS = "this"
    THIS_AND_FOLLOWING = "this_and_following"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SeriesCreated:
    """The slots of a new series, and the dates left out because their resource is taken."""

    series_id: SeriesId
    slots: tuple[Slot, ...]
    conflicts: tuple[ResourceTaken, ...]


@dataclass(frozen=True, slots=True)
class SeriesConflicts:
    """Dates at which the resource is taken: nothing was created."""

    conflicts: tuple[ResourceTaken, ...]


def occurrences_of_draft(
    draft: SlotDraft,
    rrule: str,
    holidays: Collection[date],
    slot_ids: Sequence[SlotId],
    now: datetime,
) -> tuple[Slot, ...] | InvalidInput:
    """The slots that a rule makes of a first one, or what is wrong; there are ids enough."""
    if draft.start is None or draft.end is None or draft.timetable is not None:
        problem = FieldProblem("startTime", "The first slot of a series has a start and an end.")
        return InvalidInput((problem,))
    first = create(slot_ids[0], draft, now)
    if isinstance(first, InvalidInput):
        return first
    times = occurrences(Meeting(draft.start, draft.end), rrule, draft.time_zone, holidays)
    if isinstance(times, InvalidInput):
        return times
    return tuple(
        replace(first.slot, id=id_, start=meeting.start, end=meeting.end)
        for id_, meeting in zip(slot_ids, times, strict=False)
    )


def split_conflicts(
    slots: Sequence[Slot], others: Sequence[Slot]
) -> tuple[tuple[Slot, ...], tuple[ResourceTaken, ...]]:
    """The slots whose resource is free, each also of those before it; and why the rest is not."""
    free: list[Slot] = []
    conflicts: list[ResourceTaken] = []
    occupied = ResourceUsage.from_slots(others)
    for slot in slots:
        # They come in order and last alike, so that of the series itself the one before is enough.
        taken = occupied.conflict_with(slot) or ResourceUsage.from_slots(free[-1:]).conflict_with(
            slot
        )
        if taken is None:
            free.append(slot)
        else:
            conflicts.append(taken)
    return tuple(free), tuple(conflicts)


def slots_in_scope(
    slots: Sequence[Slot], selected: Slot, scope: SeriesScope, now: datetime
) -> tuple[Slot, ...]:
    """The slots of a series that a change is for.

    Those that were called off stay so, and those that are over stay as they were.
    """
    live = (s for s in slots if s.status is not SlotStatus.CANCELLED and s.end > now)
    return tuple(slot for slot in live if scope is SeriesScope.ALL or slot.start >= selected.start)


def changes_per_slot(
    slots: Sequence[Slot], selected: Slot, changes: Mapping[str, Any]
) -> dict[SlotId, Mapping[str, Any]] | InvalidInput:
    """The changes for each slot: where times change, all move as this one does."""
    if "timetable" in changes:
        problem = "A timetable is for one slot of a series, not for several."
        return InvalidInput((FieldProblem("timetable", problem),))
    if not changes.keys() & {"start", "end"}:
        return {slot.id: changes for slot in slots}
    if course := next((slot for slot in slots if slot.meetings), None):
        problem = f"A slot of the series has a timetable, so times change one by one: {course.id}."
        return InvalidInput((FieldProblem("startTime", problem),))
    old = Meeting(selected.start, selected.end)
    new = Meeting(changes.get("start", selected.start), changes.get("end", selected.end))
    zone = changes.get("time_zone", selected.time_zone)
    moved = shift_all([Meeting(slot.start, slot.end) for slot in slots], old, new, zone)
    if isinstance(moved, InvalidInput):
        return moved
    return {
        slot.id: {**changes, "start": meeting.start, "end": meeting.end}
        for slot, meeting in zip(slots, moved, strict=True)
    }
