"""Rosters for organizers: the bookings of a slot with their users, and counts of its places."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from slotlock.domain.booking.booking import (
    Attendance,
    Booking,
    BookingLimit,
    BookingStatus,
    WaitlistEntry,
)
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import UserId


@value_object
class RosterUser:
    """The fields of a user that a roster shows."""

    name: str
    email: str
    groups: tuple[str, ...] = ()


@value_object
class RosterRow:
    """One booking of the roster.

    `groups` are the groups recorded in the booking, or else the user's current groups. `made_by` is
    the name of the other user who made the booking, None if there is none.
    """

    name: str
    email: str
    groups: tuple[str, ...]
    status: BookingStatus
    held_until: datetime | None
    created_at: datetime
    made_by: str | None
    waited_since: datetime | None
    overridden_limits: tuple[BookingLimit, ...]
    attendance: Attendance = Attendance.NOT_RECORDED
    checked_in_at: datetime | None = None


@value_object
class WaitingRow:
    """One entry of the waiting list.

    `position` counts from 1. `waitlisted_by` is the name of the organizer who put the user on the
    list, None if the user joined.
    """

    position: int
    name: str
    email: str
    groups: tuple[str, ...]
    since: datetime
    waitlisted_by: str | None


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
    """The roster of a slot, with rows in the order of booking, and its waiting list in order."""

    slot: Slot
    changed_at: datetime
    rows: tuple[RosterRow, ...]
    waiting_rows: tuple[WaitingRow, ...]
    counts: PlaceCounts

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


def build_roster(state: SlotState, users: Mapping[UserId, RosterUser], now: datetime) -> Roster:
    """Return the roster of a slot that was loaded with all its bookings.

    Expired holds are left out; bookings of a cancelled slot are shown as cancelled. A user who is
    missing in `users` has an empty name.
    """
    state = as_of(state, now)
    slot = state.slot
    rows = tuple(_build_row(slot, booking, users) for booking in state.bookings)
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
        _build_waiting_row(position, entry, users)
        for position, entry in enumerate(state.waitlist, 1)
    )
    return Roster(slot, state.changed_at, rows, waiting_rows, counts)


def _build_waiting_row(
    position: int, entry: WaitlistEntry, users: Mapping[UserId, RosterUser]
) -> WaitingRow:
    user = users.get(entry.user_id)
    organizer = users.get(entry.waitlisted_by) if entry.waitlisted_by else None
    return WaitingRow(
        position,
        name=user.name if user else "",
        email=user.email if user else "",
        groups=entry.groups or (user.groups if user else ()),
        since=entry.since,
        waitlisted_by=organizer.name if organizer else None,
    )


def _build_row(slot: Slot, booking: Booking, users: Mapping[UserId, RosterUser]) -> RosterRow:
    if slot.cancellation is not None:
        booking = booking.with_entry(slot.cancellation.to_history_entry())
    user = users.get(booking.user_id)
    made_by = users.get(booking.made_by) if booking.made_by else None
    overridden_limits = dict.fromkeys(
        limit for entry in booking.history for limit in entry.overridden_limits
    )
    return RosterRow(
        name=user.name if user else "",
        email=user.email if user else "",
        groups=booking.groups or (user.groups if user else ()),
        status=booking.status,
        held_until=booking.held_until if booking.status is BookingStatus.HELD else None,
        created_at=booking.created_at,
        made_by=made_by.name if made_by and made_by != user else None,
        waited_since=booking.waited_since,
        overridden_limits=tuple(overridden_limits),
        attendance=booking.attendance,
        checked_in_at=booking.check_in.at if booking.check_in else None,
    )
