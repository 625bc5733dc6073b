"""The slot to create, the changes to a slot, and the meetings of a course."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

import strawberry
from strawberry import UNSET, field

from slotlock.domain.booking.slot import SLOT_FACTS, SlotSettings
from slotlock.domain.schedule import meetings
from slotlock.domain.schedule.timetables import Timetable, WeeklyMeeting
from slotlock.domain.shared.facts import Attribute, Names
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import is_blank
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.slots.slot_patch import NO_SETTINGS, SlotDraft, SlotPatch
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, to_change, to_required_change
from slotlock.graphql.core.enums import SeriesScope, SlotAdmission, SlotKind, Weekday
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.core.shared_types import GroupLimitInput, to_domain_group_limits

HOLIDAY_LIST_DESCRIPTION = (
    "A list of holidays whose days are skipped, too, in the time zone of the slot. A later change "
    "of the list does not change slots."
)


@strawberry.input(description="A meeting that takes place every week.")
class WeeklyInput:
    weekday: Weekday = field(description="The day of the week on which the meeting starts.")
    start_time: time = field(description="When the meeting starts, in the slot's time zone.")
    end_time: time = field(
        description="When the meeting ends, in the slot's time zone. A time before the start is on "
        "the next day."
    )

    def to_domain(self) -> WeeklyMeeting:
        """Convert the meeting to the domain's."""
        return WeeklyMeeting(self.weekday, self.start_time, self.end_time)


@strawberry.input(description="A single meeting.")
class MeetingInput:
    start_time: datetime = field(description="When the meeting starts.")
    end_time: datetime = field(description="When the meeting ends.")

    def to_domain(self) -> meetings.Meeting:
        """Convert the meeting to the domain's."""
        return meetings.Meeting(self.start_time, self.end_time)


@strawberry.input(
    description="The meetings of a course, at most 500. Weekly meetings keep their local time when "
    "the clocks change."
)
class TimetableInput:
    first: date = field(description="The first day of the course.")
    last: date = field(description="The last day of the course, at most two years after the first.")
    weekly: list[WeeklyInput] = field(
        default_factory=list, description="The meetings that take place every week."
    )
    holidays: list[date] = field(
        default_factory=list, description="Days on which no weekly meeting starts."
    )
    holiday_list_id: strawberry.ID | None = field(
        default=None, description=HOLIDAY_LIST_DESCRIPTION
    )
    extra: list[MeetingInput] = field(default_factory=list, description="Additional meetings.")

    def to_domain(self, listed: Collection[date] = ()) -> Timetable:
        """Convert the timetable to the domain's; `listed` are the days of its holiday list."""
        return Timetable(
            self.first,
            self.last,
            tuple(meeting.to_domain() for meeting in self.weekly),
            (*self.holidays, *sorted(listed)),
            tuple(meeting.to_domain() for meeting in self.extra),
        )


ADMISSION_DESCRIPTION = (
    "How members get places in the slot. It is for the booking queue only, too, if its campaign is."
)
MEETING_URL_DESCRIPTION = (
    "The address with https:// at which a meeting on the net takes place, at most 2000 characters. "
    "Only organizers see it, and users with a confirmed booking."
)
HOLD_COOLDOWN_DESCRIPTION = (
    "How many minutes a user whose hold ended without a confirmation cannot hold a place in the "
    "slot again, 0 to 10080. A booking without a hold is not affected."
)
NUMBER_DESCRIPTION = (
    "The number of the slot, at most 40 characters, which no other slot of its campaign has; "
    "cancelled ones do not count. Several slots of a series get none."
)
REMINDER_DESCRIPTION = (
    "How many minutes before the start a mail reminds all who have a place, at most 20160; 0 for "
    "none, null for the setting of the campaign."
)
GROUP_LIMITS_DESCRIPTION = (
    "How many places a group may have in the slot, in addition to the limits of the campaign."
)
ONLY_FOR_GROUPS_DESCRIPTION = (
    "The groups that the slot is for, at most 20, of those that may take part in its campaign; "
    "empty for all of them. `class:*` is each group whose name begins so."
)
CUTOFF_DESCRIPTION = (
    "How many minutes before the start members can no longer cancel a booking, 0 to 86400."
)
OFFER_DESCRIPTION = (
    "How many minutes a free place is held for the first user on the waiting list, 1 to 10080; "
    "null to book it for them immediately."
)
ALLOW_PAST_DESCRIPTION = (
    "Whether the slot may lie wholly in the past, as in an import of an old term. Of a series, "
    "every slot counts: without it, none may be over."
)


