"""Who gets a place, and who gives one back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from slotlock.domain.outcomes import (
    AlreadyBooked,
    Booked,
    BookingCancelled,
    BookingNotFound,
    BookOutcome,
    CancelOutcome,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.domain.people import Caller, UserId
from slotlock.domain.slots import Booking, BookingId, BookingStatus, Slot, SlotStatus

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Party:
    """A person who asks for a place, and the id their booking will carry."""

    user_id: UserId
    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class Decision(Generic[Outcome]):
    """The slot as it shall be, what is added to and taken from its roster, and the answer."""

    slot: Slot
    outcome: Outcome
    added: tuple[Booking, ...] = ()
    removed: tuple[Booking, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.added or self.removed)


def book(slot: Slot, parties: Sequence[Party], now: datetime) -> Decision[tuple[BookOutcome, ...]]:
    """Give the places that are left to the parties in the order they came, one each."""
    given: dict[UserId, Booking] = {}
    verdicts: list[Booking | BookOutcome] = []
    for party in parties:
        verdict = _refusal(slot, given, party, now) or _new_booking(slot, party, now)
        if isinstance(verdict, Booking):
            given[party.user_id] = verdict
        verdicts.append(verdict)
    added = tuple(given.values())
    after = _written(slot, now, len(added), (*slot.bookings, *added)) if added else slot
    return Decision(after, tuple(_told(v, after) for v in verdicts), added=added)


def _refusal(
    slot: Slot, given: dict[UserId, Booking], party: Party, now: datetime
) -> BookOutcome | None:
    if slot.status is SlotStatus.DRAFT:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    if now >= slot.start:
        return SlotStarted(slot)
    if booking := given.get(party.user_id) or slot.booking_of(party.user_id):
        return AlreadyBooked(booking, slot)
    if slot.remaining <= len(given):
        return SlotFull(slot)
    return None


def _new_booking(slot: Slot, party: Party, now: datetime) -> Booking:
    return Booking(party.booking_id, slot.id, party.user_id, BookingStatus.CONFIRMED, now)


def _told(verdict: Booking | BookOutcome, after: Slot) -> BookOutcome:
    # Refusals tell of the slot as it stands after the whole batch, as a winner's answer does.
    match verdict:
        case Booking():
            return Booked(verdict, after)
        case SlotFull():
            return SlotFull(after)
        case AlreadyBooked(booking=booking):
            return AlreadyBooked(booking, after)
        case _:
            return verdict


def cancel(
    slot: Slot, booking_id: BookingId, caller: Caller, now: datetime
) -> Decision[CancelOutcome]:
    """Give a place back: its owner until the slot begins, organisers at any time."""
    booking = next((b for b in slot.bookings if b.id == booking_id), None)
    if booking is None or not (caller.organises or booking.user_id == caller.user_id):
        return Decision(slot, BookingNotFound(booking_id))
    if now >= slot.start and not caller.organises:
        return Decision(slot, SlotStarted(slot))
    ended = replace(booking, status=BookingStatus.CANCELLED, cancelled_at=now)
    after = _written(slot, now, -1, tuple(b for b in slot.bookings if b.id != booking_id))
    return Decision(after, BookingCancelled(ended, after), removed=(ended,))


def _written(slot: Slot, now: datetime, places: int, bookings: tuple[Booking, ...]) -> Slot:
    return replace(
        slot,
        taken=slot.taken + places,
        bookings=bookings,
        version=slot.version + 1,
        changed_at=now,
    )
