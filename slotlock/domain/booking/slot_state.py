"""The state of a slot: its version, its counts, and the loaded bookings and waitlist entries."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    EndedWaitlistEntry,
    SlotId,
    WaitlistEntry,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_change import EMPTY_CHANGE, SlotChange
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.shared.value_object import forwarded, value_object
from slotlock.domain.users.user import UserId


@value_object
class SlotState:
    """A slot with as many of its bookings and waitlist entries as its reader asked for.

    `version` grows by one with every write; the last write was at `changed_at`.
    `booked_count` counts every live booking, expired holds included until they are released.
    `bookings` contains the live bookings that were asked for, the expired holds, and the booking
    of a slot with one place. `waitlist` begins with the first `loaded_waitlist` entries; entries
    of users that were asked for may follow. The cost of a decision does not grow with the roster.
    `group_counts` has the number of live bookings per group, where groups are limited; None if
    they became limited after the slot was loaded.
    `next_deadline` is when the sweeper has to process the slot next, because a hold expires or a
    waiting list ends.
    `ended_holds` has when the last unconfirmed hold of a user ended, where the slot has a cooldown.
    `change` is what decisions have changed since the slot was loaded, and all that is written.
    """

    slot: Slot
    version: int
    changed_at: datetime
    booked_count: int = 0
    bookings: tuple[Booking, ...] = ()
    waitlist: tuple[WaitlistEntry, ...] = ()
    loaded_waitlist: int = 0
    waitlist_length: int = 0
    group_counts: Mapping[str, int] | None = field(default_factory=dict)
    next_deadline: datetime | None = None
    change: SlotChange = EMPTY_CHANGE
    # Only decisions need it: it is no part of a state that is compared or stored with an outcome.
    ended_holds: Mapping[UserId, datetime] = field(default_factory=dict, compare=False)

    id = forwarded("slot.id", SlotId)

    @property
    def remaining(self) -> int:
        """The number of free places."""
        return self.slot.capacity - self.booked_count

    @property
    def is_booked(self) -> bool:
        """Whether there is no free place."""
        return self.booked_count >= self.slot.capacity

    def exceeded_group_limit(self, groups: Sequence[str]) -> GroupLimit | None:
        """Return the first of these groups whose limit is reached, with the limit."""
        counts = self.group_counts or {}
        for group in groups if self.slot.limits_groups else ():
            limit = self.slot.limit_of_group(group)
            if limit is not None and counts.get(group, 0) >= limit:
                return GroupLimit(group, limit)
        return None

    def booking_of(self, user_id: UserId) -> Booking | None:
        """Return the live booking of a user, if it was loaded."""
        for booking in self.bookings:
            if booking.user_id == user_id:
                return booking
        return None

    def booking_by_id(self, booking_id: BookingId) -> Booking | None:
        """Return the live booking with this id, if it was loaded."""
        for booking in self.bookings:
            if booking.id == booking_id:
                return booking
        return None

    def waitlist_entry_of(self, user_id: UserId) -> WaitlistEntry | None:
        """Return the waitlist entry of a user, if it was loaded."""
        for entry in self.waitlist:
            if entry.user_id == user_id:
                return entry
        return None

    def with_booking(self, booking: Booking) -> "SlotState":
        """Return the state with one more booking."""
        # Not `replace`, which takes twice as long. The same applies to `with_version`.
        return SlotState(
            self.slot,
            self.version,
            self.changed_at,
            self.booked_count + 1,
            (*self.bookings, booking),
            self.waitlist,
            self.loaded_waitlist,
            self.waitlist_length,
            self._with_group_counts(booking.groups, 1) if booking.groups else self.group_counts,
            self.next_deadline,
            self.change.with_added(booking),
            self.ended_holds,
        )

    def with_version(
        self, version: int, changed_at: datetime, slot: Slot, next_deadline: datetime | None
    ) -> "SlotState":
        """Return the state with what its write gives it."""
        return SlotState(
            slot,
            version,
            changed_at,
            self.booked_count,
            self.bookings,
            self.waitlist,
            self.loaded_waitlist,
            self.waitlist_length,
            self.group_counts,
            next_deadline,
            self.change,
            self.ended_holds,
        )

    def with_changed_booking(self, booking: Booking) -> "SlotState":
        """Return the state with the booking of this id replaced."""
        return replace(
            self,
            bookings=tuple(booking if b.id == booking.id else b for b in self.bookings),
            change=self.change.with_changed(booking),
        )

    def without_bookings(self, *ended: Booking) -> "SlotState":
        """Return the state without these bookings, which have ended."""
        ended_ids = {booking.id for booking in ended}
        groups = [group for booking in ended for group in booking.groups]
        return replace(
            self,
            booked_count=self.booked_count - len(ended_ids),
            group_counts=self._with_group_counts(groups, -1),
            bookings=tuple(b for b in self.bookings if b.id not in ended_ids),
            change=self.change.with_ended(*ended),
            ended_holds=self._with_ended_holds(ended),
        )

    def _with_ended_holds(self, ended: Sequence[Booking]) -> Mapping[UserId, datetime]:
        if not self.slot.hold_cooldown_minutes:
            return self.ended_holds
        times = {each.user_id: each.ended_at for each in ended if each.is_unconfirmed_hold}
        return {**self.ended_holds, **{user: at for user, at in times.items() if at is not None}}

    def _with_group_counts(self, groups: Sequence[str], delta: int) -> Mapping[str, int] | None:
        if self.group_counts is None or not self.slot.limits_groups:
            return self.group_counts
        counts = Counter(self.group_counts)
        for group in groups:
            counts[group] += delta
        return dict(counts)

    def without_waitlist_entry(self, entry: WaitlistEntry) -> "SlotState":
        """Return the state without this entry, which becomes a booking."""
        index = self.waitlist.index(entry)
        return replace(
            self,
            waitlist=self.waitlist[:index] + self.waitlist[index + 1 :],
            loaded_waitlist=self.loaded_waitlist - (index < self.loaded_waitlist),
            waitlist_length=self.waitlist_length - 1,
            change=self.change.with_removed_entries(entry),
        )

    def with_waitlist_entry(self, entry: WaitlistEntry) -> "SlotState":
        """Return the state with one more entry at the end of the waiting list."""
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
    ) -> "SlotState":
        """Return the state without this entry, which ends without a booking.

        `by` is the user who ended it; None for the waiting list itself.
        """
        ended = EndedWaitlistEntry(entry, now, by)
        change = self.change.with_ended_entries(ended)
        return replace(self.without_waitlist_entry(entry), change=change)

    def without_waitlist(self, now: datetime, by: UserId) -> "SlotState":
        """Return the state with an empty waiting list: all its entries end without a booking."""
        ended = (EndedWaitlistEntry(entry, now, by) for entry in self.waitlist)
        return replace(
            self,
            waitlist=(),
            loaded_waitlist=0,
            waitlist_length=0,
            change=self.change.with_ended_entries(*ended),
        )