def _to_names(
    resource_ids: Sequence[str] | None, *, has_name: bool
) -> tuple[str, ...] | InvalidInput:
    """Return the names of resources, each once, or the problem with their ids.

    `has_name` says whether the input names a resource in another field, too.
    """
    if has_name and resource_ids is not None:
        problem = ProblemCode.NAMES_OR_IDS.problem()
        return InvalidInput((FieldProblem("resourceIds", problem),))
    names = [ids.parse_resource_id(resource_id) for resource_id in resource_ids or ()]
    if any(is_blank(name or "") for name in names):
        problem = ProblemCode.UNKNOWN_RESOURCE_ID.problem()
        return InvalidInput((FieldProblem("resourceIds", problem),))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _to_value(fact: Attribute, value: Any) -> Any:
    """Convert a fact of a new slot. Its default is that of the domain, whatever GraphQL gives."""
    return tuple(value) if isinstance(fact.check, Names) else value


def _to_change(fact: Attribute, value: Any) -> Any:
    """Convert a fact of an update. Errors: BAD_USER_INPUT."""
    return to_change(value) if fact.is_nullable else to_required_change(fact.api_name, value)


@strawberry.input(description="The slot to create.")
class CreateSlotInput:
    title: str = field(description="The title of the slot, 1 to 200 characters.")
    start_time: datetime | None = field(
        default=None, description="When the slot starts. Required unless there is a timetable."
    )
    end_time: datetime | None = field(
        default=None,
        description="When the slot ends, after its start. Required unless there is a timetable.",
    )
    timetable: TimetableInput | None = field(
        default=None, description="The meetings of a course, instead of one start and end."
    )
    capacity: int = field(default=1, description="The number of places, 1 to 1000.")
    time_zone: TimeZone = field(
        default=TimeZone("UTC"), description="The time zone in which the slot takes place."
    )
    location: str | None = field(
        default=None, description="Where the slot takes place, at most 200 characters."
    )
    meeting_url: str | None = field(default=None, description=MEETING_URL_DESCRIPTION)
    description: str | None = field(
        default=None,
        description="A text in Markdown, at most 10,000 characters, which is stored as it is.",
    )
    kind: SlotKind = field(
        default=SlotKind.MEETING, description="The kind of event that the slot is for."
    )
    hold_minutes: int = field(default=5, description="How long a hold lasts, 1 to 60 minutes.")
    hold_cooldown_minutes: int = field(default=0, description=HOLD_COOLDOWN_DESCRIPTION)
    reminder_minutes: int | None = field(default=None, description=REMINDER_DESCRIPTION)
    cancel_cutoff_minutes: int = field(default=0, description=CUTOFF_DESCRIPTION)
    waitlist_capacity: int = field(
        default=100,
        description="How many users can be on the waiting list, 0 to 1000; 0 for no waiting list.",
    )
    waitlist_offer_minutes: int | None = field(default=None, description=OFFER_DESCRIPTION)
    choice_group: str | None = field(
        default=None,
        description="A name that alternative slots share, at most 100 characters. Each user can "
        "have at most one booking in a choice group. It cannot be changed later.",
    )
    group_limits: list[GroupLimitInput] = field(
        default_factory=list, description=GROUP_LIMITS_DESCRIPTION
    )
    only_for_groups: tuple[str, ...] = field(default=(), description=ONLY_FOR_GROUPS_DESCRIPTION)
    number: str | None = field(default=None, description=NUMBER_DESCRIPTION)
    resource: str | None = field(
        default=None,
        description="The name of an existing resource that the slot occupies, such as a room. "
        "Published slots with the same resource cannot overlap.",
    )
    resource_ids: list[strawberry.ID] | None = field(
        default=None,
        description="The resources that the slot occupies, at most 10, instead of `resource`.",
    )
    admission: SlotAdmission = field(default=SlotAdmission.ANY, description=ADMISSION_DESCRIPTION)
    campaign_id: strawberry.ID | None = field(
        default=None,
        description="The campaign that the slot belongs to. It cannot be changed later.",
    )
    draft: bool = field(
        default=False, description="Whether the slot stays hidden until `publishSlot`."
    )
    allow_past: bool = field(default=False, description=ALLOW_PAST_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)

    def to_draft(self, holidays: Collection[date] = ()) -> SlotDraft | InvalidInput:
        """Convert the input to the domain's draft of a slot, or return its problem."""
        names = _to_names(self.resource_ids, has_name=self.resource is not None)
        if isinstance(names, InvalidInput):
            return names
        return SlotDraft(
            SlotSettings(
                **{fact.name: _to_value(fact, getattr(self, fact.name)) for fact in SLOT_FACTS}
            ),
            start=self.start_time,
            end=self.end_time,
            description=self.description,
            published=not self.draft,
            group_limits=to_domain_group_limits(self.group_limits),
            resource=names[0] if names else self.resource,
            several_resources=names,
            timetable=self.timetable.to_domain(holidays) if self.timetable else None,
            allow_past=self.allow_past,
        )


