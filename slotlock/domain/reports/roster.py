"""Rosters: who has a place in a slot, and how the slot's places add up, as organisers keep them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.history import BookingLimit, BookingStatus
from slotlock.domain.booking.promotion import as_of
from slotlock.domain.booking.slot import Slot, SlotStatus, cancellation_entry
from slotlock.domain.users.user import UserId


@dataclass(frozen=True, slots=True)
class RosterUser:
    """As much of a person as a roster tells."""

    name: str
    email: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RosterRow:
    """One booking: its person, and how they came by the place.

    `groups` are those that count for the booking, else those that the person has. `made_by` is the
    name of whoever made it for them, None when they did or the waiting list.
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


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """Places and people. `free` is what somebody could book now: not what others wait for."""

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


@dataclass(frozen=True, slots=True)
class Roster:
    """The roster of a slot, in the order of booking."""

    slot: Slot
    rows: tuple[RosterRow, ...]
    counts: PlaceCounts

    @property
    def counts_toward_campaign(self) -> PlaceCounts:
        """What it adds to a campaign: nobody can have the places of drafts and called-off slots."""
        if self.slot.status is SlotStatus.PUBLISHED:
            return self.counts
        return PlaceCounts(cancelled=self.counts.cancelled)


def user_ids_in(slot: Slot) -> set[UserId]:
    """Everybody whose name a roster needs."""
    makers = {booking.made_by for booking in slot.bookings if booking.made_by is not None}
    return makers | {booking.user_id for booking in slot.bookings}


def build_roster(slot: Slot, users: Mapping[UserId, RosterUser], now: datetime) -> Roster:
    """The roster as a reader sees it: holds that ran out are gone, called-off places cancelled.

    The slot brings all its bookings. A person who is not among the people has no name.
    """
    slot = as_of(slot, now)
    rows = tuple(_build_row(slot, booking, users) for booking in slot.bookings)
    took = Counter(row.status for row in rows)
    counts = PlaceCounts(
        places=slot.capacity,
        confirmed=took[BookingStatus.CONFIRMED],
        held=took[BookingStatus.HELD],
        cancelled=took[BookingStatus.CANCELLED],
        waiting=slot.waitlist_length,
        free=0 if slot.status is SlotStatus.CANCELLED else max(slot.remaining, 0),
    )
    return Roster(slot, rows, counts)


def _build_row(slot: Slot, booking: Booking, users: Mapping[UserId, RosterUser]) -> RosterRow:
    if slot.cancellation is not None:
        booking = booking.with_entry(cancellation_entry(slot))
    person = users.get(booking.user_id)
    made_by = users.get(booking.made_by) if booking.made_by else None
    overridden_limits = dict.fromkeys(
        limit for entry in booking.history for limit in entry.overridden_limits
    )
    return RosterRow(
        name=person.name if person else "",
        email=person.email if person else "",
        groups=booking.groups or (person.groups if person else ()),
        status=booking.status,
        held_until=booking.held_until if booking.status is BookingStatus.HELD else None,
        created_at=booking.created_at,
        made_by=made_by.name if made_by and made_by != person else None,
        waited_since=booking.waited_since,
        overridden_limits=tuple(overridden_limits),
    )
