"""A slot: its places, and as much of its roster and its line as a decision needs."""

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
    """Where a slot is in its life."""

    DRAFT = "draft"
    PUBLISHED = "published"
    CANCELLED = "cancelled"


class SlotKind(StrEnum):
    """What a slot is for."""

    MEETING = "meeting"
    COURSE = "course"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class SlotCancellation:
    """When a slot was called off and by whom: the end of the record of each of its bookings."""

    at: datetime
    by: UserId


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot as far as a decision needs it.

    `taken` counts every live booking, holds that ran out included until they are settled.
    `bookings` holds those that were asked for and few more: the live bookings of the people at
    hand, the holds that ran out, and the booker of a one-place slot. `waiting` begins with the
    first `heads` in line, and may name others at hand after them. What one decision costs does
    not grow with the roster. `group_counts` says how many live bookings are people's of a group,
    where that is limited. `known` is what is known of the people at hand beyond this slot.
    `change` is what decisions have changed since the slot was loaded, and all that is written.
    `next_deadline` is when the next hold expires.
    `version` grows by one with every write, `revision` with every change that calendars show, of
    which the last was at `revised_at`.

    A slot that meets once meets from `start` to `end`; one with a timetable has its `meetings`,
    in order, of which the first begins at `start` and the last ends at `end`.
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
        """Places left."""
        return self.capacity - self.booked_count

    @property
    def is_booked(self) -> bool:
        """Whether no place is left."""
        return self.remaining <= 0

    @property
    def cancel_cutoff(self) -> datetime:
        """From when on a person can no longer give their place back themselves."""
        cutoff = self.start - timedelta(minutes=self.cancel_cutoff_minutes)
        until = self.terms.cancel_until if self.terms else None
        return cutoff if until is None else min(cutoff, until)

    @property
    def all_meetings(self) -> tuple[Meeting, ...]:
        """When people meet, in order."""
        return self.meetings or (Meeting(self.start, self.end),)

    @property
    def needs_user_groups(self) -> bool:
        """Whether it matters here which groups people have."""
        return self.terms is not None or bool(self.group_limits)

    @property
    def limits_groups(self) -> bool:
        """Whether only so many of a group may have places here."""
        return bool(self.group_limits or (self.terms and self.terms.group_limits))

    @property
    def depends_on_other_bookings(self) -> bool:
        """Whether a person's bookings in other slots count here."""
        return self.choice_group is not None or (
            self.terms is not None and self.terms.depends_on_other_bookings
        )

    @property
    def needs_user_context(self) -> bool:
        """Whether anything of a person beyond the slot matters here."""
        return self.needs_user_groups or self.depends_on_other_bookings

    def exceeded_group_limit(self, groups: Sequence[str]) -> GroupLimit | None:
        """The first of these groups of which nobody more may have a place, with its limit."""
        theirs = self.terms.group_limits if self.terms else ()
        for group in groups if self.limits_groups else ():
            limit = group_limit_for(group, self.group_limits)
            limit = group_limit_for(group, theirs) if limit is None else limit
            if limit is not None and self.group_counts.get(group, 0) >= limit:
                return GroupLimit(group, limit)
        return None

    def booking_of(self, user_id: UserId) -> Booking | None:
        """This person's live booking, if they were asked for and have one."""
        return next((b for b in self.bookings if b.user_id == user_id), None)

    def bookings_of(self, user_id: UserId) -> tuple[Booking, ...]:
        """This person's live bookings, of those that were asked for."""
        return tuple(b for b in self.bookings if b.user_id == user_id)

    def booking_by_id(self, booking_id: BookingId) -> Booking | None:
        """The live booking of this id, if it was asked for and there is one."""
        return next((b for b in self.bookings if b.id == booking_id), None)

    def waitlist_entry_of(self, user_id: UserId) -> WaitlistEntry | None:
        """This person's turn in line, if they were asked for and wait."""
        return next((w for w in self.waitlist if w.user_id == user_id), None)

    def user_context(self, user_id: UserId) -> UserContext | None:
        """What is known of this person beyond the slot, if they are at hand and it matters."""
        return self.user_contexts.get(user_id)

    def groups_of(self, user_id: UserId) -> tuple[str, ...]:
        """This person's groups, where it matters."""
        known = self.user_context(user_id)
        return known.groups if known and self.needs_user_groups else ()

    def other_bookings_of(self, user_id: UserId, now: datetime) -> tuple[OtherBooking, ...]:
        """This person's places in other slots that bear on this one, as far as they last now."""
        known = self.user_context(user_id)
        places = known.other_bookings if known else ()
        return tuple(place for place in places if not place.booking.is_expired_at(now))

    def as_other_booking(self, booking: Booking) -> OtherBooking:
        """A booking here as the decisions of other slots see it."""
        return OtherBooking(booking, self.choice_group, self.terms, self.all_meetings)

    def with_other_bookings(self, other_bookings: Sequence[OtherBooking]) -> "Slot":
        """The slot once these places were given, in another slot where others count as well."""
        if not self.depends_on_other_bookings:
            return self
        known = dict(self.user_contexts)
        for place in other_bookings:
            if one := known.get(place.booking.user_id):
                more = (*one.other_bookings, place)
                known[one.user_id] = UserContext(one.user_id, one.groups, one.version, more)
        return replace(self, user_contexts=known)

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
    """The entry that ends the record of each booking of a slot that was called off."""
    at, by = (slot.changed_at, None) if slot.cancellation is None else astuple(slot.cancellation)
    return HistoryEntry(at, by, BookingAction.CANCELLED, BookingStatus.CANCELLED)
