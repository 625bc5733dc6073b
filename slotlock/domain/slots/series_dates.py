"""Rules for adding dates to a series of slots, and for removing dates from it."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import format_in_zone
from slotlock.domain.schedule.recurrence import MAX_SPAN
from slotlock.domain.schedule.recurrence_rules import MAX_OCCURRENCES
from slotlock.domain.schedule.zones import validate_year
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.deletion import has_history
from slotlock.domain.slots.editing import past_problems
from slotlock.domain.slots.resources import ResourceTaken
from slotlock.domain.slots.series import SkippedDate, conflicts_of, skipped_dates


@value_object
class PlannedDates:
    """The slots to add, by start, each copied from the slot of `template_ids` at its index.

    `existing` are the slots that the series has on the other dates of the request.
    """

    slots: tuple[Slot, ...]
    template_ids: tuple[SlotId, ...]
    existing: tuple[SlotState, ...]


@value_object
class DatesAdded:
    """The new slots, those that existed, and the dates that were skipped because of conflicts."""

    series_id: SeriesId
    slots: tuple[SlotState, ...]
    existing: tuple[SlotState, ...]
    conflicts: tuple[ResourceTaken, ...]


@value_object
class SeriesDatesSummary:
    """Dates that were added, without their slots, which may have long terms."""

    series_id: SeriesId
    added: tuple[SlotId, ...]
    existing: tuple[SlotId, ...]
    skipped: tuple[SkippedDate, ...]

    @classmethod
    def from_added(cls, outcome: DatesAdded) -> "SeriesDatesSummary":
        """Return the summary of added dates."""
        return cls(
            outcome.series_id,
            tuple(state.id for state in outcome.slots),
            tuple(state.id for state in outcome.existing),
            skipped_dates(outcome.conflicts),
        )

    def with_slots(
        self, slots: Sequence[SlotState], others: Mapping[SlotId, SlotState]
    ) -> DatesAdded:
        """Return the dates with the slots of the series and those that use the resource."""
        return DatesAdded(
            self.series_id,
            tuple(state for state in slots if state.id in self.added),
            tuple(state for state in slots if state.id in self.existing),
            conflicts_of(self.skipped, others),
        )


@value_object
class SlotsHaveBookings:
    """Users have booked these slots or have waited for them, now or earlier."""

    slot_ids: tuple[SlotId, ...]


@value_object
class DatesRemoved:
    """Each slot was deleted, or is cancelled because it has or had bookings."""

    series_id: SeriesId
    deleted_ids: tuple[SlotId, ...]
    cancelled_ids: tuple[SlotId, ...]


@value_object
class PlannedRemoval:
    """The slots to delete, those to cancel, and those that were cancelled earlier."""

    deleted: tuple[SlotState, ...]
    cancelled: tuple[SlotState, ...]
    cancelled_earlier: tuple[SlotState, ...]


def plan_added_dates(
    series: Sequence[SlotState],
    starts: Collection[datetime],
    slot_ids: Sequence[SlotId],
    now: datetime,
    *,
    allow_past: bool,
) -> PlannedDates | InvalidInput:
    """Copy the nearest slot of a series to each date on which the series has no slot.

    `series` has at least one slot and is sorted by start; `slot_ids` has enough ids. A cancelled
    slot does not occupy its date. It is copied only if all are cancelled, and then as a draft.
    """
    current = [state for state in series if state.slot.status is not SlotStatus.CANCELLED]
    wanted = set(starts)
    existing = tuple(state for state in current if state.slot.start in wanted)
    added = sorted(wanted - {state.slot.start for state in existing})
    templates = [state.slot for state in current or series if not state.slot.meetings]
    if problem := _problem_of_starts(wanted, added, series, templates):
        return InvalidInput((FieldProblem("startTimes", problem),))
    copied = [_nearest(templates, start) for start in added]
    slots = tuple(
        _copy(template, slot_id, start, now)
        for template, slot_id, start in zip(copied, slot_ids, added, strict=False)
    )
    past = next((slot for slot in slots if past_problems(slot, now)), None)
    if past and not allow_past:
        start = format_in_zone(past.start, UTC)
        problem = f"{start} lies in the past."
        return InvalidInput((FieldProblem("startTimes", problem),))
    return PlannedDates(slots, tuple(template.id for template in copied), existing)


def _problem_of_starts(
    wanted: Collection[datetime],
    added: Sequence[datetime],
    series: Sequence[SlotState],
    templates: Sequence[Slot],
) -> str | None:
    if not 1 <= len(wanted) <= MAX_OCCURRENCES:
        return f"Please enter 1 to {MAX_OCCURRENCES} times."
    if not added:
        return None
    if not templates:
        return "Each slot of the series has a timetable, so none can be copied."
    if problem := next(filter(None, map(validate_year, added)), None):
        return problem
    if len(series) + len(added) > MAX_OCCURRENCES:
        return f"A series can have at most {MAX_OCCURRENCES} slots; it has {len(series)}."
    first = min(added[0], series[0].slot.start)
    last = max(added[-1], series[-1].slot.start)
    if last - first > MAX_SPAN:
        return "All dates of a series must be within five years."
    return None


def _nearest(templates: Sequence[Slot], start: datetime) -> Slot:
    """Return the slot that starts nearest to this time, of two the earlier one."""
    index = bisect_left(templates, start, key=lambda slot: slot.start)
    around = templates[max(index - 1, 0) : index + 1]
    return min(around, key=lambda slot: abs(slot.start - start))


def _copy(template: Slot, slot_id: SlotId, start: datetime, now: datetime) -> Slot:
    is_cancelled = template.status is SlotStatus.CANCELLED
    return replace(
        template,
        id=slot_id,
        start=start,
        end=start + (template.end - template.start),
        status=SlotStatus.DRAFT if is_cancelled else template.status,
        cancellation=None,
        revision=0,
        revised_at=now,
    )


def plan_removal(
    slots: Sequence[SlotState], slots_with_history: Collection[SlotId], *, cancel_booked: bool
) -> PlannedRemoval | SlotsHaveBookings:
    """Delete the slots that nobody has booked or waited for, and cancel the others if permitted.

    A slot with bookings that was cancelled earlier stays as it is.
    """
    deleted, booked, cancelled_earlier = list[SlotState](), list[SlotState](), list[SlotState]()
    for state in slots:
        if not has_history(state, slots_with_history):
            deleted.append(state)
        elif state.slot.status is SlotStatus.CANCELLED:
            cancelled_earlier.append(state)
        else:
            booked.append(state)
    if booked and not cancel_booked:
        return SlotsHaveBookings(tuple(state.id for state in booked))
    return PlannedRemoval(tuple(deleted), tuple(booked), tuple(cancelled_earlier))


def to_removed(series_id: SeriesId, plan: PlannedRemoval) -> DatesRemoved:
    """Return the outcome of a removal that was written."""
    cancelled = chain(plan.cancelled, plan.cancelled_earlier)
    return DatesRemoved(
        series_id,
        tuple(state.id for state in plan.deleted),
        tuple(state.id for state in cancelled),
    )
