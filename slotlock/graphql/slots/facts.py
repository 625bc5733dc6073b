"""The fields of a slot that show what its organizer defined, and the facts that each selects."""

from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import slot
from slotlock.domain.booking.slot import SLOT_FACTS, SLOT_FIELDS
from slotlock.domain.schedule import meetings
from slotlock.domain.schedule.meetings import MAX_MEETINGS
from slotlock.domain.slots.listing import SlotSelection
from slotlock.graphql.context import Info
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.enums import SlotAdmission, SlotStatus
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.ids import series_global_id
from slotlock.graphql.core.node import Node, attribute_field, property_field, selected_names
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.core.shared_types import GroupLimit, Meeting, similar_groups_of
from slotlock.graphql.resources.resource_queries import Resource

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


# The fields of the facts that are declared with `shown`.
_SHOWN: dict[str, Any] = {
    each.name: attribute_field(f"_slot.{each.name}", each.type, each.shown)
    for each in SLOT_FACTS
    if each.shown
}


def _shown(*names: str) -> dict[str, Any]:
    """Return the fields of facts that have their place here in the schema."""
    return {name: _SHOWN.pop(name) for name in names}


@strawberry.type
class SlotFacts(Node):
    """The facts about a slot, which bookings do not change. The schema lists only `Slot`."""

    _slot: strawberry.Private[slot.Slot]

    vars().update(_shown("title"))
    start_time = attribute_field(
        "_slot.start",
        datetime,
        "When the slot starts; for a course, when its first meeting starts.",
    )
    end_time = attribute_field(
        "_slot.end", datetime, "When the slot ends; for a course, when its last meeting ends."
    )

    @field(
        description="The meetings of the slot in order, by default all of them. Most slots have "
        "exactly one.",
        graphql_type=list[Meeting],
    )
    def meetings(
        self,
        from_: MeetingsFrom = None,
        until: MeetingsUntil = None,
        first: FirstMeetings = MAX_MEETINGS,
    ) -> object:
        return select_meetings(self._slot, from_, until, first)

    meeting_count = attribute_field("_slot.meeting_count", int, "The number of all meetings.")
    time_zone = attribute_field(
        "_slot.time_zone", TimeZone, "The time zone in which the slot takes place."
    )
    vars().update(_shown("location", "kind"))
    status = attribute_field(
        "_slot.status", SlotStatus, "Whether the slot is visible and can be booked."
    )
    vars().update(
        _shown(
            "capacity",
            "hold_minutes",
            "hold_cooldown_minutes",
            "reminder_minutes",
            "cancel_cutoff_minutes",
            "choice_group",
        )
    )

    group_limits = attribute_field(
        "_slot.group_limits",
        list[GroupLimit],
        "How many places a group may have in the slot, in addition to the limits of the campaign.",
    )

    vars().update(_shown("only_for_groups"))

    @field(description=similar_groups_of("the slot limits or is for"))
    async def similar_groups(self, info: Info) -> list[list[str]] | None:
        limited = [each.group for each in self._slot.group_limits]
        return await info.context.loaders.similar_groups([*limited, *self._slot.only_for_groups])

    resource = attribute_field(
        "_slot.resource",
        str | None,
        "The name of the first resource that the slot occupies, such as a room. "
        "`resources` has all of them.",
    )

    @property_field(
        description="The resources that the slot occupies. Published slots with a common resource "
        "cannot overlap."
    )
    def resources(self) -> list[Resource]:
        return [Resource.for_name(name) for name in self._slot.resources]

    vars().update(_shown("admission"))
    required_admission = attribute_field(
        "_slot.required_admission",
        SlotAdmission,
        "How members get places in the slot: what its campaign says goes before its own setting, "
        "and a draw before the queue.",
    )

    @property_field(description="The id of the series that the slot belongs to.")
    def series_id(self) -> strawberry.ID | None:
        series_id = self._slot.series_id
        return series_global_id(series_id) if series_id else None

    # The others, such as those of the waiting list; a new one comes last.
    vars().update(_shown(*_SHOWN))

    @property_field(
        description="Why the slot was cancelled, in the words of the organizer; null without a "
        "reason, and while it is not cancelled."
    )
    def cancel_reason(self) -> str | None:
        cancellation = self._slot.cancellation
        return cancellation.reason if cancellation else None


def select_meetings(
    slot: slot.Slot, from_: datetime | None, until: datetime | None, first: int
) -> list[meetings.Meeting]:
    """Return the first meetings of a period. Errors: BAD_USER_INPUT."""
    if not 1 <= first <= MAX_MEETINGS:
        raise bad_input("first", f"`first` must be a number from 1 to {MAX_MEETINGS}.")
    require_valid_period("from", from_, "until", until)
    found = (
        meeting
        for meeting in slot.all_meetings
        if (from_ is None or meeting.end > from_) and (until is None or meeting.start < until)
    )
    return list(islice(found, first))


# The field that shows bookings and entries of several users.
FAMILY = "familyPlaces"
# The facts that each field of a slot shows. Fields of other types may have the same names.
FACTS_OF_FIELDS = {field.api_name: {field.name} for field in SLOT_FIELDS if field.api_name} | {
    "meetings": {"meetings", "start", "end"},
    "meetingCount": {"meetings"},
    "attendanceByMeeting": {"meetings", "start", "end"},
    "resources": {"resource", "several_resources"},
    "series": {"series_id"},
    "similarGroups": {"group_limits", "only_for_groups"},
    "seriesId": {"series_id"},
    "campaign": {"terms"},
    "requiredAdmission": {"admission", "terms"},
    "version": {"version"},
    "bookedBy": {"capacity"},
    "checkInQr": {"title"},
    "cancelReason": {"cancellation"},
    "cancelledForMe": {"cancellation"},
    # Of a place of a family.
    "cancelled": {"cancellation"},
}


def slot_selection(info: Info) -> SlotSelection:
    """Return the facts and parts of slots that are selected anywhere below the resolved field."""
    return select_parts(selected_names(info))


@lru_cache(maxsize=1_000)
def select_parts(names: frozenset[str]) -> SlotSelection:
    """Return the facts and parts of slots that fields with these names show."""
    return SlotSelection(
        facts=frozenset().union(*(FACTS_OF_FIELDS.get(name, ()) for name in names)),
        remaining="remaining" in names or "isBooked" in names,
        my_booking=not names.isdisjoint(("myBooking", "meetingUrl", "cancelledForMe", FAMILY)),
        my_waitlist_entry="myWaitlistEntry" in names or FAMILY in names,
        waitlist_length="waitlistLength" in names,
        booked_by="bookedBy" in names,
    )
