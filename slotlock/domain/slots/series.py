"""Series: slots created by one recurrence rule. Afterwards each is a slot of its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import occurrences
from slotlock.domain.schedule.zones import find_zone, shift_all, to_wall_clock
from slotlock.domain.shared.declare import refusal, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import format_in_zone
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.editing import create, edit, past_problems
from slotlock.domain.slots.resource_conflicts import ResourceTaken, ResourceUsage, uses_resource
from slotlock.domain.slots.slot_outcomes import EditSlotOutcome
from slotlock.domain.slots.slot_patch import SlotDraft, SlotPatch


class OnConflict(DescribedEnum):
    """How to handle dates of a series on which a resource is taken."""

    STRICT = "strict", "Create nothing."
    SKIP_CONFLICTS = "skip_conflicts", "Create the slots of the other dates."


class SeriesScope(DescribedEnum):
    """Which slots of a series a change applies to.

    Other slots of the series that are over or cancelled do not change.
    """

    THIS = "this", "Only the slot that the request names."
    THIS_AND_FOLLOWING = (
        "this_and_following",
        "The slot that the request names and those that start later.",
    )
    ALL = "all", "Every slot of the series."


@value_object
class SeriesCreated:
    """The slots of a new series, and the dates that were skipped: conflicts and holidays."""

    series_id: SeriesId
    slots: tuple[SlotState, ...]
    conflicts: tuple[ResourceTaken, ...]
    skipped_holidays: tuple[date, ...] = ()


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
    """A new series without its slots: each of up to 500 may have a copy of long terms.

    Dates are texts, because MongoDB has no dates without a time.
    """

    series_id: SeriesId
    skipped: tuple[SkippedDate, ...]
    skipped_holidays: tuple[str, ...] = ()

    @classmethod
    def from_created(cls, created: SeriesCreated) -> "SeriesSummary":
        """Return the summary of a new series."""
        holidays = tuple(each.isoformat() for each in created.skipped_holidays)
        return cls(created.series_id, skipped_dates(created.conflicts), holidays)

    def with_slots(
        self, slots: Sequence[SlotState], others: Mapping[SlotId, SlotState]
    ) -> SeriesCreated:
        """Return the series with its slots and those that use the resource."""
        holidays = tuple(map(date.fromisoformat, self.skipped_holidays))
        conflicts = conflicts_of(self.skipped, others)
        return SeriesCreated(self.series_id, tuple(slots), conflicts, holidays)


@refusal(message="The resource is taken on some dates of the series.")
class SeriesConflicts:
    """The resource is taken on some dates of the series. Nothing was created."""

    conflicts: tuple[ResourceTaken, ...] = shown("The dates on which it is taken, and why.")


NUMBER_OF_ONE_SLOT = InvalidInput(
    (FieldProblem("number", ProblemCode.NUMBER_OF_ONE_SLOT.problem()),)
)


def occurrences_of_draft(
    draft: SlotDraft,
    rrule: str,
    holidays: Collection[date],
    slot_ids: Sequence[SlotId],
    now: datetime,
) -> tuple[SlotState, ...] | InvalidInput:
    """Return the slots that a rule creates from the first one; `slot_ids` has enough ids."""
    if draft.start is None or draft.end is None or draft.timetable is not None:
        problem = FieldProblem("startTime", ProblemCode.SERIES_NEEDS_TIMES.problem())
        return InvalidInput((problem,))
    if draft.settings.number:
        return NUMBER_OF_ONE_SLOT
    # The rule may leave out the start of the draft: what counts is the dates of the series.
    first = create(slot_ids[0], replace(draft, allow_past=True), now)
    if isinstance(first, InvalidInput):
        return first
    times = occurrences(Meeting(draft.start, draft.end), rrule, draft.settings.time_zone, holidays)
    if isinstance(times, InvalidInput):
        return times
    slots = tuple(
        replace(first, slot=replace(first.slot, id=id_, start=meeting.start, end=meeting.end))
        for id_, meeting in zip(slot_ids, times, strict=False)
    )
    problems = () if draft.allow_past else past_problems([each.slot for each in slots], now)
    return InvalidInput(problems) if problems else slots


def skipped_holidays(draft: SlotDraft, rrule: str, holidays: Collection[date]) -> tuple[date, ...]:
    """Return the dates of a valid rule on which no slot starts because they are holidays."""
    if not holidays or draft.start is None or draft.end is None:
        return ()
    times = occurrences(Meeting(draft.start, draft.end), rrule, draft.settings.time_zone)
    zone = find_zone(draft.settings.time_zone)
    if isinstance(times, InvalidInput) or zone is None:
        return ()
    dates = {to_wall_clock(meeting.start, zone).date() for meeting in times}
    return tuple(sorted(dates.intersection(holidays)))


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


# Decides the edit of one slot at a time.
SlotEdit = Callable[[SlotState, datetime], Decision[EditSlotOutcome]]


def plan_edit(requested: SlotPatch | SlotEdit, slots: Sequence[Slot]) -> SlotEdit | InvalidInput:
    """Plan the edit of each slot. Where times change, all slots move as the first one does."""
    if not isinstance(requested, SlotPatch):
        return requested
    by_slot = changes_per_slot(slots, requested) if len(slots) > 1 else {slots[0].id: requested}
    if isinstance(by_slot, InvalidInput):
        return by_slot
    return lambda state, now: edit(state, by_slot[state.id], now)


def changes_per_slot(
    slots: Sequence[Slot], changes: SlotPatch
) -> dict[SlotId, SlotPatch] | InvalidInput:
    """Return the changes of each slot: where times change, all slots move as the first one does."""
    selected = slots[0]
    if changes.settings.number:
        return NUMBER_OF_ONE_SLOT
    if changes.timetable is not UNCHANGED:
        problem = ProblemCode.TIMETABLE_OF_SEVERAL.problem()
        return InvalidInput((FieldProblem("timetable", problem),))
    if not changes.has_new_times:
        return {slot.id: changes for slot in slots}
    if course := next((slot for slot in slots if slot.meetings), None):
        start = format_in_zone(course.start, find_zone(course.time_zone) or UTC)
        problem = ProblemCode.SLOT_HAS_TIMETABLE.problem(time=start)
        return InvalidInput((FieldProblem("startTime", problem),))
    after = changes.apply_to(selected)
    has_new_clock = changes.start is not UNCHANGED and "time_zone" in changes.given
    moved = shift_all(
        [Meeting(slot.start, slot.end) for slot in slots],
        [slot.time_zone for slot in slots],
        Meeting(after.start, after.end),
        after.time_zone if has_new_clock else None,
    )
    if isinstance(moved, InvalidInput):
        return moved
    return {
        slot.id: replace(changes, start=meeting.start, end=meeting.end)
        for slot, meeting in zip(slots, moved, strict=True)
    }