@strawberry.input(description="The changes to a slot. Fields that are left out do not change.")
class UpdateSlotInput:
    slot_id: strawberry.ID = field(description="The slot to change.")
    title: str | None = field(
        default=UNSET, description="The title of the slot, 1 to 200 characters."
    )
    start_time: datetime | None = field(default=UNSET, description="When the slot starts.")
    end_time: datetime | None = field(
        default=UNSET, description="When the slot ends, after its start."
    )
    capacity: int | None = field(
        default=UNSET,
        description="The number of places, 1 to 1000 and at least the number of taken places.",
    )
    time_zone: TimeZone | None = field(
        default=UNSET,
        description="The time zone in which the slot takes place. A new one moves no slot; with a "
        "new `startTime`, the other slots of the scope start at that local time in the new zone.",
    )
    location: str | None = field(
        default=UNSET,
        description="Where the slot takes place, at most 200 characters; null to remove it.",
    )
    meeting_url: str | None = field(default=UNSET, description=MEETING_URL_DESCRIPTION)
    description: str | None = field(
        default=UNSET,
        description="A text in Markdown, at most 10,000 characters; null to remove it.",
    )
    kind: SlotKind | None = field(
        default=UNSET, description="The kind of event that the slot is for."
    )
    hold_minutes: int | None = field(
        default=UNSET, description="How long new holds last, 1 to 60 minutes."
    )
    hold_cooldown_minutes: int | None = field(default=UNSET, description=HOLD_COOLDOWN_DESCRIPTION)
    reminder_minutes: int | None = field(default=UNSET, description=REMINDER_DESCRIPTION)
    cancel_cutoff_minutes: int | None = field(default=UNSET, description=CUTOFF_DESCRIPTION)
    waitlist_capacity: int | None = field(
        default=UNSET,
        description="How many users can be on the waiting list, 0 to 1000. Users who are already "
        "on it stay.",
    )
    waitlist_offer_minutes: int | None = field(default=UNSET, description=OFFER_DESCRIPTION)
    group_limits: list[GroupLimitInput] | None = field(
        default=UNSET, description=GROUP_LIMITS_DESCRIPTION
    )
    only_for_groups: tuple[str, ...] | None = field(
        default=UNSET, description=ONLY_FOR_GROUPS_DESCRIPTION
    )
    number: str | None = field(default=UNSET, description=NUMBER_DESCRIPTION)
    resource: str | None = field(
        default=UNSET,
        description="The name of an existing resource that the slot occupies, instead of all that "
        "it had; null for none.",
    )
    resource_ids: list[strawberry.ID] | None = field(
        default=UNSET,
        description="The resources that the slot occupies, at most 10, instead of `resource`.",
    )
    timetable: TimetableInput | None = field(
        default=UNSET,
        description="The meetings of a course; null for a slot that meets once, from its start to "
        "its end.",
    )
    admission: SlotAdmission | None = field(default=UNSET, description=ADMISSION_DESCRIPTION)
    scope: SeriesScope = field(
        default=SeriesScope.THIS,
        description="Which slots of the series change: all of them, or none if one cannot. If the "
        "times change, the other slots move by the same local time as this one.",
    )
    allow_past: bool = field(
        default=False, description="Whether new times may lie wholly in the past."
    )

    def to_changes(self, holidays: Collection[date] = ()) -> SlotPatch | InvalidInput:
        """Convert the input to the domain's changes, or return its problem.

        Errors: BAD_USER_INPUT.
        """
        group_limits = to_required_change("groupLimits", self.group_limits)
        resource, resource_ids = (
            to_change(self.resource),
            to_required_change("resourceIds", self.resource_ids),
        )
        several: tuple[str, ...] | Unchanged = UNCHANGED
        if not isinstance(resource_ids, Unchanged):
            names = _to_names(resource_ids, has_name=not isinstance(resource, Unchanged))
            if isinstance(names, InvalidInput):
                return names
            resource, several = names[0] if names else None, names
        given = {
            fact.name: value
            for fact in CHANGEABLE_FACTS
            if (value := _to_change(fact, getattr(self, fact.name))) is not UNCHANGED
        }
        return SlotPatch(
            replace(NO_SETTINGS, **given),
            frozenset(given),
            start=to_required_change("startTime", self.start_time),
            end=to_required_change("endTime", self.end_time),
            timetable=self.timetable.to_domain(holidays)
            if isinstance(self.timetable, TimetableInput)
            else to_change(self.timetable),
            description=to_change(self.description),
            group_limits=group_limits
            if isinstance(group_limits, Unchanged)
            else to_domain_group_limits(group_limits),
            resource=resource,
            several_resources=several,
            allow_past=self.allow_past,
        )


CHANGEABLE_FACTS = tuple(each for each in SLOT_FACTS if hasattr(UpdateSlotInput, each.name))
