"""What organisers fill in of slots."""

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import strawberry
from strawberry import UNSET, field

from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Timetable, Weekday, WeeklyMeeting
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.series import SeriesScope
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.core.scalars import TimeZone

GROUP_LIMITS_DESCRIPTION = (
    "How many people of which groups may have a place, besides what its campaign says."
)


@strawberry.input(description="At most so many people of one group in one slot.")
class GroupLimitInput:
    group: str = field(
        description="The group. A name that ends in a star stands for each group that begins so: "
        "`class:*` with a limit of 5 lets in 5 of every class."
    )
    limit: int = field(description="How many of it may have a place, at least 1.")


def to_domain_group_limits(limits: Sequence[GroupLimitInput]) -> tuple[GroupLimit, ...]:
    """The limits as the domain knows them."""
    return tuple(GroupLimit(limit.group, limit.limit) for limit in limits)


NULLABLE_FIELDS = ("location", "waitlist_offer_minutes", "resource", "timetable")


@strawberry.input(description="A meeting of every week, by the clock on the wall.")
class WeeklyInput:
    weekday: Weekday = field(description="The day of the week on which it begins.")
    start_time: time = field(description="When it begins.")
    end_time: time = field(description="When it ends; before its start, on the next day.")

    def to_domain(self) -> WeeklyMeeting:
        return WeeklyMeeting(self.weekday, self.start_time, self.end_time)


@strawberry.input(description="One meeting.")
class MeetingInput:
    start_time: datetime = field(description="When it begins.")
    end_time: datetime = field(description="When it ends.")


@strawberry.input(
    description="The meetings of a course, at most 500: the same every week over a range of dates, "
    "in the slot's time zone, on both sides of a clock change."
)
class TimetableInput:
    first: date = field(description="The first day.")
    last: date = field(description="The last day, within two years.")
    weekly: list[WeeklyInput] = field(default_factory=list, description="Its meetings each week.")
    holidays: list[date] = field(
        default_factory=list, description="Days on which no weekly meeting begins."
    )
    extra: list[MeetingInput] = field(default_factory=list, description="Single meetings besides.")

    def to_domain(self) -> Timetable:
        """The same as the domain knows it."""
        extra = tuple(Meeting(m.start_time, m.end_time) for m in self.extra)
        weekly = tuple(each.to_domain() for each in self.weekly)
        return Timetable(self.first, self.last, weekly, tuple(self.holidays), extra)


@strawberry.input(description="A slot to create.")
class CreateSlotInput:
    title: str = field(description="What it is, 1 to 200 characters.")
    start_time: datetime | None = field(
        default=None, description="When it begins; left out only with a timetable."
    )
    end_time: datetime | None = field(default=None, description="When it ends, after it begins.")
    timetable: TimetableInput | None = field(
        default=None, description="The meetings of a course, instead of one start and end."
    )
    capacity: int = field(default=1, description="Places, 1 to 1000.")
    time_zone: TimeZone = field(
        default=TimeZone("UTC"), description="The zone its times are meant in."
    )
    location: str | None = field(default=None, description="Where it is, at most 200 characters.")
    kind: SlotKind = field(default=SlotKind.MEETING, description="What it is for.")
    hold_minutes: int = field(default=5, description="How long a hold lasts, 1 to 60 minutes.")
    cancel_cutoff_minutes: int = field(
        default=0,
        description="How long before the start members can no longer give a place back, 0 to 86400 "
        "minutes.",
    )
    waitlist_capacity: int = field(
        default=100, description="How many may wait, 0 to 1000; 0 for no waiting list."
    )
    waitlist_offer_minutes: int | None = field(
        default=None,
        description="How long a freed place is offered to the next in line, 1 to 10080 minutes; "
        "null books it for them outright.",
    )
    choice_group: str | None = field(
        default=None,
        description="A name that alternatives share, at most 100 characters: a person has a place "
        "in at most one slot of a choice. It stays as it is.",
    )
    group_limits: list[GroupLimitInput] = field(
        default_factory=list, description=GROUP_LIMITS_DESCRIPTION
    )
    resource: str | None = field(
        default=None,
        description="What it needs for itself, such as a room, at most 100 characters: no two "
        "published slots of one resource overlap.",
    )
    campaign_id: strawberry.ID | None = field(
        default=None, description="The campaign it belongs to. It stays as it is."
    )
    draft: bool = field(default=False, description="Whether it waits for `publishSlot`.")

    def to_draft(self) -> SlotDraft:
        """What is to be created, as the domain knows it."""
        return SlotDraft(
            title=self.title,
            start=self.start_time,
            end=self.end_time,
            time_zone=self.time_zone,
            capacity=self.capacity,
            location=self.location,
            kind=self.kind,
            published=not self.draft,
            hold_minutes=self.hold_minutes,
            cancel_cutoff_minutes=self.cancel_cutoff_minutes,
            waitlist_capacity=self.waitlist_capacity,
            waitlist_offer_minutes=self.waitlist_offer_minutes,
            choice_group=self.choice_group,
            group_limits=to_domain_group_limits(self.group_limits),
            resource=self.resource,
            timetable=self.timetable.to_domain() if self.timetable else None,
        )


