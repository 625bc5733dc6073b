"""A slot, its places and the bookings that take them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from slotlock.domain.people import Caller, UserId

SlotId = NewType("SlotId", str)
BookingId = NewType("BookingId", str)


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


class BookingStatus(StrEnum):
    """Whether a booking takes a place."""

    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Booking:
    """One person's place in one slot."""

    id: BookingId
    slot_id: SlotId
    user_id: UserId
    status: BookingStatus
    created_at: datetime
    cancelled_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot as far as a decision needs it.

    `taken` counts every live booking. `bookings` holds those that were asked for and few more: the
    live bookings of the people at hand, and the booker of a one-place slot. What one decision costs
    does not grow with the roster. `version` grows by one with every write.
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
    bookings: tuple[Booking, ...] = ()

    @property
    def remaining(self) -> int:
        """Places left."""
        return self.capacity - self.taken

    @property
    def is_booked(self) -> bool:
        """Whether no place is left."""
        return self.remaining <= 0

    def booking_of(self, user_id: UserId) -> Booking | None:
        """This person's live booking, if they were asked for and have one."""
        return next((b for b in self.bookings if b.user_id == user_id), None)


@dataclass(frozen=True, slots=True)
class Availability:
    """What everyone may see of a slot's places; a higher `version` replaces a lower one."""

    slot_id: SlotId
    version: int
    capacity: int
    remaining: int
    status: SlotStatus
    at: datetime


def availability(slot: Slot) -> Availability:
    """The public state of a slot's places as of its last write."""
    return Availability(
        slot.id, slot.version, slot.capacity, slot.remaining, slot.status, slot.changed_at
    )


def visible(slot: Slot, caller: Caller | None) -> bool:
    """Whether this person may see the slot: drafts are for organisers."""
    return slot.status is not SlotStatus.DRAFT or (caller is not None and caller.organises)
