"""What the clock and the waiting list do to a slot, before and after anybody asks for anything.

Every act settles first, so a hold that ran out counts for nothing from that instant, whether or
not anyone swept it; and every act settles last, so a place given back is the next person's in the
same write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from slotlock.domain.bookings import Booking, BookingId, Left, Place, SlotId, Waiting
from slotlock.domain.limits import not_for_them
from slotlock.domain.record import BookingStatus, Deed, Entry
from slotlock.domain.slots import Slot, SlotStatus


def settle(slot: Slot, now: datetime) -> Slot:
    """The slot without the holds that ran out, and with its free places given to those in line."""
    return serve_line(_without_expired(slot, now), now)


def serve_line(slot: Slot, now: datetime) -> Slot:
    """The slot with its free places given to those in line, the first in front."""
    place = 0
    while slot.remaining > 0 and place < slot.heads and _gives_places(slot, now):
        waiting = slot.waiting[place]
        if slot.full_group(_groups_of(slot, waiting)):
            place += 1  # as many of theirs as may have places: they wait on, others are next
        elif slot.judges and slot.known_of(waiting.user_id) is None:
            break  # nobody is judged unknown; whoever looks next knows more
        else:
            slot = _served(slot, waiting, now)
    return slot


def next_in_line(slot: Slot, most: int) -> tuple[Waiting, ...]:
    """Up to so many of those in line who could be next, if everyone at hand gave their place back.

    Where groups are limited they may stand far behind the first.
    """
    freed = slot.ending(*slot.bookings)
    line = slot.waiting[: slot.heads]
    return tuple(waiting for waiting in line if not freed.full_group(waiting.groups))[:most]


def awaited(slot: Slot, now: datetime) -> int:
    """How many of those in line could be given a place that is free now."""
    if not _gives_places(slot, now):
        return 0
    at_hand = (w for w in slot.waiting[: slot.heads] if slot.full_group(_groups_of(slot, w)))
    return slot.waiting_count - sum(1 for _ in at_hand)


def settle_all(slots: Mapping[SlotId, Slot], now: datetime) -> dict[SlotId, Slot]:
    """The same for several slots, which may be of one choice."""
    freed = {slot_id: _without_expired(slot, now) for slot_id, slot in slots.items()}
    return serve_lines(freed, now)


def serve_lines(slots: Mapping[SlotId, Slot], now: datetime) -> dict[SlotId, Slot]:
    """The slots with their free places given to those in line, nobody two of a choice."""
    served = dict(slots)
    for slot_id in slots:
        before = served[slot_id]
        after = served[slot_id] = serve_line(before, now)
        if len(served) > 1 and after.looks_elsewhere:
            given = [after.place_of(booking) for booking in after.bookings[len(before.bookings) :]]
            served = heard(served, slot_id, given)
    return served


def heard(
    slots: Mapping[SlotId, Slot], slot_id: SlotId, given: Sequence[Place]
) -> dict[SlotId, Slot]:
    """The slots once the others have heard of places that were given in one."""
    if not given:
        return dict(slots)
    return {id_: slot if id_ == slot_id else slot.knowing(given) for id_, slot in slots.items()}


def _without_expired(slot: Slot, now: datetime) -> Slot:
    if slot.status is SlotStatus.CANCELLED:  # its bookings ended with it
        return slot
    expired = tuple(_expired(booking) for booking in slot.bookings if booking.ran_out(now))
    return slot.ending(*expired) if expired else slot


def _expired(booking: Booking) -> Booking:
    until = booking.held_until or booking.created_at
    return booking.then(Entry(until, None, Deed.EXPIRED, BookingStatus.EXPIRED, until))


def _gives_places(slot: Slot, now: datetime) -> bool:
    open_ = slot.terms is None or slot.terms.takes_bookings(now)
    return slot.status is SlotStatus.PUBLISHED and now < slot.start and open_


def _groups_of(slot: Slot, waiting: Waiting) -> tuple[str, ...]:
    known = slot.known_of(waiting.user_id)
    return known.groups if known and slot.asks_for_groups else waiting.groups


def _served(slot: Slot, waiting: Waiting, now: datetime) -> Slot:
    slot = slot.without_waiting(waiting)
    if any(not_for_them(slot, waiting.user_id, now)):  # they chose something else meanwhile
        return replace(slot, left=(*slot.left, Left(waiting, now, None)))
    if slot.offer_minutes is None:
        entry = Entry(now, None, Deed.PROMOTED, BookingStatus.CONFIRMED)
    else:
        until = min(now + timedelta(minutes=slot.offer_minutes), slot.start)
        entry = Entry(now, None, Deed.OFFERED, BookingStatus.HELD, until)
    # The turn in line becomes the booking, under the same id.
    booking = Booking(
        BookingId(waiting.id),
        slot.id,
        waiting.user_id,
        (entry,),
        waited_since=waiting.since,
        groups=_groups_of(slot, waiting),
    )
    return slot.adding(booking)


def seen_at(slot: Slot, now: datetime) -> Slot:
    """The slot as a reader sees it: what ran out is free, what others wait for is not.

    Nobody is given a place by being looked at, so that what is shown is never taken back.
    """
    slot = _without_expired(slot, now)
    if slot.remaining > 0 and (wait := awaited(slot, now)):
        slot = replace(slot, taken=slot.taken + min(slot.remaining, wait))
    return slot


def written(before: Slot, after: Slot, now: datetime) -> Slot:
    """The slot as it will stand once it is written."""
    changed_at = max(now, before.changed_at)
    revised_at = changed_at if after.revision != before.revision else after.revised_at
    after = replace(after, changed_at=changed_at, revised_at=revised_at)
    return replace(after, version=before.version + 1, due=due(after, now))


def due(slot: Slot, now: datetime) -> datetime | None:
    """When the clock or the line will next have something to do with the slot."""
    if slot.status is SlotStatus.CANCELLED:
        return None
    # What is not at hand is in `due` already; a hold at hand may run out before that.
    times = [b.held_until for b in slot.bookings if b.status is BookingStatus.HELD and b.held_until]
    if slot.due is not None and slot.due > now:
        times.append(slot.due)
    if slot.remaining > 0 and awaited(slot, now):
        times.append(now)  # more places than people at hand: the rest of the line is next
    elif slot.remaining > 0 and slot.waiting_count and slot.terms and slot.terms.opens_at > now:
        times.append(slot.terms.opens_at)
    return min(times, default=None)
