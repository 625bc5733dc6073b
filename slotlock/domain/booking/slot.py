"""A slot as its organizer defined it. Its bookings are in `SlotState`."""

from collections.abc import Iterable
from dataclasses import KW_ONLY
from datetime import datetime, timedelta
from typing import NewType

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.campaigns.terms import (
    MAX_REMINDER_MINUTES,
    CampaignTerms,
    GroupLimit,
    SlotAdmission,
    group_limit_for,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.facts import (
    Line,
    Link,
    Names,
    Number,
    attribute,
    attributes_of,
    fact,
)
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.value_object import partial_value_object, value_object
from slotlock.domain.users.groups import validate_pattern
from slotlock.domain.users.user import UserId

SeriesId = NewType("SeriesId", str)

MAX_CAPACITY = 1000
# The maximum lifetime of a hold, extensions included. Ticket shops commonly allow 5 to 30 minutes.
MAX_HOLD_MINUTES = 60
MAX_WAITLIST_CAPACITY = 1000
MAX_CHOICE_GROUP_LENGTH = 100
MAX_ONLY_FOR_GROUPS = 20
MAX_NUMBER_LENGTH = 40
# What browsers and servers commonly take. A link to a meeting of Teams has 240 characters.
MAX_LINK_LENGTH = 2000
MINUTES_PER_DAY = 24 * 60


class SlotStatus(DescribedEnum):
    """Whether a slot is visible and can be booked."""

    DRAFT = "draft", "Only organizers see the slot. Nobody can book it."
    PUBLISHED = "published", "Everyone sees the slot, unless its campaign is unpublished."
    CANCELLED = "cancelled", "The slot was cancelled with all its bookings. Nobody can book it."


class SlotKind(DescribedEnum):
    """The kind of event that a slot is for."""

    MEETING = "meeting", "A meeting."
    COURSE = "course", "A course or a class."
    OTHER = "other", "Something else."


@value_object
class SlotCancellation:
    """When a slot was cancelled, by whom, and why, in the organizer's words."""

    at: datetime
    by: UserId
    reason: str | None = None

    def to_history_entry(self) -> HistoryEntry:
        """Return the entry that ends the history of each booking of the slot."""
        return HistoryEntry(self.at, self.by, BookingAction.CANCELLED, BookingStatus.CANCELLED)


@partial_value_object
class SlotSettings:
    """The facts about a slot that organizers enter as they are. A new one comes last."""

    title: str = fact(
        Line(200, if_empty=ProblemCode.TITLE_MISSING),
        shown="The title of the slot.",
    )
    time_zone: str = fact()
    capacity: int = fact(
        Number(1, MAX_CAPACITY),
        shown="The number of places, 1 to 1000.",
    )
    location: str | None = fact(
        Line(200),
        shown="Where the slot takes place.",
    )
    kind: SlotKind = fact(
        shown="The kind of event that the slot is for.",
    )
    hold_minutes: int = fact(
        Number(1, MAX_HOLD_MINUTES),
        default=5,
        shown="How long a hold lasts, 1 to 60 minutes.",
    )
    cancel_cutoff_minutes: int = fact(
        Number(0, 60 * MINUTES_PER_DAY),
        default=0,
        shown="How many minutes before the start members can no longer cancel a booking.",
    )
    waitlist_capacity: int = fact(
        Number(0, MAX_WAITLIST_CAPACITY),
        default=100,
        shown="How many users can be on the waiting list; 0 if there is no waiting list.",
    )
    waitlist_offer_minutes: int | None = fact(
        Number(1, 7 * MINUTES_PER_DAY),
        default=None,
        shown="How many minutes a free place is held for the first user on the waiting list; "
        "null if the place is booked for them immediately.",
    )
    choice_group: str | None = fact(
        Line(MAX_CHOICE_GROUP_LENGTH),
        default=None,
        shown="A name that alternative slots share, such as the beds of a dormitory. Each user "
        "can have at most one booking in a choice group.",
    )
    admission: SlotAdmission = fact(
        default=SlotAdmission.ANY,
        shown="How members get places in the slot. It is for the booking queue only, too, if its "
        "campaign is.",
    )
    hold_cooldown_minutes: int = fact(
        Number(0, 7 * MINUTES_PER_DAY),
        default=0,
        shown="How many minutes a user whose hold ended without a confirmation cannot hold a "
        "place in the slot again; 0 for no such limit.",
    )
    reminder_minutes: int | None = fact(
        Number(0, MAX_REMINDER_MINUTES),
        default=None,
        shown="How many minutes before the start a mail reminds all who have a place; 0 for "
        "none, null for the setting of the campaign.",
    )
    # Only for organizers, and with a booking: see `meeting_url_for`.
    meeting_url: str | None = fact(Link(MAX_LINK_LENGTH), default=None)
    only_for_groups: tuple[str, ...] = fact(
        Names(MAX_ONLY_FOR_GROUPS, ProblemCode.TOO_MANY_GROUPS, validate_pattern),
        default=(),
        shown="The groups that the slot is for, of those that may take part in its campaign; "
        "empty if it is for all of them. `class:*` is each group whose name begins so.",
    )
    number: str | None = fact(
        Line(MAX_NUMBER_LENGTH),
        default=None,
        shown="The number of the slot, which no other slot of its campaign has; cancelled ones "
        "do not count.",
    )


@partial_value_object
class Slot(SlotSettings):
    """The facts about a slot, which bookings do not change.

    `revision` grows by one with every change that calendars show; the last of these was at
    `revised_at`.

    A slot without a timetable meets from `start` to `end`. One with a timetable has `meetings`, in
    order: the first begins at `start` and the last ends at `end`.

    `resource` is the first resource of a slot. A slot with more than one has all of them in
    `several_resources`, in order.

    Nothing loads the description with a slot, because a booking would pay for up to 10,000
    characters.
    """

    _: KW_ONLY
    id: SlotId
    start: datetime = attribute("start", "startTime")
    end: datetime = attribute("end", "endTime")
    status: SlotStatus
    cancellation: SlotCancellation | None = attribute("cancellation", default=None)
    terms: CampaignTerms | None = attribute("campaign", default=None)
    group_limits: tuple[GroupLimit, ...] = attribute("groupLimits", "groupLimits", default=())
    meetings: tuple[Meeting, ...] = attribute("meetings", "meetings", default=())
    resource: str | None = None
    series_id: SeriesId | None = attribute("series", default=None)
    revision: int = attribute("revision", default=0)
    revised_at: datetime | None = attribute("revisedAt", default=None)
    # A list in place of the name: a query for a name finds both, in older processes, too.
    several_resources: tuple[str, ...] = attribute("resource", "resources", default=())

    @property
    def is_hidden(self) -> bool:
        """Whether only organizers see the slot: a draft, or one of an unpublished campaign."""
        is_draft = self.status is SlotStatus.DRAFT
        return is_draft or (self.terms is not None and not self.terms.published)

    @property
    def cancel_cutoff(self) -> datetime:
        """The time from which only organizers can cancel bookings."""
        cutoff = self.start - timedelta(minutes=self.cancel_cutoff_minutes)
        until = self.terms.cancel_until if self.terms else None
        return cutoff if until is None else min(cutoff, until)

    @property
    def reminder_at(self) -> datetime | None:
        """When a mail reminds of the slot, by its setting or that of its campaign; None if none."""
        minutes = self.reminder_minutes
        if minutes is None and self.terms is not None:
            minutes = self.terms.reminder_minutes
        return self.start - timedelta(minutes=minutes) if minutes else None

    @property
    def all_meetings(self) -> tuple[Meeting, ...]:
        """The meetings, in order. A slot without a timetable has one."""
        return self.meetings or (Meeting(self.start, self.end),)

    @property
    def meeting_count(self) -> int:
        """The number of meetings."""
        return len(self.meetings) or 1

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of all resources of the slot."""
        return self.several_resources or (() if self.resource is None else (self.resource,))

    @property
    def numbered_title(self) -> str:
        """The title, after the number if there is one."""
        return f"{self.number} {self.title}" if self.number else self.title

    @property
    def place(self) -> str | None:
        """Where the slot takes place: its location, and the names of its resources."""
        names = dict.fromkeys((*filter(None, (self.location,)), *self.resources))
        return ", ".join(names) or None

    def meeting_url_for(self, booking: Booking | None) -> str | None:
        """Return the link for the user of a booking: a hold has no place for sure, a wait none."""
        has_place = booking is not None and booking.status is BookingStatus.CONFIRMED
        return self.meeting_url if has_place and self.cancellation is None else None

    @property
    def required_admission(self) -> SlotAdmission:
        """How members get places: a draw goes before the queue, whichever of both has it."""
        of_slot = self.admission
        if self.terms is None or of_slot is SlotAdmission.DRAW:
            return of_slot
        of_campaign = self.terms.admission
        return of_slot if of_campaign is SlotAdmission.ANY else of_campaign

    @property
    def needs_user_groups(self) -> bool:
        """Whether decisions depend on the groups of users."""
        return self.terms is not None or bool(self.group_limits or self.only_for_groups)

    @property
    def limits_groups(self) -> bool:
        """Whether the number of bookings per group is limited."""
        return bool(self.group_limits or (self.terms and self.terms.group_limits))

    @property
    def depends_on_other_bookings(self) -> bool:
        """Whether decisions depend on the bookings of users in other slots."""
        return self.choice_group is not None or (
            self.terms is not None and self.terms.depends_on_other_bookings
        )

    @property
    def needs_user_context(self) -> bool:
        """Whether decisions depend on anything of a user outside the slot."""
        return self.needs_user_groups or self.choice_group is not None

    def is_for(self, groups: Iterable[str]) -> bool:
        """Return whether the slot is for a user with these groups, of those who are eligible."""
        return not self.only_for_groups or any(
            group.startswith(name[:-1]) if name.endswith("*") else group == name
            for group in groups
            for name in self.only_for_groups
        )

    def limit_of_group(self, group: str) -> int | None:
        """Return how many bookings a group may have: the limit of the slot, or of its campaign."""
        limit = group_limit_for(group, self.group_limits)
        if limit is not None or self.terms is None:
            return limit
        return group_limit_for(group, self.terms.group_limits)


# Documents and audit notes have these attributes in this order, and newer ones after them.
_ORDER = (
    *("title", "start", "end", "meetings", "time_zone", "location", "kind", "status", "capacity"),
    *("hold_minutes", "hold_cooldown_minutes", "cancel_cutoff_minutes", "waitlist_capacity"),
    *("waitlist_offer_minutes", "choice_group", "group_limits", "resource", "several_resources"),
    *("admission", "cancellation", "terms", "series_id", "revision", "revised_at"),
)
_ATTRIBUTES = attributes_of(Slot)
SLOT_FIELDS = tuple(
    _ATTRIBUTES[name] for name in dict.fromkeys((*_ORDER, *_ATTRIBUTES)) if name != "id"
)
# What organizers enter and the inputs have as it is.
SLOT_FACTS = tuple(each for each in SLOT_FIELDS if each.is_fact)
