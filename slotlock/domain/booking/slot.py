"""A slot as its organizer defined it. Its bookings are in `SlotState`."""

from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from slotlock.domain.booking.booking import (
    BookingAction,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.campaigns.terms import (
    CampaignTerms,
    GroupLimit,
    SlotAdmission,
    group_limit_for,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.changes import UNCHANGED, Unchanged
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import UserId

SeriesId = NewType("SeriesId", str)


class SlotStatus(StrEnum):
    """The life cycle of a slot."""

    DRAFT = "draft"
    PUBLISHED = "published"
    CANCELLED = "cancelled"


class SlotKind(StrEnum):
    """The purpose of a slot, for its readers only."""

    MEETING = "meeting"
    COURSE = "course"
    OTHER = "other"


@value_object
class SlotCancellation:
    """When a slot was cancelled, and by whom."""

    at: datetime
    by: UserId

    def to_history_entry(self) -> HistoryEntry:
        """Return the entry that ends the history of each booking of the slot."""
        return HistoryEntry(self.at, self.by, BookingAction.CANCELLED, BookingStatus.CANCELLED)


@value_object
class Slot:
    """The facts about a slot, which bookings do not change.

    `revision` grows by one with every change that calendars show; the last of these was at
    `revised_at`.

    A slot without a timetable meets from `start` to `end`. One with a timetable has `meetings`, in
    order: the first begins at `start` and the last ends at `end`.

    `resource` is the first resource of a slot. A slot with more than one has all of them in
    `several_resources`, in order.

    `description` is set only in a new slot and in an edit that changes it: nothing loads it with
    the slot, because a booking would pay for up to 10,000 characters.
    """

    id: SlotId
    title: str
    start: datetime
    end: datetime
    time_zone: str
    capacity: int
    location: str | None
    kind: SlotKind
    status: SlotStatus
    hold_minutes: int = 5
    cancel_cutoff_minutes: int = 0
    waitlist_capacity: int = 100
    waitlist_offer_minutes: int | None = None
    choice_group: str | None = None
    cancellation: SlotCancellation | None = None
    terms: CampaignTerms | None = None
    group_limits: tuple[GroupLimit, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    resource: str | None = None
    series_id: SeriesId | None = None
    revision: int = 0
    revised_at: datetime | None = None
    admission: SlotAdmission = SlotAdmission.ANY
    several_resources: tuple[str, ...] = ()
    description: str | Unchanged | None = field(default=UNCHANGED, compare=False, repr=False)
    hold_cooldown_minutes: int = 0

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
    def all_meetings(self) -> tuple[Meeting, ...]:
        """The meetings, in order. A slot without a timetable has one."""
        return self.meetings or (Meeting(self.start, self.end),)

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of all resources of the slot."""
        return self.several_resources or (() if self.resource is None else (self.resource,))

    @property
    def place(self) -> str | None:
        """Where the slot takes place: its location, and the names of its resources."""
        names = dict.fromkeys((*filter(None, (self.location,)), *self.resources))
        return ", ".join(names) or None

    @property
    def is_queue_only(self) -> bool:
        """Whether members get places through the admission queue only."""
        return self.admission is SlotAdmission.QUEUE_ONLY or (
            self.terms is not None and self.terms.admission is SlotAdmission.QUEUE_ONLY
        )

    @property
    def needs_user_groups(self) -> bool:
        """Whether decisions depend on the groups of users."""
        return self.terms is not None or bool(self.group_limits)

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
        return self.terms is not None or bool(self.group_limits) or self.choice_group is not None

    def limit_of_group(self, group: str) -> int | None:
        """Return how many bookings a group may have: the limit of the slot, or of its campaign."""
        limit = group_limit_for(group, self.group_limits)
        if limit is not None or self.terms is None:
            return limit
        return group_limit_for(group, self.terms.group_limits)
