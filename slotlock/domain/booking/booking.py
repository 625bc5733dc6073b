"""Bookings with their histories, and waitlist entries.

The history is part of the booking, so that an entry is written together with its change.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import NewType

from slotlock.domain.shared.values import Stored, value_object
from slotlock.domain.users.user import UserId

SlotId = NewType("SlotId", str)
BookingId = NewType("BookingId", str)
WaitlistEntryId = NewType("WaitlistEntryId", str)


class BookingStatus(StrEnum):
    """The status of a booking."""

    HELD = "held"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_live(self) -> bool:
        """Whether the booking occupies a place."""
        return self in (BookingStatus.HELD, BookingStatus.CONFIRMED)


class BookingAction(StrEnum):
    """The action that an entry of the history records."""

    BOOKED = "booked"
    HELD = "held"
    PROMOTED = "promoted"
    OFFERED = "offered"
    CONFIRMED = "confirmed"
    EXTENDED = "extended"
    MOVED = "moved"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CHECKED_IN = "checked_in"
    CHECK_IN_UNDONE = "check_in_undone"
    NO_SHOW = "no_show"
    NO_SHOW_UNDONE = "no_show_undone"
    # Reported live, and in no history: the entry of a waiting list ended, or the slot was edited.
    WAITLIST_LEFT = "waitlist_left"
    SLOT_EDITED = "slot_edited"
    # An action of a newer version.
    OTHER = "other"


class Attendance(StrEnum):
    """Whether the user of a booking came."""

    NOT_RECORDED = "not_recorded"
    CHECKED_IN = "checked_in"
    NO_SHOW = "no_show"


# The attendance after each action that records it; other actions leave it as it is.
ATTENDANCE_AFTER = {
    BookingAction.CHECKED_IN: Attendance.CHECKED_IN,
    BookingAction.CHECK_IN_UNDONE: Attendance.NOT_RECORDED,
    BookingAction.NO_SHOW: Attendance.NO_SHOW,
    BookingAction.NO_SHOW_UNDONE: Attendance.NOT_RECORDED,
}


class BookingLimit(StrEnum):
    """A limit that applies to members and that organizers can override."""

    SLOT_STARTED = "slot_started"
    CANCEL_CUTOFF = "cancel_cutoff"
    ONE_OF_CHOICE = "one_of_choice"
    NOT_YET_OPEN = "not_yet_open"
    CLOSED = "closed"
    NOT_ELIGIBLE = "not_eligible"
    MAX_BOOKINGS = "max_bookings"
    TIME_CONFLICT = "time_conflict"
    GROUP_FULL = "group_full"
    NO_SHOWS = "no_shows"
    HOLD_COOLDOWN = "hold_cooldown"
    # A limit of a newer version.
    OTHER = "other"


@value_object
class HistoryEntry:
    """One change of a booking. `by` is None for the waiting list and for expiry."""

    at: datetime
    by: UserId | None
    action: BookingAction
    status: BookingStatus
    held_until: datetime | None = None
    overridden_limits: tuple[BookingLimit, ...] = ()


# The limits that depend on the other bookings of a user.
OTHER_BOOKING_LIMITS = (
    BookingLimit.ONE_OF_CHOICE,
    BookingLimit.MAX_BOOKINGS,
    BookingLimit.TIME_CONFLICT,
)


@value_object
class Booking:
    """The booking of one user in one slot, with its whole history.

    `groups` are the user's groups at the time of booking, if the slot depends on groups.
    `waitlisted_by` is the organizer who put the user on the waiting list; None for the user.
    """

    id: BookingId
    slot_id: SlotId
    user_id: UserId
    history: tuple[HistoryEntry, ...]
    waited_since: datetime | None = None
    moved_from: "BookingRef | None" = None
    moved_to: "BookingRef | None" = None
    groups: tuple[str, ...] = ()
    waitlisted_by: UserId | None = None
    stored: Stored = field(default=None, compare=False, repr=False)

    @property
    def status(self) -> BookingStatus:
        """The status after the last entry of the history."""
        return self.history[-1].status

    @property
    def held_until(self) -> datetime | None:
        """When the hold expires or expired; None for a booking that is not a hold."""
        return self.history[-1].held_until

    @property
    def created_at(self) -> datetime:
        """When the booking was made."""
        return self.history[0].at

    @property
    def made_by(self) -> UserId | None:
        """The user who made the booking; None for the waiting list."""
        return self.history[0].by

    @property
    def ended_at(self) -> datetime | None:
        """When the booking ended; None while it is live."""
        return None if self.status.is_live else self.history[-1].at

    @property
    def was_forced(self) -> bool:
        """Whether an organizer made it although another booking of the user rules it out."""
        return any(
            limit in OTHER_BOOKING_LIMITS
            for entry in self.history
            for limit in entry.overridden_limits
        )

    @property
    def attendance(self) -> Attendance:
        """Whether the user came, as the history records it."""
        recorded = self._attendance_entry
        return Attendance.NOT_RECORDED if recorded is None else ATTENDANCE_AFTER[recorded.action]

    @property
    def check_in(self) -> HistoryEntry | None:
        """The entry of the check-in that counts; None if the user is not checked in."""
        return self._attendance_entry if self.attendance is Attendance.CHECKED_IN else None

    @property
    def no_show(self) -> HistoryEntry | None:
        """The entry of the no-show that counts; None if the user is not marked as one."""
        return self._attendance_entry if self.attendance is Attendance.NO_SHOW else None

    @property
    def _attendance_entry(self) -> HistoryEntry | None:
        entries = reversed(self.history)
        return next((entry for entry in entries if entry.action in ATTENDANCE_AFTER), None)

    @property
    def is_unconfirmed_hold(self) -> bool:
        """Whether it is a hold that ended without a confirmation; an offer does not count.

        A hold that moved to another slot ended in this one.
        """
        return (
            self.made_by is not None
            and not self.status.is_live
            and len(self.history) > 1
            and self.history[-2].status is BookingStatus.HELD
        )

    def is_expired_at(self, now: datetime) -> bool:
        """Return whether this is a hold that has expired by then."""
        return (
            self.status is BookingStatus.HELD
            and self.held_until is not None
            and self.held_until <= now
        )

    def with_entry(self, entry: HistoryEntry) -> "Booking":
        """Return the booking with one more entry in its history."""
        return replace(self, history=(*self.history, entry))


@value_object
class BookingRef:
    """The slot and the id of another booking."""

    slot_id: SlotId
    booking_id: BookingId


@value_object
class WaitlistEntry:
    """The place of one user in the waiting list of a slot.

    `waitlisted_by` is the organizer who put the user on the list; None for the user.
    """

    id: WaitlistEntryId
    slot_id: SlotId
    user_id: UserId
    since: datetime
    groups: tuple[str, ...] = ()
    waitlisted_by: UserId | None = None
    stored: Stored = field(default=None, compare=False, repr=False)


@value_object
class EndedWaitlistEntry:
    """A waitlist entry that ended without a booking.

    `by` is the user who ended it; None for the waiting list itself.
    """

    entry: WaitlistEntry
    at: datetime
    by: UserId | None

    def to_booking(self) -> Booking:
        """Return the booking that the entry would have become, which ended before it was made."""
        entry, booking_id = self.entry, BookingId(self.entry.id)
        left = HistoryEntry(self.at, self.by, BookingAction.WAITLIST_LEFT, BookingStatus.CANCELLED)
        return Booking(
            booking_id, entry.slot_id, entry.user_id, (left,), entry.since, groups=entry.groups
        )


@value_object
class HistoryChange:
    """An entry and the entry before it; None for the first."""

    before: HistoryEntry | None
    entry: HistoryEntry


def history_changes(history: tuple[HistoryEntry, ...]) -> Iterator[HistoryChange]:
    """Yield the entries of a history with their predecessors, the oldest first."""
    for index, entry in enumerate(history):
        yield HistoryChange(history[index - 1] if index else None, entry)
