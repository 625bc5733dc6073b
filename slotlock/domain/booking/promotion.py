"""What the clock and the waiting list do to a slot, before and after anybody asks for anything.

Every act settles first, so a hold that ran out counts for nothing from that instant, whether or
not anyone swept it; and every act settles last, so a place given back is the next person's in the
same write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    OtherBooking,
    SlotId,
    WaitlistEntry,
)
from slotlock.domain.booking.history import BookingAction, BookingStatus, HistoryEntry
from slotlock.domain.booking.limits import user_violations
from slotlock.domain.booking.slot import Slot, SlotStatus


def expire_and_promote(slot: Slot, now: datetime) -> Slot:
    """The slot without the holds that ran out, and with its free places given to those in line."""
    return promote_waitlist(_without_expired(slot, now), now)


def promote_waitlist(slot: Slot, now: datetime) -> Slot:
    """The slot with its free places given to those in line, the first in front."""
    place = 0
    while slot.remaining > 0 and place < slot.loaded_waitlist and _accepts_bookings(slot, now):
        waiting = slot.waitlist[place]
        if slot.exceeded_group_limit(_current_groups(slot, waiting)):
            place += 1  # as many of theirs as may have places: they wait on, others are next
        elif slot.needs_user_context and slot.user_context(waiting.user_id) is None:
            break  # nobody is judged unknown; whoever looks next knows more
        else:
            slot = _promote(slot, waiting, now)
    return slot


def promotion_candidates(slot: Slot, max_candidates: int) -> tuple[WaitlistEntry, ...]:
    """Up to so many of those in line who could be next, if everyone at hand gave their place back.

    Where groups are limited they may stand far behind the first.
    """
    freed = slot.without_bookings(*slot.bookings)
    line = slot.waitlist[: slot.loaded_waitlist]
    return tuple(waiting for waiting in line if not freed.exceeded_group_limit(waiting.groups))[
        :max_candidates
    ]


def promotable_count(slot: Slot, now: datetime) -> int:
    """How many of those in line could be given a place that is free now."""
    if not _accepts_bookings(slot, now):
        return 0
    at_hand = (
        w
        for w in slot.waitlist[: slot.loaded_waitlist]
        if slot.exceeded_group_limit(_current_groups(slot, w))
    )
    return slot.waitlist_length - sum(1 for _ in at_hand)


def expire_and_promote_all(slots: Mapping[SlotId, Slot], now: datetime) -> dict[SlotId, Slot]:
    """The same for several slots, which may be of one choice."""
    freed = {slot_id: _without_expired(slot, now) for slot_id, slot in slots.items()}
    return promote_waitlists(freed, now)


def promote_waitlists(slots: Mapping[SlotId, Slot], now: datetime) -> dict[SlotId, Slot]:
    """The slots with their free places given to those in line, nobody two of a choice."""
    served = dict(slots)
    for slot_id in slots:
        before = served[slot_id]
        after = served[slot_id] = promote_waitlist(before, now)
        if len(served) > 1 and after.depends_on_other_bookings:
            promoted = after.change.added[len(before.change.added) :]
            new_bookings = [after.as_other_booking(booking) for booking in promoted]
            served = propagate_bookings(served, slot_id, new_bookings)
    return served


def propagate_bookings(
    slots: Mapping[SlotId, Slot], slot_id: SlotId, new_bookings: Sequence[OtherBooking]
) -> dict[SlotId, Slot]:
    """The slots once the others have heard of places that were given in one."""
    if not new_bookings:
        return dict(slots)
    return {
        id_: slot if id_ == slot_id else slot.with_other_bookings(new_bookings)
        for id_, slot in slots.items()
    }


def _without_expired(slot: Slot, now: datetime) -> Slot:
    if slot.status is SlotStatus.CANCELLED:  # its bookings ended with it
        return slot
    expired = tuple(_to_expired(booking) for booking in slot.bookings if booking.is_expired_at(now))
    return slot.without_bookings(*expired) if expired else slot


def _to_expired(booking: Booking) -> Booking:
    until = booking.held_until or booking.created_at
    return booking.with_entry(
        HistoryEntry(until, None, BookingAction.EXPIRED, BookingStatus.EXPIRED, until)
    )


def _accepts_bookings(slot: Slot, now: datetime) -> bool:
    open_ = slot.terms is None or slot.terms.accepts_bookings_at(now)
    return slot.status is SlotStatus.PUBLISHED and now < slot.start and open_


def _current_groups(slot: Slot, waitlist_entry: WaitlistEntry) -> tuple[str, ...]:
    known = slot.user_context(waitlist_entry.user_id)
    return known.groups if known and slot.needs_user_groups else waitlist_entry.groups


def _promote(slot: Slot, waitlist_entry: WaitlistEntry, now: datetime) -> Slot:
    # The user may have booked another slot since, which rules this one out.
    if any(user_violations(slot, waitlist_entry.user_id, now)):
        return slot.with_ended_waitlist_entry(waitlist_entry, now, None)
    slot = slot.without_waitlist_entry(waitlist_entry)
    if slot.waitlist_offer_minutes is None:
        entry = HistoryEntry(now, None, BookingAction.PROMOTED, BookingStatus.CONFIRMED)
    else:
        until = min(now + timedelta(minutes=slot.waitlist_offer_minutes), slot.start)
        entry = HistoryEntry(now, None, BookingAction.OFFERED, BookingStatus.HELD, until)
    # The turn in line becomes the booking, under the same id.
    booking = Booking(
        BookingId(waitlist_entry.id),
        slot.id,
        waitlist_entry.user_id,
        (entry,),
        waited_since=waitlist_entry.since,
        groups=_current_groups(slot, waitlist_entry),
    )
    return slot.with_booking(booking)


def as_of(slot: Slot, now: datetime) -> Slot:
    """The slot as a reader sees it: what ran out is free, what others wait for is not.

    Nobody is given a place by being looked at, so that what is shown is never taken back.
    """
    slot = _without_expired(slot, now)
    if slot.remaining > 0 and (wait := promotable_count(slot, now)):
        slot = replace(slot, booked_count=slot.booked_count + min(slot.remaining, wait))
    return slot


def next_version(before: Slot, after: Slot, now: datetime) -> Slot:
    """The slot as it will stand once it is written."""
    changed_at = max(now, before.changed_at)
    revised_at = changed_at if after.revision != before.revision else after.revised_at
    after = replace(after, changed_at=changed_at, revised_at=revised_at)
    return replace(after, version=before.version + 1, next_deadline=next_deadline(after, now))


def next_deadline(slot: Slot, now: datetime) -> datetime | None:
    """When the clock or the line will next have something to do with the slot."""
    if slot.status is SlotStatus.CANCELLED:
        return None
    # What is not at hand is in `due` already; a hold at hand may run out before that.
    times = [b.held_until for b in slot.bookings if b.status is BookingStatus.HELD and b.held_until]
    if slot.next_deadline is not None and slot.next_deadline > now:
        times.append(slot.next_deadline)
    if slot.remaining > 0 and promotable_count(slot, now):
        times.append(now)  # more places than people at hand: the rest of the line is next
    elif slot.remaining > 0 and slot.waitlist_length and slot.terms and slot.terms.opens_at > now:
        times.append(slot.terms.opens_at)
    return min(times, default=None)
