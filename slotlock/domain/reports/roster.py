"""Rosters for organizers: the bookings of a slot with their users, and counts of its places."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import (
    Attendance,
    Booking,
    BookingStatus,
    WaitlistEntry,
)
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.periods import NamedPeriods, Period, find_all_periods
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.groups import class_of, in_natural_order
from slotlock.domain.users.user import UserId, list_name, split_name


@value_object
class RosterUser:
    """The fields of a user that a roster shows; only lists of users have the telephone.

    `guardians` are the names of the users who act for this one.
    """

    name: str
    login_name: str
    groups: tuple[str, ...] = ()
    family_name: str | None = None
    phone: str | None = None
    guardians: tuple[str, ...] = ()

    @property
    def split_name(self) -> tuple[str, str]:
        """The family name and the given name, as far as a file of users has split the name."""
        return split_name(self.name, self.family_name)

    @property
    def order(self) -> tuple[object, ...]:
        """The place in lists: by class, and in it by family name."""
        name = sort_key(list_name(self.name, self.family_name))
        return in_natural_order(class_of(self.groups)), name, self.login_name


@value_object
class RosterRow:
    """One booking of the roster, or one entry of the waiting list, which has no booking.

    `groups` are the groups recorded in the booking, or else the user's current groups. `made_by` is
    the name of the other user who made the booking, or of the organizer who put the user on the
    list; None if there is none. `meeting_attendances` are those of the meetings of a slot with
    several, in order. `position` is that on the waiting list, counted from 1. `periods` are those
    of a school day in which the slot is. `guardians` are names.
    """

    slot: Slot
    booking: Booking | None = None
    name: str = ""
    login_name: str = ""
    groups: tuple[str, ...] = ()
    made_by: str | None = None
    waited_since: datetime | None = None
    meeting_attendances: tuple[Attendance, ...] = ()
    position: int | None = None
    family_name: str | None = None
    periods: tuple[NamedPeriods, ...] = ()
    guardians: tuple[str, ...] = ()

    @property
    def split_name(self) -> tuple[str, str]:
        """The family name and the given name, as far as a file of users has split the name."""
        return split_name(self.name, self.family_name)

    @property
    def list_name(self) -> str:
        """The name as lists show it: `Becker, Björn`."""
        return list_name(self.name, self.family_name)

    @property
    def status(self) -> BookingStatus | None:
        """The status of the booking; None for an entry of the waiting list."""
        return self.booking.status if self.booking else None


@value_object
class PlaceCounts:
    """Counts of places and users; `free` excludes places promised to the waiting list."""

    places: int = 0
    confirmed: int = 0
    held: int = 0
    cancelled: int = 0
    waiting: int = 0
    free: int = 0

    def __add__(self, other: "PlaceCounts") -> "PlaceCounts":
        return PlaceCounts(
            self.places + other.places,
            self.confirmed + other.confirmed,
            self.held + other.held,
            self.cancelled + other.cancelled,
            self.waiting + other.waiting,
            self.free + other.free,
        )


@value_object
class Roster:
    """The roster of a slot, with rows by family name, and its waiting list in order."""

    slot: Slot
    changed_at: datetime
    rows: tuple[RosterRow, ...]
    waiting_rows: tuple[RosterRow, ...]
    counts: PlaceCounts
    periods: tuple[NamedPeriods, ...] = ()

    @property
    def places(self) -> tuple[RosterRow, ...]:
        """A row for each place: those taken, and empty ones."""
        taken = [row for row in self.rows if row.status and row.status.is_live]
        return (*taken, *[RosterRow(self.slot)] * (self.slot.capacity - len(taken)))

    @property
    def counts_toward_campaign(self) -> PlaceCounts:
        """Return the counts to add to a campaign's: places of unpublished slots do not count."""
        if self.slot.status is SlotStatus.PUBLISHED:
            return self.counts
        return PlaceCounts(cancelled=self.counts.cancelled)


def user_ids_in(state: SlotState) -> set[UserId]:
    """Return the ids of all users whose names the roster needs."""
    creators = {booking.made_by for booking in state.bookings}
    organizers = {entry.waitlisted_by for entry in state.waitlist}
    others = {user_id for user_id in creators | organizers if user_id is not None}
    waiting = {entry.user_id for entry in state.waitlist}
    return others | waiting | {booking.user_id for booking in state.bookings}


def build_roster(
    state: SlotState,
    users: Mapping[UserId, RosterUser],
    now: datetime,
    periods: Sequence[Period] = (),
) -> Roster:
    """Return the roster of a slot that was loaded with all its bookings.

    Expired holds are left out; bookings of a cancelled slot are shown as cancelled. A user who is
    missing in `users` has an empty name. `periods` are all of the school day.
    """
    state = as_of(state, now)
    slot = state.slot
    found = find_all_periods(slot.all_meetings, slot.time_zone, periods)
    unordered = [_build_row(slot, booking, users) for booking in state.bookings]
    in_order = sorted(unordered, key=lambda row: (sort_key(row.list_name), row.name))
    rows = tuple(replace(row, periods=found) for row in in_order)
    count_by_status = Counter(row.status for row in rows)
    counts = PlaceCounts(
        places=slot.capacity,
        confirmed=count_by_status[BookingStatus.CONFIRMED],
        held=count_by_status[BookingStatus.HELD],
        cancelled=count_by_status[BookingStatus.CANCELLED],
        waiting=state.waitlist_length,
        free=0 if slot.status is SlotStatus.CANCELLED else max(state.remaining, 0),
    )
    waiting_rows = tuple(
        replace(_build_waiting_row(slot, position, entry, users), periods=found)
        for position, entry in enumerate(state.waitlist, 1)
    )
    return Roster(slot, state.changed_at, rows, waiting_rows, counts, found)


def _build_waiting_row(
    slot: Slot, position: int, entry: WaitlistEntry, users: Mapping[UserId, RosterUser]
) -> RosterRow:
    user = users.get(entry.user_id)
    organizer = users.get(entry.waitlisted_by) if entry.waitlisted_by else None
    return RosterRow(
        slot,
        name=user.name if user else "",
        login_name=user.login_name if user else "",
        groups=entry.groups or (user.groups if user else ()),
        made_by=organizer.name if organizer else None,
        waited_since=entry.since,
        position=position,
        family_name=user.family_name if user else None,
        guardians=user.guardians if user else (),
    )


def _build_row(slot: Slot, booking: Booking, users: Mapping[UserId, RosterUser]) -> RosterRow:
    if slot.cancellation is not None:
        booking = booking.with_entry(slot.cancellation.to_history_entry())
    user = users.get(booking.user_id)
    made_by = users.get(booking.made_by) if booking.made_by else None
    return RosterRow(
        slot,
        booking,
        name=user.name if user else "",
        login_name=user.login_name if user else "",
        groups=booking.groups or (user.groups if user else ()),
        made_by=made_by.name if made_by and made_by != user else None,
        waited_since=booking.waited_since,
        meeting_attendances=tuple(
            attended.attendance for attended in booking.attendance_at(slot.meetings)
        ),
        family_name=user.family_name if user else None,
        guardians=user.guardians if user else (),
    )
