"""Bookings with their histories, and waitlist entries.

The history is part of the booking, so that an entry is written together with its change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import NewType

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.facts import attribute, attributes_of, fact
from slotlock.domain.shared.value_object import Stored, value_object
from slotlock.domain.users.user import Caller, UserId

SlotId = NewType("SlotId", str)
BookingId = NewType("BookingId", str)
WaitlistEntryId = NewType("WaitlistEntryId", str)


class BookingStatus(DescribedEnum):
    """Whether a booking occupies a place."""

    HELD = (
        "held",
        "The booking is a hold. It occupies a place until `heldUntil` unless it is confirmed.",
    )
    CONFIRMED = "confirmed", "The booking occupies a place."
    CANCELLED = "cancelled", "The booking was cancelled or moved, or its slot was cancelled."
    EXPIRED = "expired", "The booking was a hold and expired."

    @property
    def is_live(self) -> bool:
        """Whether the booking occupies a place."""
        return self in LIVE_STATUSES


# Those of bookings that occupy a place.
LIVE_STATUSES = (BookingStatus.HELD, BookingStatus.CONFIRMED)


class BookingAction(DescribedEnum):
    """An action on a booking."""

    BOOKED = "booked", "The user or someone else booked a place."
    HELD = "held", "The user or someone else placed a hold."
    PROMOTED = "promoted", "The waiting list booked a free place for its first user."
    OFFERED = "offered", "The waiting list placed a hold for its first user."
    CONFIRMED = "confirmed", "A hold was confirmed."
    EXTENDED = "extended", "A hold was extended."
    MOVED = "moved", "The booking was moved to another slot."
    CANCELLED = "cancelled", "The booking was cancelled, or its slot was cancelled."
    EXPIRED = "expired", "A hold expired."
    CHECKED_IN = "checked_in", "An organizer checked the user in."
    CHECK_IN_UNDONE = "check_in_undone", "An organizer took the check-in back."
    NO_SHOW = "no_show", "An organizer marked the booking as a no-show."
    NO_SHOW_UNDONE = "no_show_undone", "An organizer took the no-show back."
    # Reported live, and in no history: the entry of a waiting list ended, or the slot was edited.
    WAITLIST_LEFT = (
        "waitlist_left",
        "The user's waiting list entry ended without a booking. Only live events have this action.",
    )
    SLOT_EDITED = (
        "slot_edited",
        "The time, the place or the staff of the slot changed. Only live events have this action.",
    )
    # An action of a newer version.
    OTHER = "other", "The action is one of a newer version, which this server does not know."


class MadeAs(DescribedEnum):
    """As what somebody made a booking for a user, if neither as the user nor as a teammate."""

    GUARDIAN = "guardian", "A guardian of the user made the booking."
    LEADER = "leader", "Somebody who leads the slot made the booking."
    ORGANIZER = "organizer", "An organizer made the booking."
    DRAW = "draw", "A draw gave the place. Its organizer is the booker."


class Attendance(DescribedEnum):
    """Whether the user of a booking came."""

    NOT_RECORDED = "not_recorded", "Neither a check-in nor a no-show is recorded."
    CHECKED_IN = "checked_in", "An organizer checked the user in."
    NO_SHOW = "no_show", "An organizer marked the booking as a no-show: the user did not come."


# The attendance after each action that records it; other actions leave it as it is.
ATTENDANCE_AFTER = {
    BookingAction.CHECKED_IN: Attendance.CHECKED_IN,
    BookingAction.CHECK_IN_UNDONE: Attendance.NOT_RECORDED,
    BookingAction.NO_SHOW: Attendance.NO_SHOW,
    BookingAction.NO_SHOW_UNDONE: Attendance.NOT_RECORDED,
}


class BookingLimit(DescribedEnum):
    """A limit on bookings that organizers can override for a user.

    `overriddenRefusals` names it as the refusal does that members get.
    """

    SLOT_STARTED = "slot_started", "Bookings do not change after the slot has started."
    CANCEL_CUTOFF = (
        "cancel_cutoff",
        "Members cannot cancel a booking after the cut-off.",
        "CUTOFF_PASSED",
    )
    ONE_OF_CHOICE = (
        "one_of_choice",
        "A user has at most one booking among the slots of a choice group.",
        "LIMIT_REACHED",
    )
    NOT_YET_OPEN = "not_yet_open", "A campaign takes no bookings before it opens."
    CLOSED = "closed", "A campaign takes no bookings after it closes or while it is unpublished."
    NOT_ELIGIBLE = (
        "not_eligible",
        "A campaign or a slot takes bookings of its groups only.",
        "NOT_ELIGIBLE",
        True,
    )
    EMAIL_NOT_VERIFIED = (
        "email_not_verified",
        "A campaign or the site wants a verified e-mail address.",
        "EMAIL_NOT_VERIFIED",
        True,
    )
    MAX_BOOKINGS = (
        "max_bookings",
        "A campaign limits the number of bookings per user.",
        "LIMIT_REACHED",
    )
    TIME_CONFLICT = (
        "time_conflict",
        "The bookings of a user in campaigns that forbid it must not overlap.",
    )
    GROUP_FULL = "group_full", "A slot limits the number of places per group."
    NO_SHOWS = (
        "no_shows",
        "A campaign takes no bookings of a user with too many no-shows for some days.",
        "TOO_MANY_NO_SHOWS",
        True,
    )
    HOLD_COOLDOWN = (
        "hold_cooldown",
        "A slot lets a user hold a place again only some time after an unconfirmed hold.",
    )
    # A limit of a newer version.
    OTHER = "other", "The limit is one of a newer version, which this server does not know.", ""

    def __init__(
        self,
        _value: str,
        _description: str = "",
        refusal_code: str | None = None,
        is_of_user: bool = False,
    ) -> None:
        # Of the refusal that members get: its name, except for limits that are stored under another
        # one. A limit of a newer version has none.
        self.refusal_code = self.name if refusal_code is None else refusal_code
        # Whether it rules a user out in all slots of a campaign alike.
        self.is_of_user = is_of_user


@value_object
class HistoryEntry:
    """One change of a booking. `by` is None for the waiting list and for expiry.

    `meeting_start` is the meeting whose attendance it records, in a slot with several; None for all
    meetings.
    """

    at: datetime
    by: UserId | None
    action: BookingAction
    status: BookingStatus
    held_until: datetime | None = None
    overridden_limits: tuple[BookingLimit, ...] = ()
    meeting_start: datetime | None = None


@value_object
class MeetingAttendance:
    """Whether the user of a booking came to a meeting; `entry` records it, if anything does."""

    meeting: Meeting
    entry: HistoryEntry | None

    @property
    def attendance(self) -> Attendance:
        """Whether the user came."""
        return ATTENDANCE_AFTER[self.entry.action] if self.entry else Attendance.NOT_RECORDED

    @property
    def check_in(self) -> HistoryEntry | None:
        """The entry of the check-in; None if the user is not checked in."""
        return self.entry if self.attendance is Attendance.CHECKED_IN else None


# The limits that depend on the other bookings of a user.
OTHER_BOOKING_LIMITS = (
    BookingLimit.ONE_OF_CHOICE,
    BookingLimit.MAX_BOOKINGS,
    BookingLimit.TIME_CONFLICT,
)


@value_object
class BookingRef:
    """The slot and the id of another booking."""

    slot_id: SlotId
    booking_id: BookingId


@value_object
class Booking:
    """The booking of one user in one slot, with its whole history.

    A document has only those of its declared attributes that differ from their defaults. Only the
    user, the booker and organizers see the `shown` ones. A new one comes last.

    `groups` are the user's groups at the time of booking, if the slot depends on groups.
    `waitlisted_by` is the organizer who put the user on the waiting list; None for the user.
    `made_as` is None for a booking that its booker manages, whatever they are now.
    """

    id: BookingId
    slot_id: SlotId
    user_id: UserId
    history: tuple[HistoryEntry, ...]
    waited_since: datetime | None = fact(
        default=None,
        shown="When the user joined the waiting list that led to the booking.",
    )
    moved_from: BookingRef | None = attribute(
        "movedFrom", default=None, shown="The booking that was moved to this one."
    )
    moved_to: BookingRef | None = attribute(
        "movedTo", default=None, shown="The booking that this one was moved to."
    )
    groups: tuple[str, ...] = ()
    waitlisted_by: UserId | None = attribute("waitlistedBy", default=None)
    made_as: MadeAs | None = fact(
        default=None,
        shown="As what somebody made the booking; null if it was the user, a teammate or the "
        "waiting list.",
    )
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

    def is_managed_by(self, caller: Caller) -> bool:
        """Return whether the caller sees all of it and may change it.

        These are its user and their guardians, all organizers, and its booker: a teammate, and a
        leader while they lead the slot. A former guardian or organizer has no part in it.
        """
        if caller.is_organizer or caller.user_id == self.user_id or self.user_id in caller.acts_for:
            return True
        if caller.user_id != self.made_by:
            return False
        return self.made_as is None or (
            self.made_as is MadeAs.LEADER and self.slot_id in caller.leads
        )

    def is_led_by(self, caller: Caller) -> bool:
        """Return whether the caller records its attendance and sees it in rosters."""
        return caller.is_organizer or self.slot_id in caller.leads

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
        """Whether the user came, of several meetings to at least one."""
        if self.check_in is not None:
            return Attendance.CHECKED_IN
        return Attendance.NOT_RECORDED if self.no_show is None else Attendance.NO_SHOW

    @property
    def check_in(self) -> HistoryEntry | None:
        """The latest check-in that counts; None if the user is not checked in."""
        return self._latest_attendance_entry(BookingAction.CHECKED_IN)

    @property
    def no_show(self) -> HistoryEntry | None:
        """The latest no-show that counts; None if the user came to a meeting or missed none."""
        if self.check_in is not None:
            return None
        return self._latest_attendance_entry(BookingAction.NO_SHOW)

    def attendance_at(self, meetings: Sequence[Meeting]) -> tuple[MeetingAttendance, ...]:
        """Return whether the user came to each of these meetings of the slot."""
        counting = self._attendance_entries()
        of_all = counting.get(None)
        return tuple(
            MeetingAttendance(meeting, counting.get(meeting.start, of_all)) for meeting in meetings
        )

    def _latest_attendance_entry(self, action: BookingAction) -> HistoryEntry | None:
        entries = reversed(self._attendance_entries().values())
        return next((entry for entry in entries if entry.action is action), None)

    def _attendance_entries(self) -> dict[datetime | None, HistoryEntry]:
        """Return the entries that count by their meetings, the oldest first.

        An entry counts until a later one is about the same meeting, or about all of them.
        """
        counting: dict[datetime | None, HistoryEntry] = {}
        for entry in self.history:
            if entry.action in ATTENDANCE_AFTER:
                if entry.meeting_start is None:
                    counting.clear()
                counting.pop(entry.meeting_start, None)
                counting[entry.meeting_start] = entry
        return counting

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


BOOKING_FIELDS = tuple(each for each in attributes_of(Booking).values() if each.is_declared)


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
