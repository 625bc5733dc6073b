"""A slot, with as many of its bookings and waitlist entries as a decision needs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    EndedWaitlistEntry,
    OtherBooking,
    SlotId,
    UserContext,
    WaitlistEntry,
)
from slotlock.domain.booking.history import BookingAction, BookingStatus, HistoryEntry
from slotlock.domain.booking.slot_change import EMPTY_CHANGE, SlotChange
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit, group_limit_for
from slotlock.domain.schedule.meetings import Meeting
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


@dataclass(frozen=True, slots=True)
class SlotCancellation:
    """When a slot was cancelled, and by whom. It ends the history of each of its bookings."""

    at: datetime
    by: UserId


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot, with what was loaded for a decision.

    `booked_count` counts every live booking, expired holds included until they are released.
    `bookings` contains the live bookings that were asked for, the expired holds, and the booking
    of a slot with one place. `waitlist` begins with the first `loaded_waitlist` entries; entries
    of users that were asked for may follow. The cost of a decision does not grow with the roster.
    `group_counts` has the number of live bookings per group, where groups are limited.
    `user_contexts` has what decisions depend on outside the slot.
    `change` is what decisions have changed since the slot was loaded, and all that is written.
    `next_deadline` is when the next hold expires.
    `version` grows by one with every write, `revision` with every change that calendars show; the
    last of these was at `revised_at`.

    A slot without a timetable meets from `start` to `end`. One with a timetable has `meetings`, in
    order: the first begins at `start` and the last ends at `end`.
    """

    id: SlotId
    title: str
    start: datetime
    end: datetime
    time_zone: str
    capacity: int
    booked_count: int
    location: str | None
    kind: SlotKind
    status: SlotStatus
    version: int
    changed_at: datetime
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
    bookings: tuple[Booking, ...] = ()
    waitlist: tuple[WaitlistEntry, ...] = ()
    loaded_waitlist: int = 0
    waitlist_length: int = 0
    group_counts: Mapping[str, int] = field(default_factory=dict)
    user_contexts: Mapping[UserId, UserContext] = field(default_factory=dict)
    next_deadline: datetime | None = None
    change: SlotChange = EMPTY_CHANGE

    @property
    def remaining(self) -> int:
        """The number of free places."""
        return self.capacity - self.booked_count

    @property
    def is_booked(self) -> bool:
        """Whether there is no free place."""
        return self.remaining <= 0

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
        return self.needs_user_groups or self.depends_on_other_bookings

    def exceeded_group_limit(self, groups: Sequence[str]) -> GroupLimit | None:
        """Return the first of these groups whose limit is reached, with the limit."""
        campaign_limits = self.terms.group_limits if self.terms else ()
        for group in groups if self.limits_groups else ():
            limit = group_limit_for(group, self.group_limits)
            limit = group_limit_for(group, campaign_limits) if limit is None else limit
            if limit is not None and self.group_counts.get(group, 0) >= limit:
                return GroupLimit(group, limit)
        return None

    def booking_of(self, user_id: UserId) -> Booking | None:
        """Return the live booking of a user, if it was loaded."""
        return next((b for b in self.bookings if b.user_id == user_id), None)

    def bookings_of(self, user_id: UserId) -> tuple[Booking, ...]:
        """Return the loaded live bookings of a user."""
        return tuple(b for b in self.bookings if b.user_id == user_id)

    def booking_by_id(self, booking_id: BookingId) -> Booking | None:
        """Return the live booking with this id, if it was loaded."""
        return next((b for b in self.bookings if b.id == booking_id), None)

    def waitlist_entry_of(self, user_id: UserId) -> WaitlistEntry | None:
        """Return the waitlist entry of a user, if it was loaded."""
        return next((w for w in self.waitlist if w.user_id == user_id), None)

    def user_context(self, user_id: UserId) -> UserContext | None:
        """Return the context of a user, if it was loaded."""
        return self.user_contexts.get(user_id)

    def groups_of(self, user_id: UserId) -> tuple[str, ...]:
        """Return the groups of a user, if decisions depend on them."""
        context = self.user_context(user_id)
        return context.groups if context and self.needs_user_groups else ()

    def other_bookings_of(self, user_id: UserId, now: datetime) -> tuple[OtherBooking, ...]:
        """Return the unexpired bookings of a user in other slots that decisions depend on."""
        context = self.user_context(user_id)
        others = context.other_bookings if context else ()
        return tuple(other for other in others if not other.booking.is_expired_at(now))

    def as_other_booking(self, booking: Booking) -> OtherBooking:
        """Return a booking of this slot as decisions in other slots see it."""
        return OtherBooking(booking, self.choice_group, self.terms, self.all_meetings)

    def with_other_bookings(self, other_bookings: Sequence[OtherBooking]) -> "Slot":
        """Return the slot with bookings that were just made in another slot of the batch."""
        if not self.depends_on_other_bookings:
            return self
        contexts = dict(self.user_contexts)
        for other in other_bookings:
            if context := contexts.get(other.booking.user_id):
                more = (*context.other_bookings, other)
                contexts[context.user_id] = replace(context, other_bookings=more)
        return replace(self, user_contexts=contexts)

    def with_booking(self, booking: Booking) -> "Slot":
        """Return the slot with one more booking."""
        return replace(
            self,
            booked_count=self.booked_count + 1,
            bookings=(*self.bookings, booking),
            group_counts=self._with_group_counts(booking.groups, 1),
            change=self.change.with_added(booking),
        )

    def with_changed_booking(self, booking: Booking) -> "Slot":
        """Return the slot with the booking of this id replaced."""
        return replace(
            self,
            bookings=tuple(booking if b.id == booking.id else b for b in self.bookings),
            change=self.change.with_changed(booking),
        )

    def without_bookings(self, *ended: Booking) -> "Slot":
        """Return the slot without these bookings, which have ended."""
        ended_ids = {booking.id for booking in ended}
        groups = [group for booking in ended for group in booking.groups]
        return replace(
            self,
            booked_count=self.booked_count - len(ended_ids),
            group_counts=self._with_group_counts(groups, -1),
            bookings=tuple(b for b in self.bookings if b.id not in ended_ids),
            change=self.change.with_ended(*ended),
        )

    def _with_group_counts(self, groups: Sequence[str], delta: int) -> Mapping[str, int]:
        if not self.limits_groups:
            return self.group_counts
        counts = Counter(self.group_counts)
        for group in groups:
            counts[group] += delta
        return dict(counts)

    def without_waitlist_entry(self, entry: WaitlistEntry) -> "Slot":
        """Return the slot without this entry, which becomes a booking."""
        index = self.waitlist.index(entry)
        return replace(
            self,
            waitlist=self.waitlist[:index] + self.waitlist[index + 1 :],
            loaded_waitlist=self.loaded_waitlist - (index < self.loaded_waitlist),
            waitlist_length=self.waitlist_length - 1,
            change=self.change.with_removed_entries(entry),
        )

    def with_waitlist_entry(self, entry: WaitlistEntry) -> "Slot":
        """Return the slot with one more entry at the end of its waiting list."""
        is_completely_loaded = self.loaded_waitlist == self.waitlist_length
        return replace(
            self,
            waitlist=(*self.waitlist, entry),
            loaded_waitlist=self.loaded_waitlist + is_completely_loaded,
            waitlist_length=self.waitlist_length + 1,
            change=self.change.with_joined(entry),
        )

    def with_ended_waitlist_entry(
        self, entry: WaitlistEntry, now: datetime, by: UserId | None
    ) -> "Slot":
        """Return the slot without this entry, which ends without a booking.

        `by` is the user who ended it; None for the waiting list itself.
        """
        ended = EndedWaitlistEntry(entry, now, by)
        change = self.change.with_ended_entries(ended)
        return replace(self.without_waitlist_entry(entry), change=change)

    def without_waitlist(self, now: datetime, by: UserId) -> "Slot":
        """Return the slot with an empty waiting list: all its entries end without a booking."""
        ended = (EndedWaitlistEntry(entry, now, by) for entry in self.waitlist)
        return replace(
            self,
            waitlist=(),
            loaded_waitlist=0,
            waitlist_length=0,
            change=self.change.with_ended_entries(*ended),
        )


def cancellation_entry(slot: Slot) -> HistoryEntry:
    """Return the entry that ends the history of each booking of a cancelled slot."""
    at, by = (slot.changed_at, None) if slot.cancellation is None else astuple(slot.cancellation)
    return HistoryEntry(at, by, BookingAction.CANCELLED, BookingStatus.CANCELLED)
