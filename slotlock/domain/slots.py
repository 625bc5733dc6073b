"""A slot: its places, and as much of its roster and its line as a decision needs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from slotlock.domain.bookings import Booking, BookingId, Known, Left, Place, SlotId, Waiting
from slotlock.domain.meetings import Meeting
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Deed, Entry
from slotlock.domain.terms import GroupLimit, Terms, limit_of

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
class CalledOff:
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
    `ended` and `left` are what a decision took out. `due` is when the next hold runs out.
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
    taken: int
    location: str | None
    kind: SlotKind
    status: SlotStatus
    version: int
    changed_at: datetime
    hold_minutes: int = 5
    cutoff_minutes: int = 0
    waitlist_capacity: int = 100
    offer_minutes: int | None = None
    choice: str | None = None
    called_off: CalledOff | None = None
    terms: Terms | None = None
    group_limits: tuple[GroupLimit, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    resource: str | None = None
    series_id: SeriesId | None = None
    revision: int = 0
    revised_at: datetime | None = None
    bookings: tuple[Booking, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    heads: int = 0
    waiting_count: int = 0
    group_counts: Mapping[str, int] = field(default_factory=dict)
    known: Mapping[UserId, Known] = field(default_factory=dict)
    due: datetime | None = None
    ended: tuple[Booking, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def remaining(self) -> int:
        """Places left."""
        return self.capacity - self.taken

    @property
    def is_booked(self) -> bool:
        """Whether no place is left."""
        return self.remaining <= 0

    @property
    def cutoff(self) -> datetime:
        """From when on a person can no longer give their place back themselves."""
        cutoff = self.start - timedelta(minutes=self.cutoff_minutes)
        until = self.terms.cancel_until if self.terms else None
        return cutoff if until is None else min(cutoff, until)

    @property
    def times(self) -> tuple[Meeting, ...]:
        """When people meet, in order."""
        return self.meetings or (Meeting(self.start, self.end),)

    @property
    def asks_for_groups(self) -> bool:
        """Whether it matters here which groups people have."""
        return self.terms is not None or bool(self.group_limits)

    @property
    def counts_groups(self) -> bool:
        """Whether only so many of a group may have places here."""
        return bool(self.group_limits or (self.terms and self.terms.group_limits))

    @property
    def looks_elsewhere(self) -> bool:
        """Whether a person's bookings in other slots count here."""
        return self.choice is not None or (self.terms is not None and self.terms.looks_elsewhere)

    @property
    def judges(self) -> bool:
        """Whether anything of a person beyond the slot matters here."""
        return self.asks_for_groups or self.looks_elsewhere

    def full_group(self, groups: Sequence[str]) -> GroupLimit | None:
        """The first of these groups of which nobody more may have a place, with its limit."""
        theirs = self.terms.group_limits if self.terms else ()
        for group in groups if self.counts_groups else ():
            limit = limit_of(group, self.group_limits)
            limit = limit_of(group, theirs) if limit is None else limit
            if limit is not None and self.group_counts.get(group, 0) >= limit:
                return GroupLimit(group, limit)
        return None

    def booking_of(self, user_id: UserId) -> Booking | None:
        """This person's live booking, if they were asked for and have one."""
        return next((b for b in self.bookings if b.user_id == user_id), None)

    def bookings_of(self, user_id: UserId) -> tuple[Booking, ...]:
        """This person's live bookings, of those that were asked for."""
        return tuple(b for b in self.bookings if b.user_id == user_id)

    def booking(self, booking_id: BookingId) -> Booking | None:
        """The live booking of this id, if it was asked for and there is one."""
        return next((b for b in self.bookings if b.id == booking_id), None)

    def waiting_of(self, user_id: UserId) -> Waiting | None:
        """This person's turn in line, if they were asked for and wait."""
        return next((w for w in self.waiting if w.user_id == user_id), None)

    def known_of(self, user_id: UserId) -> Known | None:
        """What is known of this person beyond the slot, if they are at hand and it matters."""
        return self.known.get(user_id)

    def groups_of(self, user_id: UserId) -> tuple[str, ...]:
        """This person's groups, where it matters."""
        known = self.known_of(user_id)
        return known.groups if known and self.asks_for_groups else ()

    def places_of(self, user_id: UserId, now: datetime) -> tuple[Place, ...]:
        """This person's places in other slots that bear on this one, as far as they last now."""
        known = self.known_of(user_id)
        places = known.places if known else ()
        return tuple(place for place in places if not place.booking.ran_out(now))

    def place_of(self, booking: Booking) -> Place:
        """A booking here as the decisions of other slots see it."""
        return Place(booking, self.choice, self.terms, self.times)

    def knowing(self, places: Sequence[Place]) -> "Slot":
        """The slot once these places were given, in another slot where others count as well."""
        if not self.looks_elsewhere:
            return self
        known = dict(self.known)
        for place in places:
            if one := known.get(place.booking.user_id):
                more = (*one.places, place)
                known[one.user_id] = Known(one.user_id, one.groups, one.version, more)
        return replace(self, known=known)

    def adding(self, booking: Booking) -> "Slot":
        """The slot with one more place taken."""
        return replace(
            self,
            taken=self.taken + 1,
            bookings=(*self.bookings, booking),
            group_counts=self._counting(booking.groups, 1),
        )

    def changing(self, booking: Booking) -> "Slot":
        """The slot in which a booking of this id has become so."""
        return replace(
            self, bookings=tuple(booking if b.id == booking.id else b for b in self.bookings)
        )

    def ending(self, *ended: Booking) -> "Slot":
        """The slot with the places of these bookings given back."""
        gone = {booking.id for booking in ended}
        groups = [group for booking in ended for group in booking.groups]
        return replace(
            self,
            taken=self.taken - len(gone),
            group_counts=self._counting(groups, -1),
            bookings=tuple(b for b in self.bookings if b.id not in gone),
            ended=(*self.ended, *ended),
        )

    def _counting(self, groups: Sequence[str], each: int) -> Mapping[str, int]:
        if not self.counts_groups:
            return self.group_counts
        counts = Counter(self.group_counts)
        for group in groups:
            counts[group] += each
        return dict(counts)

    def without_waiting(self, waiting: Waiting) -> "Slot":
        """The slot with one person fewer in line."""
        place = self.waiting.index(waiting)
        return replace(
            self,
            waiting=self.waiting[:place] + self.waiting[place + 1 :],
            heads=self.heads - (place < self.heads),
            waiting_count=self.waiting_count - 1,
        )


def calling_off(slot: Slot) -> Entry:
    """The entry that ends the record of each booking of a slot that was called off."""
    at, by = (slot.changed_at, None) if slot.called_off is None else astuple(slot.called_off)
    return Entry(at, by, Deed.CANCELLED, BookingStatus.CANCELLED)
