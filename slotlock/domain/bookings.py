"""Bookings, the places that people have, and turns in the line of those who wait for one."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NewType

from slotlock.domain.meetings import Meeting
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Entry, Limit
from slotlock.domain.terms import Terms

# The limits that a person's other places set.
RULED_OUT = (Limit.ONE_OF_CHOICE, Limit.MOST_BOOKINGS, Limit.TIME_CONFLICT)

SlotId = NewType("SlotId", str)
BookingId = NewType("BookingId", str)
WaitId = NewType("WaitId", str)


@dataclass(frozen=True, slots=True)
class Booking:
    """One person's place in one slot, with everything that ever happened to it.

    `groups` are those that its person had when it was made, where its slot asks for groups.
    """

    id: BookingId
    slot_id: SlotId
    user_id: UserId
    log: tuple[Entry, ...]
    waited_since: datetime | None = None
    moved_from: "BookingRef | None" = None
    moved_to: "BookingRef | None" = None
    groups: tuple[str, ...] = ()

    @property
    def status(self) -> BookingStatus:
        """Whether it takes a place, and whether for good."""
        return self.log[-1].after

    @property
    def held_until(self) -> datetime | None:
        """When the hold runs out, or ran out; None for one that is no hold."""
        return self.log[-1].held_until

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        return self.log[0].at

    @property
    def made_by(self) -> UserId | None:
        """Who made it; None for the waiting list."""
        return self.log[0].by

    @property
    def ended_at(self) -> datetime | None:
        """When it gave its place back."""
        return None if self.status.takes_a_place else self.log[-1].at

    @property
    def overrode_ever(self) -> bool:
        """Whether an organiser gave it although other places of the person rule it out."""
        return any(limit in RULED_OUT for entry in self.log for limit in entry.overrode)

    def ran_out(self, now: datetime) -> bool:
        """Whether it is a hold whose time is over."""
        return (
            self.status is BookingStatus.HELD
            and self.held_until is not None
            and self.held_until <= now
        )

    def then(self, entry: Entry) -> "Booking":
        """The booking after one more thing happened to it."""
        return replace(self, log=(*self.log, entry))


@dataclass(frozen=True, slots=True)
class BookingRef:
    """Where another booking is found."""

    slot_id: SlotId
    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class Waiting:
    """One person's turn in the waiting list of a slot."""

    id: WaitId
    slot_id: SlotId
    user_id: UserId
    since: datetime
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """A turn in the waiting list that ended without a place: when, and who ended it."""

    waiting: Waiting
    at: datetime
    by: UserId | None


@dataclass(frozen=True, slots=True)
class Place:
    """A booking in another slot, with what of that slot bears on this one."""

    booking: Booking
    choice: str | None
    terms: Terms | None
    meetings: tuple[Meeting, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What a decision needs to know of a person beyond the slot: their groups and other places.

    `version` grows with every booking they make where other bookings count: what was decided on
    these places may be written only while it is the newest.
    """

    user_id: UserId
    groups: tuple[str, ...] = ()
    version: int = 0
    places: tuple[Place, ...] = ()
