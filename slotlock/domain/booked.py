"""What becomes of a booking: confirmed, extended, cancelled, moved."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slotlock.domain.booking import MAX_HOLD_MINUTES, Party, book, hold_until
from slotlock.domain.bookings import Booking, BookingId, BookingRef
from slotlock.domain.limits import chosen_otherwise, rival_of
from slotlock.domain.outcomes import (
    Booked,
    BookingCancelled,
    BookingConfirmed,
    BookingMoved,
    HoldExtended,
)
from slotlock.domain.people import Caller
from slotlock.domain.record import BookingStatus, Deed, Entry, Limit
from slotlock.domain.refusals import (
    AlreadyBooked,
    BookingNotFound,
    ChosenRefusal,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    NotHeld,
    PlaceRefusal,
    SlotCancelled,
    SlotStarted,
)
from slotlock.domain.slots import Slot, SlotStatus

# Less is granted as it is: a record does not grow by an entry for every moment.
WORTHWHILE = timedelta(seconds=30)

Gone = BookingNotFound | HoldExpired
TooLate = SlotStarted | CutoffPassed


@dataclass(frozen=True, slots=True)
class Ask:
    """Who wants something done with which booking."""

    booking_id: BookingId
    caller: Caller

    def may_touch(self, booking: Booking) -> bool:
        """Whether it is theirs, or they organise."""
        return self.caller.organises or booking.user_id == self.caller.user_id


def confirm(
    slot: Slot, ask: Ask, now: datetime
) -> tuple[Slot, BookingConfirmed | Gone | ChosenRefusal | SlotCancelled]:
    """Make a hold a booking for good: its owner while it lasts, organisers for them.

    It may last beyond the start, if that was brought forward or an organiser gave it late.
    """
    booking = _touched(slot, ask)
    if not isinstance(booking, Booking):
        return slot, booking
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    if booking.status is BookingStatus.CONFIRMED:
        return slot, BookingConfirmed(booking, slot)
    organised = ask.caller.organises
    # Where clocks differ, they may have chosen another because this hold seemed to be over.
    if (rival := rival_of(slot, booking, now)) and not organised:
        return slot, rival
    places = slot.places_of(booking.user_id, now)
    overrode = tuple(limit for limit, _ in chosen_otherwise(slot, places))
    confirmed = booking.then(
        Entry(now, ask.caller.user_id, Deed.CONFIRMED, BookingStatus.CONFIRMED, overrode=overrode)
    )
    after = slot.changing(confirmed)
    return after, BookingConfirmed(confirmed, after)


def extend(
    slot: Slot, ask: Ask, now: datetime
) -> tuple[Slot, HoldExtended | HoldLimitReached | NotHeld | Gone | SlotCancelled]:
    """Let a hold last as long as one that begins now, but never past the hard maximum.

    What would be less than half a minute longer stays as it is.

    An offer from the waiting list is not extended: others wait for it. Nor is a hold that was
    moved: it would begin its hour anew with every move.
    """
    booking = _touched(slot, ask)
    if not isinstance(booking, Booking):
        return slot, booking
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    if booking.status is BookingStatus.CONFIRMED or booking.held_until is None:
        return slot, NotHeld(booking, slot)
    longest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
    until = min(hold_until(slot, now), longest)
    chosen = rival_of(slot, booking, now) is not None
    fixed = booking.made_by is None or booking.moved_from is not None or chosen
    if until <= booking.held_until or fixed:
        return slot, HoldLimitReached(booking, slot)
    if until - booking.held_until < WORTHWHILE:
        return slot, HoldExtended(booking, slot)
    extended = booking.then(
        Entry(now, ask.caller.user_id, Deed.EXTENDED, BookingStatus.HELD, until)
    )
    after = slot.changing(extended)
    return after, HoldExtended(extended, after)


def cancel(slot: Slot, ask: Ask, now: datetime) -> tuple[Slot, BookingCancelled | Gone | TooLate]:
    """Give a place back: its owner until the cut-off, organisers at any time."""
    booking = _touched(slot, ask)
    if not isinstance(booking, Booking):
        return slot, booking
    if slot.status is SlotStatus.CANCELLED:
        return slot, BookingCancelled(booking, slot)  # with its slot, by whoever called that off
    late = _late(slot, booking, now)
    if late is not None and not ask.caller.organises:
        return slot, late
    cancelled = _given_back(booking, ask, Deed.CANCELLED, now, late)
    after = slot.ending(cancelled)
    return after, BookingCancelled(cancelled, after)


def move(
    old: Slot, new: Slot, ask: Ask, party: Party, now: datetime
) -> tuple[Slot, Slot, BookingMoved | PlaceRefusal | Gone | CutoffPassed]:
    """Give a place in one slot back and take one in the other, both or neither.

    A hold stays a hold and lasts no longer for it.
    """
    booking = _touched(old, ask)
    if not isinstance(booking, Booking):
        return old, new, booking
    if old.status is SlotStatus.CANCELLED:
        return old, new, SlotCancelled(old)
    if old.id == new.id:
        return old, old, AlreadyBooked(booking, old)
    late = _late(old, booking, now)
    if late is not None and not ask.caller.organises:
        return old, new, late
    taken, answer = book(_forgetting(new, booking), party, now)
    if not isinstance(answer, Booked):
        return old, new, answer
    first = answer.booking.log[0]
    moved = Booking(
        party.booking_id,
        new.id,
        booking.user_id,
        (
            Entry(
                now,
                party.by,
                Deed.MOVED,
                booking.status,
                _moved_until(booking, new, now),
                first.overrode,
            ),
        ),
        moved_from=BookingRef(old.id, booking.id),
        groups=answer.booking.groups,
    )
    ended = _given_back(booking, ask, Deed.MOVED, now, late)
    left = old.ending(replace(ended, moved_to=BookingRef(new.id, moved.id)))
    taken = taken.changing(moved)
    return left, taken, BookingMoved(moved, taken, left.ended[-1], left)


def _touched(slot: Slot, ask: Ask) -> Booking | Gone:
    booking = slot.booking(ask.booking_id)
    if booking is not None and ask.may_touch(booking):
        return booking
    # It may have run out a moment ago, in the settling that came before this.
    ended = next((b for b in slot.ended if b.id == ask.booking_id), None)
    if ended and ended.status is BookingStatus.EXPIRED and ask.may_touch(ended):
        return HoldExpired(ended, slot)
    return BookingNotFound(ask.booking_id)


def _late(slot: Slot, booking: Booking, now: datetime) -> TooLate | None:
    # A hold was never a promise, so that it can be given up while it lasts.
    if booking.status is BookingStatus.HELD:
        return None
    if now >= slot.start:
        return SlotStarted(slot)
    return CutoffPassed(slot.cutoff, slot) if now >= slot.cutoff else None


def _given_back(
    booking: Booking, ask: Ask, deed: Deed, now: datetime, late: TooLate | None
) -> Booking:
    overrode: tuple[Limit, ...] = ()
    if isinstance(late, SlotStarted):
        overrode = (Limit.SLOT_STARTED,)
    elif late is not None:
        overrode = (Limit.CANCEL_CUTOFF,)
    return booking.then(
        Entry(now, ask.caller.user_id, deed, BookingStatus.CANCELLED, overrode=overrode)
    )


def _moved_until(booking: Booking, new: Slot, now: datetime) -> datetime | None:
    if booking.held_until is None:
        return None
    # An offer may last for days where it was made; anywhere else it is a hold like others.
    until = min(booking.held_until, now + timedelta(minutes=MAX_HOLD_MINUTES))
    return until if now >= new.start else min(until, new.start)


def _forgetting(new: Slot, booking: Booking) -> Slot:
    # The place that is given back does not stand against the one that is taken.
    known = new.known_of(booking.user_id)
    if known is None:
        return new
    others = tuple(place for place in known.places if place.booking.id != booking.id)
    return replace(new, known={**new.known, known.user_id: replace(known, places=others)})
