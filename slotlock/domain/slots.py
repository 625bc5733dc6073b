"""A slot: its places, and as much of its roster and its line as a decision needs."""

from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from slotlock.domain.bookings import Booking, BookingId, Elsewhere, Left, SlotId, Waiting
from slotlock.domain.people import Caller, UserId
from slotlock.domain.record import BookingStatus, Deed, Entry


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
    not grow with the roster. `ended` and `left` are what a decision took out. `due` is when the
    next hold runs out. `version` grows by one with every write.
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
    bookings: tuple[Booking, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    heads: int = 0
    waiting_count: int = 0
    elsewhere: tuple[Elsewhere, ...] = ()
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
        return self.start - timedelta(minutes=self.cutoff_minutes)

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

    def booked_elsewhere(self, user_id: UserId, now: datetime) -> Booking | None:
        """This person's booking in another slot of the same choice, if it takes a place now."""
        bookings = (b for page in self.elsewhere for b in page.bookings if b.user_id == user_id)
        return next((booking for booking in bookings if not booking.ran_out(now)), None)

    def rival_of(self, booking: Booking, now: datetime) -> Booking | None:
        """The booking of another slot of the choice that its person chose instead of this one."""
        mine = (b for page in self.elsewhere for b in page.bookings if b.user_id == booking.user_id)
        rivals = (other for other in mine if not other.ran_out(now) and not other.beyond_choice)
        return None if booking.beyond_choice else next(rivals, None)

    def knowing(self, booking: Booking, of: "Slot") -> "Slot":
        """The slot once a place was given in another: it counts for the choice of both."""
        if self.choice is None or self.choice != of.choice or self.id == of.id:
            return self
        pages = tuple(
            replace(page, bookings=(*page.bookings, booking))
            if page.user_id == booking.user_id
            else page
            for page in self.elsewhere
        )
        return replace(self, elsewhere=pages)

    def adding(self, booking: Booking) -> "Slot":
        """The slot with one more place taken."""
        return replace(self, taken=self.taken + 1, bookings=(*self.bookings, booking))

    def changing(self, booking: Booking) -> "Slot":
        """The slot in which a booking of this id has become so."""
        return replace(
            self, bookings=tuple(booking if b.id == booking.id else b for b in self.bookings)
        )

    def ending(self, *ended: Booking) -> "Slot":
        """The slot with the places of these bookings given back."""
        gone = {booking.id for booking in ended}
        return replace(
            self,
            taken=self.taken - len(gone),
            bookings=tuple(b for b in self.bookings if b.id not in gone),
            ended=(*self.ended, *ended),
        )

    def without_waiting(self, waiting: Waiting) -> "Slot":
        """The slot with one person fewer in line."""
        place = self.waiting.index(waiting)
        return replace(
            self,
            waiting=self.waiting[:place] + self.waiting[place + 1 :],
            heads=self.heads - (place < self.heads),
            waiting_count=self.waiting_count - 1,
        )


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


def calling_off(slot: Slot) -> Entry:
    """The entry that ends the record of each booking of a slot that was called off."""
    at, by = (slot.changed_at, None) if slot.called_off is None else astuple(slot.called_off)
    return Entry(at, by, Deed.CANCELLED, BookingStatus.CANCELLED)
