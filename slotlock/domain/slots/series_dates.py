"""Rules for adding dates to a series of slots, and for removing dates from it."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import chain
from zoneinfo import ZoneInfo

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.recurrence import MAX_SPAN
from slotlock.domain.schedule.recurrence_rules import MAX_OCCURRENCES
from slotlock.domain.schedule.zones import find_zone, to_wall_clock, validate_year
from slotlock.domain.shared.declare import refusal, shown_slots
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.editing import has_history, past_problems
from slotlock.domain.slots.resource_conflicts import ResourceTaken
from slotlock.domain.slots.series import SkippedDate, conflicts_of, skipped_dates


@value_object
class PlannedDates:
    """The slots to add, by start, each copied from the slot of `template_ids` at its index.

    `existing` are the slots that the series has on other dates of the request.
    """

    slots: tuple[Slot, ...]
    template_ids: tuple[SlotId, ...]
    existing: tuple[SlotState, ...]
    skipped_holidays: tuple[date, ...] = ()


@value_object
class DatesAdded:
    """The new slots, those that existed, and the dates that were skipped."""

    series_id: SeriesId
    slots: tuple[SlotState, ...]
    existing: tuple[SlotState, ...]
    conflicts: tuple[ResourceTaken, ...]
    skipped_holidays: tuple[date, ...] = ()


@value_object
class SeriesDatesSummary:
    """Dates that were added, without their slots, which may have long terms."""

    series_id: SeriesId
    added: tuple[SlotId, ...]
    existing: tuple[SlotId, ...]
    skipped: tuple[SkippedDate, ...]
    skipped_holidays: tuple[str, ...] = ()

    @classmethod
    def from_added(cls, outcome: DatesAdded) -> "SeriesDatesSummary":
        """Return the summary of added dates."""
        return cls(
            outcome.series_id,
            tuple(state.id for state in outcome.slots),
            tuple(state.id for state in outcome.existing),
            skipped_dates(outcome.conflicts),
            tuple(each.isoformat() for each in outcome.skipped_holidays),
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
            tuple(map(date.fromisoformat, self.skipped_holidays)),
        )


@refusal(message="Some of these slots have or had bookings. Nothing was removed.")
class SlotsHaveBookings:
    """Users have booked some of the slots or have waited for them, now or earlier.

    Nothing was removed.
    """

    slot_ids: tuple[SlotId, ...] = shown_slots("The slots that have or had bookings, by start.")


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
    holidays: Collection[date] = (),
) -> PlannedDates | InvalidInput:
    """Copy the nearest slot of a series to each date on which the series has no slot.

    `series` has at least one slot and is sorted by start; `slot_ids` has enough ids. A cancelled
    slot does not occupy its date. It is copied only if all are cancelled, and then as a draft. What
    would start on one of the `holidays` in its own zone is skipped.
    """
    current = [state for state in series if state.slot.status is not SlotStatus.CANCELLED]
    wanted = set(starts)
    existing = tuple(state for state in current if state.slot.start in wanted)
    added = sorted(wanted - {state.slot.start for state in existing})
    templates = [state.slot for state in current or series if not state.slot.meetings]
    if problem := _problem_of_starts(wanted, added, series, templates):
        return InvalidInput((FieldProblem("startTimes", problem),))
    planned = [
        _copy(_nearest(templates, start), slot_id, start, now)
        for slot_id, start in zip(slot_ids, added, strict=False)
    ]
    slots = tuple(slot for slot in planned if _local_date(slot) not in holidays)
    skipped = {_local_date(slot) for slot in planned}.intersection(holidays)
    if not allow_past and (problems := past_problems(slots, now, "startTimes")):
        return InvalidInput(problems)
    template_ids = tuple(_nearest(templates, slot.start).id for slot in slots)
    return PlannedDates(slots, template_ids, existing, tuple(sorted(skipped)))


def _local_date(slot: Slot) -> date:
    return to_wall_clock(slot.start, find_zone(slot.time_zone) or ZoneInfo("UTC")).date()


def _problem_of_starts(
    wanted: Collection[datetime],
    added: Sequence[datetime],
    series: Sequence[SlotState],
    templates: Sequence[Slot],
) -> Problem | None:
    if not 1 <= len(wanted) <= MAX_OCCURRENCES:
        return ProblemCode.START_COUNT.problem(maximum=MAX_OCCURRENCES)
    if not added:
        return None
    if not templates:
        return ProblemCode.ALL_HAVE_TIMETABLES.problem()
    if problem := next(filter(None, map(validate_year, added)), None):
        return problem
    if len(series) + len(added) > MAX_OCCURRENCES:
        return ProblemCode.SERIES_TOO_LONG.problem(maximum=MAX_OCCURRENCES, found=len(series))
    first = min(added[0], series[0].slot.start)
    last = max(added[-1], series[-1].slot.start)
    if last - first > MAX_SPAN:
        return ProblemCode.SERIES_TOO_WIDE.problem()
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
        number=None,
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
