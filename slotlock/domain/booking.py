"""Who gets a place: one person one slot, or several people and slots, all or none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slotlock.domain.bookings import Booking, BookingId, Left, SlotId
from slotlock.domain.limits import Breach, group_is_full, not_for_them, out_of_time
from slotlock.domain.outcomes import AllBooked, Booked, NoneBooked
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Deed, Entry
from slotlock.domain.refusals import (
    AlreadyBooked,
    LimitReached,
    PlaceRefusal,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    TimeConflict,
)
from slotlock.domain.settling import awaited, heard
from slotlock.domain.slots import Slot, SlotStatus

# A hold's hard maximum: no setting and no extension passes it. Ticket shops give 5 to 30 minutes.
MAX_HOLD_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Party:
    """A person who is to have a place, who asks for it, and the id their booking will carry.

    `organised` when an organiser asks for somebody: time limits then do not hold, but are named.
    """

    user_id: UserId
    booking_id: BookingId
    by: UserId
    hold: bool = False
    organised: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A place in one slot for one party."""

    slot_id: SlotId
    party: Party


def book(slot: Slot, party: Party, now: datetime) -> tuple[Slot, Booked | PlaceRefusal]:
    """Give the party a place, if there is one that they may have."""
    if written := slot.booking(party.booking_id):  # by a try whose answer was lost
        return slot, Booked(written, slot)
    refusal = _refusal(slot, party, now)
    if refusal is not None:
        return slot, refusal
    entry, groups = _first_entry(slot, party, now), slot.groups_of(party.user_id)
    booking = Booking(party.booking_id, slot.id, party.user_id, (entry,), groups=groups)
    after = slot.adding(booking)
    if waiting := slot.waiting_of(party.user_id):  # an organiser seats them once the line is over
        after = after.without_waiting(waiting)
        after = replace(after, left=(*after.left, Left(waiting, now, party.by)))
    return after, Booked(booking, after)


def book_all(
    slots: Mapping[SlotId, Slot], claims: Sequence[Claim], now: datetime
) -> tuple[dict[SlotId, Slot], AllBooked | NoneBooked]:
    """Give every claim its place, or none of them any."""
    after, answers = dict(slots), list[Booked | PlaceRefusal]()
    for claim in claims:
        slot = after.get(claim.slot_id)
        if slot is None:
            answers.append(SlotNotFound(claim.slot_id))
            continue
        changed, answer = book(slot, claim.party, now)
        after[slot.id] = changed
        if isinstance(answer, Booked):
            given = [slot.place_of(answer.booking)] if slot.looks_elsewhere else []
            after = heard(after, slot.id, given)
        answers.append(answer)
    booked = tuple(answer for answer in answers if isinstance(answer, Booked))
    if len(booked) == len(answers):
        return after, AllBooked(booked)
    unwritten = {claim.party.booking_id for claim in claims}
    return dict(slots), NoneBooked(tuple(_refused(answer, unwritten) for answer in answers))


def _refused(answer: Booked | PlaceRefusal, unwritten: set[BookingId]) -> PlaceRefusal | None:
    match answer:
        case Booked():
            return None
        case LimitReached() | TimeConflict() if answer.booking and answer.booking.id in unwritten:
            return replace(answer, booking=None)
        case _:
            return answer


def _refusal(slot: Slot, party: Party, now: datetime) -> PlaceRefusal | None:
    if slot.status is SlotStatus.DRAFT:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    late = next(out_of_time(slot, now), None)
    if late is not None and not party.organised:
        return late[1]
    if booking := slot.booking_of(party.user_id):
        return AlreadyBooked(booking, slot)
    theirs = next(not_for_them(slot, party.user_id, now), None)
    if theirs is not None and not party.organised:
        return theirs[1]
    # Whoever still waits comes before everyone who walks in.
    if slot.remaining <= 0 or awaited(slot, now) > 0:
        return SlotFull(slot)
    full = next(group_is_full(slot, party.user_id), None)
    return full[1] if full is not None and not party.organised else None


def _breaches(slot: Slot, user_id: UserId, now: datetime) -> Iterator[Breach]:
    yield from out_of_time(slot, now)
    yield from not_for_them(slot, user_id, now)
    yield from group_is_full(slot, user_id)


def _first_entry(slot: Slot, party: Party, now: datetime) -> Entry:
    overrode = tuple(limit for limit, _ in _breaches(slot, party.user_id, now))
    if not party.hold:
        return Entry(now, party.by, Deed.BOOKED, BookingStatus.CONFIRMED, overrode=overrode)
    return Entry(now, party.by, Deed.HELD, BookingStatus.HELD, hold_until(slot, now), overrode)


def hold_until(slot: Slot, now: datetime) -> datetime:
    """When a hold that begins now runs out: never after the slot begins."""
    until = now + timedelta(minutes=slot.hold_minutes)
    return min(until, slot.start) if now < slot.start else until
