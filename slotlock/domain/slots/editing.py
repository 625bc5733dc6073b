"""Rules for creating, editing and deleting slots."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import CapacityBelowTaken, SlotCancelled
from slotlock.domain.booking.decision import Decision, accept, refuse
from slotlock.domain.booking.slot import (
    MAX_CAPACITY,
    SLOT_FACTS,
    Slot,
    SlotCancellation,
    SlotStatus,
)
from slotlock.domain.booking.slot_change import SlotChange
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import normalize_group_limits, validate_group_limits
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Timetable, to_meetings
from slotlock.domain.schedule.zones import find_zone
from slotlock.domain.shared.facts import Line
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import format_in_zone, validate_line, validate_text
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.slots.slot_outcomes import (
    EditSlotOutcome,
    SlotHasBookings,
    SlotNotPublished,
    SlotSaved,
    SlotsDeleted,
)
from slotlock.domain.slots.slot_patch import (
    SlotDraft,
    SlotPatch,
    normalize_name,
    normalize_names,
)
from slotlock.domain.users.user import UserId

MAX_DESCRIPTION_LENGTH = 10_000
MAX_RESOURCE_LENGTH = 100
MAX_RESOURCES_PER_SLOT = 10
_CANCEL_REASON = Line(200)
EITHER_TIMES_OR_TIMETABLE = ProblemCode.TIMES_OR_TIMETABLE.problem()
# Problems are reported in this order, and those of other facts after them.
_PROBLEM_ORDER = (
    *("title", "description", "location", "endTime", "choiceGroup", "capacity", "resource"),
    *("resourceIds", "groupLimits"),
)


def create(slot_id: SlotId, draft: SlotDraft, now: datetime) -> SlotState | InvalidInput:
    """Return a new slot in its first version, if the draft is valid."""
    times = _draft_meetings(draft)
    if isinstance(times, InvalidInput):
        return times
    facts = {each.name: each.normalize(getattr(draft.settings, each.name)) for each in SLOT_FACTS}
    slot = Slot(
        id=slot_id,
        start=times[0].start,
        end=times[-1].end,
        status=SlotStatus.PUBLISHED if draft.published else SlotStatus.DRAFT,
        revised_at=now,
        group_limits=normalize_group_limits(draft.group_limits),
        meetings=() if draft.timetable is None else times,
        resource=normalize_name(draft.resource),
        terms=draft.terms,
        series_id=draft.series_id,
        several_resources=normalize_names(draft.several_resources),
        **facts,
    )
    problems = _slot_problems(slot, draft.description)
    if not draft.allow_past:
        problems += past_problems([slot], now)
    if problems:
        return InvalidInput(problems)
    return SlotState(
        slot, version=1, changed_at=now, change=SlotChange(description=draft.description)
    )


def _draft_meetings(draft: SlotDraft) -> tuple[Meeting, ...] | InvalidInput:
    given = draft.start is not None and draft.end is not None
    if draft.timetable is not None and draft.start is None and draft.end is None:
        return to_meetings(draft.timetable, draft.settings.time_zone)
    if draft.timetable is None and draft.start is not None and draft.end is not None:
        return (Meeting(draft.start, draft.end),)
    field = "timetable" if given else "startTime"
    return InvalidInput((FieldProblem(field, EITHER_TIMES_OR_TIMETABLE),))


def edit(state: SlotState, changes: SlotPatch, now: datetime) -> Decision[EditSlotOutcome]:
    """Change fields of a slot, if the result is valid."""
    slot = state.slot
    if slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(slot.id))
    after = _with_new_times(changes.apply_to(slot), changes)
    if isinstance(after, InvalidInput):
        return refuse(after)
    problems = _slot_problems(after, changes.description)
    if after.all_meetings != slot.all_meetings and not changes.allow_past:
        problems += past_problems([after], now)
    if problems:
        return refuse(InvalidInput(problems))
    if after.capacity < state.booked_count:
        return refuse(CapacityBelowTaken(slot.id, state.booked_count))
    if (
        after.needs_user_groups
        and not slot.needs_user_groups
        and (state.booked_count or state.waitlist_length)
    ):
        field = "groupLimits" if after.group_limits else "onlyForGroups"
        problem = ProblemCode.GROUPS_NOT_RECORDED.problem()
        return refuse(InvalidInput((FieldProblem(field, problem),)))
    is_revised = _calendar_fields(after) != _calendar_fields(slot)
    is_revised = is_revised or changes.description is not UNCHANGED
    after = replace(after, revision=slot.revision + is_revised)
    if after.limits_groups and not slot.limits_groups:
        # The bookings per group were not counted yet: the next operation promotes the waitlist.
        state = replace(state, group_counts=None)
    return _saved(state, after, changes.description)


def _saved(
    state: SlotState, edited: Slot, description: str | Unchanged | None = UNCHANGED
) -> Decision[EditSlotOutcome]:
    """Accept an edit; one that changes nothing writes nothing."""
    if edited == state.slot and description is UNCHANGED:
        return accept(SlotSaved(state.id))
    change = state.change.with_edit(description)
    return accept(SlotSaved(state.id), replace(state, slot=edited, change=change))


def _with_new_times(slot: Slot, changes: SlotPatch) -> Slot | InvalidInput:
    """Return the changed slot with the meetings and times of a new timetable, if there is one."""
    if isinstance(changes.timetable, Timetable):
        if changes.has_new_times:
            problem = FieldProblem("timetable", EITHER_TIMES_OR_TIMETABLE)
            return InvalidInput((problem,))
        meetings = to_meetings(changes.timetable, slot.time_zone)
        if isinstance(meetings, InvalidInput):
            return meetings
        return replace(slot, start=meetings[0].start, end=meetings[-1].end, meetings=meetings)
    if changes.timetable is None:  # back to one meeting
        return replace(slot, meetings=())
    if changes.has_new_times and slot.meetings:
        problem = FieldProblem("startTime", ProblemCode.TIMES_OF_TIMETABLE.problem())
        return InvalidInput((problem,))
    return slot


def _calendar_fields(slot: Slot) -> tuple[object, ...]:
    """Return the fields that calendars show; the description is no part of the slot."""
    times = (slot.time_zone, slot.all_meetings)
    return slot.numbered_title, slot.location, slot.resources, slot.meeting_url, *times


def publish(state: SlotState) -> Decision[EditSlotOutcome]:
    """Make a draft visible to everyone. Publishing a published slot changes nothing."""
    if state.slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(state.id))
    return _saved(state, replace(state.slot, status=SlotStatus.PUBLISHED))


def cancel_slot(
    state: SlotState, by: UserId, now: datetime, reason: str | None = None
) -> Decision[EditSlotOutcome]:
    """Cancel a published slot, and with it its bookings and its waiting list.

    The reason is a line that everyone who sees the slot can read.

    The bookings stay on the roster, so that their users can be notified. The cancellation ends the
    history of each booking. The waiting list is emptied.
    """
    slot = state.slot
    reason = normalize_name(reason)
    if problem := _CANCEL_REASON.problem(reason or ""):
        return refuse(InvalidInput((FieldProblem("reason", problem),)))
    if slot.status is SlotStatus.CANCELLED:
        return accept(SlotSaved(slot.id))
    if slot.status is SlotStatus.DRAFT:
        return refuse(SlotNotPublished(slot.id))
    cancelled = replace(
        slot,
        status=SlotStatus.CANCELLED,
        cancellation=SlotCancellation(now, by, reason),
        revision=slot.revision + 1,
    )
    return _saved(state.without_waitlist(now, by), cancelled)


def _slot_problems(slot: Slot, description: str | Unchanged | None) -> tuple[FieldProblem, ...]:
    found: dict[str, Problem | None] = dict.fromkeys(_PROBLEM_ORDER) | {
        "description": validate_text(description, MAX_DESCRIPTION_LENGTH)
        if isinstance(description, str)
        else None,
        "endTime": None if slot.end > slot.start else ProblemCode.END_BEFORE_START.problem(),
        "resource": validate_line(slot.resource or "", MAX_RESOURCE_LENGTH),
        "resourceIds": ProblemCode.TOO_MANY_RESOURCES.problem(maximum=MAX_RESOURCES_PER_SLOT)
        if len(slot.several_resources) > MAX_RESOURCES_PER_SLOT
        else None,
        "groupLimits": validate_group_limits(slot.group_limits, MAX_CAPACITY),
    }
    found |= {each.api_name: each.problem(getattr(slot, each.name)) for each in SLOT_FACTS}
    return FieldProblem.all_of(found)


def past_problems(
    slots: Iterable[Slot], now: datetime, field: str | None = None
) -> tuple[FieldProblem, ...]:
    """Return the problem of the first of new slots that is over, for this field of the input.

    Every date counts, so a series must not begin with one that is over. Wrong times are another
    problem.
    """
    past = next((slot for slot in slots if slot.start < slot.end <= now), None)
    if past is None:
        return ()
    start = format_in_zone(past.start, find_zone(past.time_zone) or UTC)
    field = field or ("timetable" if past.meetings else "endTime")
    return (FieldProblem(field, ProblemCode.IN_PAST.problem(time=start)),)


def delete_slots(
    slots: Sequence[SlotState], slots_with_history: Collection[SlotId]
) -> SlotsDeleted | SlotHasBookings:
    """Delete all of these slots, or none.

    `slots_with_history` are those in which a booking or a waitlist entry has ended.
    """
    for state in slots:
        if has_history(state, slots_with_history):
            return SlotHasBookings(state.id)
    return SlotsDeleted(tuple(state.id for state in slots))


def has_history(state: SlotState, slots_with_history: Collection[SlotId]) -> bool:
    """Return whether somebody has booked a slot or waited for it, now or earlier."""
    return bool(state.booked_count or state.waitlist_length or state.id in slots_with_history)
