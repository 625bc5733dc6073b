"""The fields of a slot that show what its organizer defined."""

from datetime import datetime
from itertools import islice
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import slot
from slotlock.domain.schedule.meetings import MAX_MEETINGS
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.enums import SlotAdmission, SlotKind, SlotStatus
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.ids import series_global_id
from slotlock.graphql.core.node import Node, property_field
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.core.values import GroupLimit, Meeting
from slotlock.graphql.resources.types import Resource

MeetingsFrom = Annotated[
    datetime | None,
    argument(name="from", description="Only meetings that end after this time."),
]
MeetingsUntil = Annotated[
    datetime | None, argument(description="Only meetings that start before this time.")
]
FirstMeetings = Annotated[
    int, argument(description="The maximum number of meetings, 1 to 500, which no slot exceeds.")
]


@strawberry.type
class SlotFacts(Node):
    """The facts about a slot, which bookings do not change. The schema lists only `Slot`."""

    _slot: strawberry.Private[slot.Slot]

    @property_field(description="The title of the slot.")
    def title(self) -> str:
        return self._slot.title

    @property_field(
        description="When the slot starts; for a course, when its first meeting starts."
    )
    def start_time(self) -> datetime:
        return self._slot.start

    @property_field(description="When the slot ends; for a course, when its last meeting ends.")
    def end_time(self) -> datetime:
        return self._slot.end

    @field(
        description="The meetings of the slot in order, by default all of them. Most slots have "
        "exactly one."
    )
    def meetings(
        self,
        from_: MeetingsFrom = None,
        until: MeetingsUntil = None,
        first: FirstMeetings = MAX_MEETINGS,
    ) -> list[Meeting]:
        if not 1 <= first <= MAX_MEETINGS:
            raise bad_input("first", f"`first` must be a number from 1 to {MAX_MEETINGS}.")
        require_valid_period("from", from_, "until", until)
        found = (
            meeting
            for meeting in self._slot.all_meetings
            if (from_ is None or meeting.end > from_) and (until is None or meeting.start < until)
        )
        return [Meeting.from_domain(meeting) for meeting in islice(found, first)]

    @property_field(description="The time zone in which the slot takes place.")
    def time_zone(self) -> TimeZone:
        return TimeZone(self._slot.time_zone)

    @property_field(description="Where the slot takes place.")
    def location(self) -> str | None:
        return self._slot.location

    @property_field(description="The kind of event that the slot is for.")
    def kind(self) -> SlotKind:
        return self._slot.kind

    @property_field(description="Whether the slot is visible and can be booked.")
    def status(self) -> SlotStatus:
        return self._slot.status

    @property_field(description="The number of places, 1 to 1000.")
    def capacity(self) -> int:
        return self._slot.capacity

    @property_field(description="How long a hold lasts, 1 to 60 minutes.")
    def hold_minutes(self) -> int:
        return self._slot.hold_minutes

    @property_field(
        description="How many minutes a user whose hold ended without a confirmation cannot hold a "
        "place in the slot again; 0 for no such limit."
    )
    def hold_cooldown_minutes(self) -> int:
        return self._slot.hold_cooldown_minutes

    @property_field(
        description="How many minutes before the start members can no longer cancel a booking."
    )
    def cancel_cutoff_minutes(self) -> int:
        return self._slot.cancel_cutoff_minutes

    @property_field(
        description="A name that alternative slots share, such as the beds of a dormitory. Each "
        "user can have at most one booking in a choice group."
    )
    def choice_group(self) -> str | None:
        return self._slot.choice_group

    @property_field(
        description="How many places a group may have in the slot, in addition to the limits of "
        "the campaign."
    )
    def group_limits(self) -> list[GroupLimit]:
        return [GroupLimit.from_domain(limit) for limit in self._slot.group_limits]

    @property_field(
        description="The name of the first resource that the slot occupies, such as a room. "
        "`resources` has all of them."
    )
    def resource(self) -> str | None:
        return self._slot.resource

    @property_field(
        description="The resources that the slot occupies. Published slots with a common resource "
        "cannot overlap."
    )
    def resources(self) -> list[Resource]:
        return [Resource.for_name(name) for name in self._slot.resources]

    @property_field(
        description="How members get places in the slot. It is for the booking queue only, too, if "
        "its campaign is."
    )
    def admission(self) -> SlotAdmission:
        return self._slot.admission

    @property_field(description="The id of the series that the slot belongs to.")
    def series_id(self) -> strawberry.ID | None:
        series_id = self._slot.series_id
        return series_global_id(series_id) if series_id else None

    @property_field(
        description="How many users can be on the waiting list; 0 if there is no waiting list."
    )
    def waitlist_capacity(self) -> int:
        return self._slot.waitlist_capacity

    @property_field(
        description="How many minutes a free place is held for the first user on the waiting list; "
        "null if the place is booked for them immediately."
    )
    def waitlist_offer_minutes(self) -> int | None:
        return self._slot.waitlist_offer_minutes