@strawberry.input(description="Changes to a slot; a field that is left out stays as it is.")
class UpdateSlotInput:
    slot_id: strawberry.ID = field(description="The slot.")
    title: str | None = field(default=UNSET, description="What it is, 1 to 200 characters.")
    start_time: datetime | None = field(default=UNSET, description="When it begins.")
    end_time: datetime | None = field(default=UNSET, description="When it ends.")
    capacity: int | None = field(
        default=UNSET, description="Places, 1 to 1000, not fewer than are taken."
    )
    time_zone: TimeZone | None = field(
        default=UNSET, description="The zone its times are meant in."
    )
    location: str | None = field(default=UNSET, description="Where it is; null removes it.")
    kind: SlotKind | None = field(default=UNSET, description="What it is for.")
    hold_minutes: int | None = field(
        default=UNSET, description="How long a hold lasts that begins from now on, 1 to 60 minutes."
    )
    cancel_cutoff_minutes: int | None = field(
        default=UNSET,
        description="How long before the start members can no longer give a place back.",
    )
    waitlist_capacity: int | None = field(
        default=UNSET, description="How many may wait, 0 to 1000; who waits already stays."
    )
    waitlist_offer_minutes: int | None = field(
        default=UNSET,
        description="How long a freed place is offered; null books it for the next outright.",
    )
    group_limits: list[GroupLimitInput] | None = field(
        default=UNSET, description=GROUP_LIMITS_DESCRIPTION
    )
    resource: str | None = field(
        default=UNSET, description="What it needs for itself; null for nothing."
    )
    timetable: TimetableInput | None = field(
        default=UNSET,
        description="The meetings of a course; null for one that meets once, from start to end.",
    )
    scope: SeriesScope = field(
        default=SeriesScope.THIS,
        description="Of a series, which slots change: all of them or none. Where times change, the "
        "others move by as much on the clock as this one does.",
    )

    def to_changes(self) -> dict[str, Any]:
        """The given fields by their names in the domain. Errors: BAD_USER_INPUT."""
        named: dict[str, Any] = {
            "title": self.title,
            "start": self.start_time,
            "end": self.end_time,
            "capacity": self.capacity,
            "time_zone": self.time_zone,
            "location": self.location,
            "kind": self.kind,
            "hold_minutes": self.hold_minutes,
            "cancel_cutoff_minutes": self.cancel_cutoff_minutes,
            "waitlist_capacity": self.waitlist_capacity,
            "waitlist_offer_minutes": self.waitlist_offer_minutes,
            "resource": self.resource,
        }
        if self.timetable is not UNSET:
            named["timetable"] = self.timetable and self.timetable.to_domain()
        if self.group_limits is not UNSET:
            named["group_limits"] = self.group_limits and to_domain_group_limits(self.group_limits)
        given = {name: value for name, value in named.items() if value is not UNSET}
        if any(value is None and name not in NULLABLE_FIELDS for name, value in given.items()):
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT,
                "Of a slot's fields only `location`, `resource`, `timetable` and "
                "`waitlistOfferMinutes` can be null.",
            )
        return given
