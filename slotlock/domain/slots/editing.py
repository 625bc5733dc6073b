"""Rules for creating and editing slots."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision, accept, refuse
from slotlock.domain.booking.refusals import CapacityBelowTaken, SlotCancelled
from slotlock.domain.booking.rules.book import MAX_HOLD_MINUTES
from slotlock.domain.booking.slot import SeriesId, Slot, SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import normalize_group_limits, validate_group_limits
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Timetable, to_meetings
from slotlock.domain.shared.changes import UNCHANGED
from slotlock.domain.shared.text import normalize_line, validate_line, validate_text
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.outcomes import EditSlotOutcome, SlotNotPublished, SlotSaved
from slotlock.domain.users.user import UserId

MAX_CAPACITY = 1000
MAX_TITLE_LENGTH = 200
MAX_LOCATION_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 10_000
MAX_CHOICE_GROUP_LENGTH = 100
MAX_RESOURCE_LENGTH = 100
MAX_RESOURCES_PER_SLOT = 10
MAX_HOLD_COOLDOWN_MINUTES = 7 * 24 * 60
MAX_CANCEL_CUTOFF_MINUTES = 60 * 24 * 60
MAX_WAITLIST_CAPACITY = 1000
MAX_WAITLIST_OFFER_MINUTES = 7 * 24 * 60
EITHER_TIMES_OR_TIMETABLE = "Please enter either a start and an end, or a timetable."


@value_object
class SlotDraft:
    """The fields of a new slot, with either a start and an end or a timetable.

    Only with `allow_past` may it lie wholly in the past.
    """

    title: str
    start: datetime | None
    end: datetime | None
    time_zone: str
    capacity: int
    location: str | None
    kind: SlotKind
    published: bool
    hold_minutes: int = 5
    cancel_cutoff_minutes: int = 0
    waitlist_capacity: int = 100
    waitlist_offer_minutes: int | None = None
    choice_group: str | None = None
    group_limits: tuple[GroupLimit, ...] = ()
    timetable: Timetable | None = None
    resource: str | None = None
    several_resources: tuple[str, ...] = ()
    terms: CampaignTerms | None = None
    series_id: SeriesId | None = None
    admission: SlotAdmission = SlotAdmission.ANY
    description: str | None = None
    hold_cooldown_minutes: int = 0
    allow_past: bool = False


def create(slot_id: SlotId, draft: SlotDraft, now: datetime) -> SlotState | InvalidInput:
    """Return a new slot in its first version, if the draft is valid."""
    times = _draft_meetings(draft)
    if isinstance(times, InvalidInput):
        return times
    slot = Slot(
        id=slot_id,
        title=normalize_line(draft.title),
        start=times[0].start,
        end=times[-1].end,
        time_zone=draft.time_zone,
        capacity=draft.capacity,
        location=_clean_name(draft.location),
        kind=draft.kind,
        status=SlotStatus.PUBLISHED if draft.published else SlotStatus.DRAFT,
        revised_at=now,
        hold_minutes=draft.hold_minutes,
        cancel_cutoff_minutes=draft.cancel_cutoff_minutes,
        waitlist_capacity=draft.waitlist_capacity,
        waitlist_offer_minutes=draft.waitlist_offer_minutes,
        choice_group=_clean_name(draft.choice_group),
        group_limits=normalize_group_limits(draft.group_limits),
        meetings=() if draft.timetable is None else times,
        resource=_clean_name(draft.resource),
        terms=draft.terms,
        series_id=draft.series_id,
        admission=draft.admission,
        several_resources=_clean_names(draft.several_resources),
        description=draft.description,
        hold_cooldown_minutes=draft.hold_cooldown_minutes,
    )
    problems = _slot_problems(slot)
    if not draft.allow_past:
        problems += past_problems(slot, now)
    return InvalidInput(problems) if problems else SlotState(slot, version=1, changed_at=now)


def _draft_meetings(draft: SlotDraft) -> tuple[Meeting, ...] | InvalidInput:
    given = draft.start is not None and draft.end is not None
    if draft.timetable is not None and draft.start is None and draft.end is None:
        return to_meetings(draft.timetable, draft.time_zone)
    if draft.timetable is None and draft.start is not None and draft.end is not None:
        return (Meeting(draft.start, draft.end),)
    field = "timetable" if given else "startTime"
    return InvalidInput((FieldProblem(field, EITHER_TIMES_OR_TIMETABLE),))


def edit(state: SlotState, changes: SlotChanges, now: datetime) -> Decision[EditSlotOutcome]:
    """Change fields of a slot, if the result is valid."""
    slot = state.slot
    if slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(slot.id))
    after = _with_new_times(changes.apply_to(slot), changes)
    if isinstance(after, InvalidInput):
        return refuse(after)
    after = replace(
        after,
        title=normalize_line(after.title),
        location=_clean_name(after.location),
        resource=_clean_name(after.resource),
        several_resources=_clean_names(after.several_resources),
        group_limits=normalize_group_limits(after.group_limits),
    )
    problems = _slot_problems(after)
    if after.all_meetings != slot.all_meetings and not changes.allow_past:
        problems += past_problems(after, now)
    if problems:
        return refuse(InvalidInput(problems))
    if after.capacity < state.booked_count:
        return refuse(CapacityBelowTaken(slot.id, after.capacity))
    if (
        after.needs_user_groups
        and not slot.needs_user_groups
        and (state.booked_count or state.waitlist_length)
    ):
        problem = "Groups were not recorded for the existing bookings and waitlist entries."
        return refuse(InvalidInput((FieldProblem("groupLimits", problem),)))
    after = replace(
        after, revision=slot.revision + (_calendar_fields(after) != _calendar_fields(slot))
    )
    if after.limits_groups and not slot.limits_groups:
        # The bookings per group were not counted yet: the next operation promotes the waitlist.
        state = replace(state, group_counts=None)
    return _saved(state, after)


def _saved(state: SlotState, edited: Slot) -> Decision[EditSlotOutcome]:
    """Accept an edit; one that changes nothing writes nothing."""
    if edited == state.slot and edited.description is UNCHANGED:
        return accept(SlotSaved(state.id))
    return accept(SlotSaved(state.id), replace(state, slot=edited, change=state.change.with_edit()))


def _with_new_times(slot: Slot, changes: SlotChanges) -> Slot | InvalidInput:
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
        problem = FieldProblem("startTime", "The times of a course are those of its timetable.")
        return InvalidInput((problem,))
    return slot


def _calendar_fields(slot: Slot) -> tuple[object, ...]:
    """Return the fields that calendars show."""
    return slot.title, slot.location, slot.time_zone, slot.all_meetings, slot.several_resources


def publish(state: SlotState) -> Decision[EditSlotOutcome]:
    """Make a draft visible to everyone. Publishing a published slot changes nothing."""
    if state.slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(state.id))
    return _saved(state, replace(state.slot, status=SlotStatus.PUBLISHED))


def cancel_slot(state: SlotState, by: UserId, now: datetime) -> Decision[EditSlotOutcome]:
    """Cancel a published slot, and with it its bookings and its waiting list.

    The bookings stay on the roster, so that their users can be notified. The cancellation ends the
    history of each booking. The waiting list is emptied.
    """
    slot = state.slot
    if slot.status is SlotStatus.CANCELLED:
        return accept(SlotSaved(slot.id))
    if slot.status is SlotStatus.DRAFT:
        return refuse(SlotNotPublished(slot.id))
    cancelled = replace(
        slot,
        status=SlotStatus.CANCELLED,
        cancellation=SlotCancellation(now, by),
        revision=slot.revision + 1,
    )
    return _saved(state.without_waitlist(now, by), cancelled)


def _clean_name(text: str | None) -> str | None:
    """Return a location, or the name of a resource or choice group, in canonical spelling."""
    return normalize_line(text or "") or None


def _clean_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(normalize_line, names))


def _slot_problems(slot: Slot) -> tuple[FieldProblem, ...]:
    found = {
        "title": validate_line(slot.title, MAX_TITLE_LENGTH)
        or (None if slot.title else "A slot needs a title."),
        "description": validate_text(slot.description, MAX_DESCRIPTION_LENGTH)
        if isinstance(slot.description, str)
        else None,
        "location": validate_line(slot.location or "", MAX_LOCATION_LENGTH),
        "endTime": None if slot.end > slot.start else "The end must be after the start.",
        "choiceGroup": validate_line(slot.choice_group or "", MAX_CHOICE_GROUP_LENGTH),
        "capacity": _validate_number(slot.capacity, 1, MAX_CAPACITY),
        "resource": validate_line(slot.resource or "", MAX_RESOURCE_LENGTH),
        "resourceIds": f"A slot has at most {MAX_RESOURCES_PER_SLOT} resources."
        if len(slot.several_resources) > MAX_RESOURCES_PER_SLOT
        else None,
        "groupLimits": validate_group_limits(slot.group_limits, MAX_CAPACITY),
        "holdMinutes": _validate_number(slot.hold_minutes, 1, MAX_HOLD_MINUTES),
        "holdCooldownMinutes": _validate_number(
            slot.hold_cooldown_minutes, 0, MAX_HOLD_COOLDOWN_MINUTES
        ),
        "cancelCutoffMinutes": _validate_number(
            slot.cancel_cutoff_minutes, 0, MAX_CANCEL_CUTOFF_MINUTES
        ),
        "waitlistCapacity": _validate_number(slot.waitlist_capacity, 0, MAX_WAITLIST_CAPACITY),
        "waitlistOfferMinutes": None
        if slot.waitlist_offer_minutes is None
        else _validate_number(slot.waitlist_offer_minutes, 1, MAX_WAITLIST_OFFER_MINUTES),
    }
    return tuple(FieldProblem(field, message) for field, message in found.items() if message)


def past_problems(slot: Slot, now: datetime) -> tuple[FieldProblem, ...]:
    """Return the problem of a slot that lies wholly in the past; none if its times are wrong."""
    if not slot.start < slot.end <= now:
        return ()
    message = "The slot lies in the past."
    return (FieldProblem("timetable" if slot.meetings else "endTime", message),)


def _validate_number(number: int, minimum: int, maximum: int) -> str | None:
    return (
        None
        if minimum <= number <= maximum
        else f"Please enter a number from {minimum} to {maximum}."
    )
