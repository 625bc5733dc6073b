"""Series: slots created by one recurrence rule. Afterwards each is a slot of its own."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import occurrences
from slotlock.domain.schedule.zones import shift_all
from slotlock.domain.shared.changes import UNCHANGED
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.editing import SlotDraft, create, past_problems
from slotlock.domain.slots.resources import ResourceTaken, ResourceUsage, uses_resource


class OnConflict(StrEnum):
    """How to handle dates of a series on which the resource is taken."""

    STRICT = "strict"
    SKIP_CONFLICTS = "skip_conflicts"


class SeriesScope(StrEnum):
    """Which slots of a series an edit applies to."""

    THIS = "this"
    THIS_AND_FOLLOWING = "this_and_following"
    ALL = "all"


@value_object
class SeriesCreated:
    """The slots of a new series, and the dates that were skipped because of conflicts."""

    series_id: SeriesId
    slots: tuple[SlotState, ...]
    conflicts: tuple[ResourceTaken, ...]


@value_object
class SkippedDate:
    """A date that was skipped; the fields are those of `ResourceTaken`, without the other slot."""

    resource: str
    meeting: Meeting
    other_id: SlotId
    other_meeting: Meeting


def skipped_dates(conflicts: Sequence[ResourceTaken]) -> tuple[SkippedDate, ...]:
    """Return the dates that conflicts are about, without the other slots."""
    return tuple(
        SkippedDate(each.resource, each.meeting, each.other.id, each.other_meeting)
        for each in conflicts
    )


def conflicts_of(
    skipped: Sequence[SkippedDate], others: Mapping[SlotId, SlotState]
) -> tuple[ResourceTaken, ...]:
    """Return the conflicts of skipped dates with those of the other slots that still exist."""
    return tuple(
        ResourceTaken(each.resource, each.meeting, others[each.other_id], each.other_meeting)
        for each in skipped
        if each.other_id in others
    )


@value_object
class SeriesSummary:
    """A new series without its slots: each of up to 500 may have a copy of long terms."""

    series_id: SeriesId
    skipped: tuple[SkippedDate, ...]

    @classmethod
    def from_created(cls, created: SeriesCreated) -> "SeriesSummary":
        """Return the summary of a new series."""
        return cls(created.series_id, skipped_dates(created.conflicts))

    def with_slots(
        self, slots: Sequence[SlotState], others: Mapping[SlotId, SlotState]
    ) -> SeriesCreated:
        """Return the series with its slots and those that use the resource."""
        return SeriesCreated(self.series_id, tuple(slots), conflicts_of(self.skipped, others))


@value_object
class SeriesConflicts:
    """The resource is taken on these dates, and nothing was created."""

    conflicts: tuple[ResourceTaken, ...]


def occurrences_of_draft(
    draft: SlotDraft,
    rrule: str,
    holidays: Collection[date],
    slot_ids: Sequence[SlotId],
    now: datetime,
) -> tuple[SlotState, ...] | InvalidInput:
    """Return the slots that a rule creates from the first one; `slot_ids` has enough ids."""
    if draft.start is None or draft.end is None or draft.timetable is not None:
        problem = FieldProblem("startTime", "The first slot of a series has a start and an end.")
        return InvalidInput((problem,))
    # A series may have begun already, but not have ended.
    first = create(slot_ids[0], replace(draft, allow_past=True), now)
    if isinstance(first, InvalidInput):
        return first
    times = occurrences(Meeting(draft.start, draft.end), rrule, draft.time_zone, holidays)
    if isinstance(times, InvalidInput):
        return times
    slots = tuple(
        replace(first, slot=replace(first.slot, id=id_, start=meeting.start, end=meeting.end))
        for id_, meeting in zip(slot_ids, times, strict=False)
    )
    problems = () if draft.allow_past else past_problems(slots[-1].slot, now)
    return InvalidInput(problems) if problems else slots


def split_conflicts(
    slots: Sequence[SlotState], others: Sequence[SlotState]
) -> tuple[tuple[SlotState, ...], tuple[ResourceTaken, ...]]:
    """Split slots, by start, into those whose resource is free and the conflicts of the others."""
    free: list[SlotState] = []
    conflicts: list[ResourceTaken] = []
    occupied = ResourceUsage.from_slots(others)
    running: list[SlotState] = []
    for state in slots:
        running = [each for each in running if each.slot.end > state.slot.start]
        within = ResourceUsage.from_slots(running)
        taken = occupied.conflict_with(state.slot) or within.conflict_with(state.slot)
        if taken is None:
            free.append(state)
            if uses_resource(state.slot):
                running.append(state)
        else:
            conflicts.append(taken)
    return tuple(free), tuple(conflicts)


def is_in_scope(slot: Slot, selected: Slot, scope: SeriesScope, now: datetime) -> bool:
    """Return whether the edit of a selected slot applies to this slot of the series.

    Cancelled slots and past slots stay as they are.
    """
    if slot.status is SlotStatus.CANCELLED or slot.end <= now:
        return False
    return scope is SeriesScope.ALL or slot.start >= selected.start


def changes_per_slot(
    slots: Sequence[Slot], selected: Slot, changes: SlotChanges
) -> dict[SlotId, SlotChanges] | InvalidInput:
    """Return the changes of each slot: where times change, all slots move like the selected one."""
    if changes.timetable is not UNCHANGED:
        problem = "A timetable is for one slot of a series, not for several."
        return InvalidInput((FieldProblem("timetable", problem),))
    if not changes.has_new_times:
        return {slot.id: changes for slot in slots}
    if course := next((slot for slot in slots if slot.meetings), None):
        problem = f"A slot of the series has a timetable, so times change one by one: {course.id}."
        return InvalidInput((FieldProblem("startTime", problem),))
    old = Meeting(selected.start, selected.end)
    after = changes.apply_to(selected)
    new = Meeting(after.start, after.end)
    moved = shift_all([Meeting(slot.start, slot.end) for slot in slots], old, new, after.time_zone)
    if isinstance(moved, InvalidInput):
        return moved
    return {
        slot.id: replace(changes, start=meeting.start, end=meeting.end)
        for slot, meeting in zip(slots, moved, strict=True)
    }
