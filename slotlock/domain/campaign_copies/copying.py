"""Rules for copying a campaign with its slots to dates that are some weeks later."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import MAX_CHOICE_GROUP_LENGTH, SeriesId, Slot, SlotStatus
from slotlock.domain.booking.slot_change import SlotChange
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaign_copies.campaign_copy_outcomes import (
    MAX_COPIED_MEETINGS,
    MAX_COPIED_SLOTS,
    MAX_SHOWN,
    CampaignCopy,
    CampaignTooLarge,
    CopiedSlot,
    CopyProblem,
    CopyProblemKind,
)
from slotlock.domain.campaigns.campaign import Campaign, campaign_problems, past_end_problem
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting, validate_meetings
from slotlock.domain.schedule.zones import UNKNOWN_ZONE, find_zone, to_instant, to_wall_clock
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import format_in_zone, normalize_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.editing import past_problems
from slotlock.domain.slots.resource_conflicts import ResourceTaken, ResourceUsage

MAX_WEEKS = 200
NO_SLOTS_ZONE = ZoneInfo("UTC")
COPIED_GROUP_SUFFIX = re.compile(r" \[[0-9a-f]{8}\]$")


@value_object
class CopyRequest:
    """The campaign to copy, the name of the copy, and by how many weeks its dates move.

    Only with `allow_past` may slots of the copy lie wholly in the past, or the copy close there.
    """

    campaign_id: CampaignId
    name: str
    weeks: int
    allow_past: bool = False


@value_object
class CopySource:
    """A campaign and its slots by start, with their descriptions. None of them is cancelled."""

    campaign: Campaign
    slots: tuple[Slot, ...]
    descriptions: Mapping[str, str]


@value_object
class CopyNames:
    """The ids of the copies, and the series and choice groups in place of those of the source.

    Choice groups are not limited to one campaign: with the old name, a user could have a place
    either in the source or in the copy.
    """

    campaign_id: CampaignId
    slot_ids: Mapping[SlotId, SlotId]
    series_ids: Mapping[SeriesId, SeriesId]
    choice_groups: Mapping[str, str]


@value_object
class CopyPlan:
    """A new campaign and its slots in the order of the source, with the problems of their dates."""

    copy: CampaignCopy
    slots: tuple[SlotState, ...]
    problems: tuple[CopyProblem, ...]

    @property
    def campaign(self) -> Campaign:
        """The new campaign."""
        return self.copy.campaign


def is_too_large(slots: Sequence[Slot]) -> CampaignTooLarge | None:
    """Return the refusal of a campaign that one transaction cannot copy, or None."""
    meetings = sum(len(slot.all_meetings) for slot in slots)
    if len(slots) > MAX_COPIED_SLOTS or meetings > MAX_COPIED_MEETINGS:
        return CampaignTooLarge()
    return None


def copied_choice_group(name: str, token: str) -> str:
    """Return the name of the copy of a choice group: the old one, and a token in brackets.

    The token consists of 8 hexadecimal digits. It replaces that of an earlier copy.
    """
    name, suffix = COPIED_GROUP_SUFFIX.sub("", name), f" [{token}]"
    return name[: MAX_CHOICE_GROUP_LENGTH - len(suffix)].rstrip() + suffix


def plan_copy(
    source: CopySource, request: CopyRequest, names: CopyNames, now: datetime
) -> CopyPlan | InvalidInput:
    """Return the copies of a campaign and its slots, or the problems of the request.

    Every local time stays the same in the time zone of its slot; those of the campaign, in the
    time zone of its first slot.
    """
    if not 1 <= request.weeks <= MAX_WEEKS:
        problem = ProblemCode.NOT_IN_RANGE.problem(minimum=1, maximum=MAX_WEEKS)
        return InvalidInput((FieldProblem("weeks", problem),))
    by = timedelta(weeks=request.weeks)
    zones = {slot.time_zone: find_zone(slot.time_zone) for slot in source.slots}
    known_zones = {name: zone for name, zone in zones.items() if zone is not None}
    if len(known_zones) < len(zones):
        return InvalidInput((UNKNOWN_ZONE,))
    zone = known_zones[source.slots[0].time_zone] if source.slots else NO_SLOTS_ZONE
    try:
        campaign = _copy_campaign(source.campaign, request, names.campaign_id, by, zone)
        if problems := tuple(campaign_problems(campaign)):
            return InvalidInput(problems)
        copies = [
            _copy_slot(slot, campaign.terms, names, by, known_zones[slot.time_zone], now)
            for slot in source.slots
        ]
    except OverflowError:
        return InvalidInput((FieldProblem("weeks", ProblemCode.DATE_TOO_LATE.problem()),))
    slots = [copied for copied, _ in copies]
    shown = [_to_shown(slot, copied) for slot, copied in zip(source.slots, slots, strict=True)]
    adjusted = [each for each, (_, is_skipped) in zip(shown, copies, strict=True) if is_skipped]
    copy = CampaignCopy(
        campaign,
        slot_count=len(slots),
        first_start=min((slot.start for slot in slots), default=None),
        last_end=max((slot.end for slot in slots), default=None),
        slots=tuple(shown[:MAX_SHOWN]),
        adjusted=tuple(adjusted[:MAX_SHOWN]),
    )
    changes = (SlotChange(description=source.descriptions.get(slot.id)) for slot in source.slots)
    states = tuple(
        SlotState(slot, version=1, changed_at=now, change=change)
        for slot, change in zip(slots, changes, strict=True)
    )
    problems_of_times = _time_problems(source, campaign, slots, request, now)
    return CopyPlan(copy, states, tuple(problems_of_times))


def resource_problems(
    source: CopySource,
    plan: CopyPlan,
    rivals: Sequence[SlotState],
    known_resources: Collection[str],
) -> Iterator[CopyProblem]:
    """Yield the copies whose resources do not exist any more, or are taken at the new times."""
    usage = ResourceUsage.from_slots([*rivals, *plan.slots])
    rival_ids = {rival.id for rival in rivals}
    for slot, copied in zip(source.slots, plan.slots, strict=True):
        for name in slot.resources:
            if name not in known_resources:
                problem = ProblemCode.UNKNOWN_RESOURCE.problem(name=name).of(slot.title)
                yield CopyProblem(CopyProblemKind.RESOURCE_NOT_FOUND, problem, slot.id)
        if taken := usage.conflict_with(copied.slot):
            yield _taken_problem(slot, taken, rival_ids)


def draft_problems(
    source: CopySource, plan: CopyPlan, rivals: Sequence[SlotState]
) -> Iterator[CopyProblem]:
    """Yield the drafts of the copy whose resources another slot or draft has at that time."""
    # As they would be if all of them were published.
    published = [
        replace(state, slot=replace(state.slot, status=SlotStatus.PUBLISHED))
        for state in plan.slots
    ]
    usage = ResourceUsage.from_slots([*rivals, *published])
    rival_ids = {rival.id for rival in rivals}
    for slot, copied in zip(source.slots, published, strict=True):
        if slot.status is SlotStatus.DRAFT and (taken := usage.conflict_with(copied.slot)):
            yield _taken_problem(slot, taken, rival_ids)


def _taken_problem(slot: Slot, taken: ResourceTaken, rival_ids: Collection[SlotId]) -> CopyProblem:
    start = format_in_zone(taken.meeting.start, _zone_of(slot))
    problem = ProblemCode.RESOURCE_USED.problem(
        slot=taken.other.slot.title, name=taken.resource, time=start
    )
    return CopyProblem(
        CopyProblemKind.RESOURCE_TAKEN,
        problem.of(slot.title),
        slot.id,
        taken.other.id if taken.other.id in rival_ids else None,
    )


def _copy_campaign(
    source: Campaign, request: CopyRequest, new_id: CampaignId, by: timedelta, zone: ZoneInfo
) -> Campaign:
    terms = source.terms
    cancel_until = terms.cancel_until
    moved = replace(
        terms,
        campaign_id=new_id,
        version=1,
        published=False,
        # A draw is not copied: without one, nobody could ever book.
        admission=SlotAdmission.ANY if terms.admission is SlotAdmission.DRAW else terms.admission,
        opens_at=_move(terms.opens_at, by, zone),
        closes_at=_move(terms.closes_at, by, zone),
        cancel_until=None if cancel_until is None else _move(cancel_until, by, zone),
    )
    name = normalize_line(request.name)
    return replace(source, id=new_id, name=name, terms=moved, published_at=None)


def _copy_slot(
    slot: Slot,
    terms: CampaignTerms,
    names: CopyNames,
    by: timedelta,
    zone: ZoneInfo,
    now: datetime,
) -> tuple[Slot, bool]:
    """Return the copy of a slot, and whether a clock change skips one of its local times."""
    moved = [_move_meeting(meeting, by, zone) for meeting in slot.all_meetings]
    meetings = tuple(meeting for meeting, _ in moved)
    copied = replace(
        slot,
        id=names.slot_ids[slot.id],
        start=meetings[0].start,
        end=meetings[-1].end,
        meetings=meetings if slot.meetings else (),
        series_id=slot.series_id and names.series_ids[slot.series_id],
        choice_group=slot.choice_group and names.choice_groups[slot.choice_group],
        terms=terms,
        cancellation=None,
        revision=0,
        revised_at=now,
    )
    return copied, any(is_skipped for _, is_skipped in moved)


def _move(instant: datetime, by: timedelta, zone: ZoneInfo) -> datetime:
    return to_instant(to_wall_clock(instant, zone) + by, zone)


def _move_meeting(meeting: Meeting, by: timedelta, zone: ZoneInfo) -> tuple[Meeting, bool]:
    """Move both local times, and return whether the clock change skips one of them.

    A meeting whose start is skipped has its usual duration.
    """
    local_start = to_wall_clock(meeting.start, zone) + by
    local_end = to_wall_clock(meeting.end, zone) + by
    start, end = to_instant(local_start, zone), to_instant(local_end, zone)
    is_start_skipped = to_wall_clock(start, zone) != local_start
    is_end_skipped = to_wall_clock(end, zone) != local_end
    if end <= start or is_start_skipped:
        end = start + (meeting.end - meeting.start)
    return Meeting(start, end), is_start_skipped or is_end_skipped


def _time_problems(
    source: CopySource,
    campaign: Campaign,
    slots: Sequence[Slot],
    request: CopyRequest,
    now: datetime,
) -> Iterator[CopyProblem]:
    past_end = None if request.allow_past else past_end_problem(campaign.terms, now)
    if past_end:
        yield CopyProblem(CopyProblemKind.IN_PAST, past_end.message)
    for slot, copied in zip(source.slots, slots, strict=True):
        if problem := validate_meetings(copied.all_meetings, _zone_of(slot)):
            yield CopyProblem(CopyProblemKind.INVALID_TIMES, problem.of(slot.title), slot.id)
        if not request.allow_past and (problems := past_problems([copied], now)):
            past = problems[0].message.of(slot.title)
            yield CopyProblem(CopyProblemKind.IN_PAST, past, slot.id)


def _zone_of(slot: Slot) -> tzinfo:
    return find_zone(slot.time_zone) or UTC


def _to_shown(slot: Slot, copied: Slot) -> CopiedSlot:
    return CopiedSlot(slot.id, copied.title, copied.start, copied.end, copied.time_zone)
