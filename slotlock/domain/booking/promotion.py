"""Expired holds and promotion from the waiting list.

Every decision first releases the expired holds, so that a hold ends at its time even if no sweep
has run. Every decision ends with promotions, so that a freed place goes to the waiting list in the
same write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

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
    """Return the slot without expired holds, and with its free places filled."""
    return promote_waitlist(_without_expired(slot, now), now)


def promote_waitlist(slot: Slot, now: datetime) -> Slot:
    """Return the slot with its free places filled from the waiting list, in order."""
    index = 0
    while slot.remaining > 0 and index < slot.loaded_waitlist and _accepts_bookings(slot, now):
        entry = slot.waitlist[index]
        if slot.exceeded_group_limit(_current_groups(slot, entry)):
            index += 1  # the user's group is full: the user keeps waiting, the next one is tried
        elif slot.needs_user_context and slot.user_context(entry.user_id) is None:
            break  # this user's context was not loaded; the next operation on the slot loads it
        else:
            slot = _promote(slot, entry, now)
    return slot


def promotion_candidates(slot: Slot, max_candidates: int) -> tuple[WaitlistEntry, ...]:
    """Return the entries that could be promoted if all loaded bookings ended, in order.

    Where groups are limited, these entries may be far behind the first.
    """
    freed = slot.without_bookings(*slot.bookings)
    entries = slot.waitlist[: slot.loaded_waitlist]
    candidates = (entry for entry in entries if not freed.exceeded_group_limit(entry.groups))
    return tuple(islice(candidates, max_candidates))


def promotable_count(slot: Slot, now: datetime) -> int:
    """Return how many waitlist entries could get a free place now."""
    if not _accepts_bookings(slot, now):
        return 0
    entries = slot.waitlist[: slot.loaded_waitlist]
    blocked = (slot.exceeded_group_limit(_current_groups(slot, entry)) for entry in entries)
    return slot.waitlist_length - sum(limit is not None for limit in blocked)


def expire_and_promote_all(slots: Mapping[SlotId, Slot], now: datetime) -> dict[SlotId, Slot]:
    """Do the same for several slots, which may belong to one choice group."""
    freed = {slot_id: _without_expired(slot, now) for slot_id, slot in slots.items()}
    return promote_waitlists(freed, now)


def promote_waitlists(slots: Mapping[SlotId, Slot], now: datetime) -> dict[SlotId, Slot]:
    """Fill the free places of several slots; no user gets two of a choice group."""
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
    """Return the slots with new bookings of one slot known to the decisions in the others."""
    if not new_bookings:
        return dict(slots)
    return {
        id_: slot if id_ == slot_id else slot.with_other_bookings(new_bookings)
        for id_, slot in slots.items()
    }


def _without_expired(slot: Slot, now: datetime) -> Slot:
    if slot.status is SlotStatus.CANCELLED:  # which ended its bookings too
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
    context = slot.user_context(waitlist_entry.user_id)
    return context.groups if context and slot.needs_user_groups else waitlist_entry.groups


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
    # The entry becomes the booking, with the same id.
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
    """Return the slot as readers see it: without expired holds, and without promised places.

    Reading promotes nobody. Free places that belong to the waiting list count as booked.
    """
    slot = _without_expired(slot, now)
    if slot.remaining > 0 and (promised := promotable_count(slot, now)):
        slot = replace(slot, booked_count=slot.booked_count + min(slot.remaining, promised))
    return slot


def next_version(before: Slot, after: Slot, now: datetime) -> Slot:
    """Return the changed slot with the version and times that its write gives it."""
    changed_at = max(now, before.changed_at)
    revised_at = changed_at if after.revision != before.revision else after.revised_at
    after = replace(after, changed_at=changed_at, revised_at=revised_at)
    return replace(after, version=before.version + 1, next_deadline=next_deadline(after, now))


def next_deadline(slot: Slot, now: datetime) -> datetime | None:
    """Return when the sweeper has to process the slot next; None if nothing is due."""
    if slot.status is SlotStatus.CANCELLED:
        return None
    # `next_deadline` covers the holds that were not loaded.
    times = [b.held_until for b in slot.bookings if b.status is BookingStatus.HELD and b.held_until]
    if slot.next_deadline is not None and slot.next_deadline > now:
        times.append(slot.next_deadline)
    if slot.remaining > 0 and promotable_count(slot, now):
        times.append(now)  # more entries can be promoted than were loaded
    elif slot.remaining > 0 and slot.waitlist_length and slot.terms and slot.terms.opens_at > now:
        times.append(slot.terms.opens_at)
    return min(times, default=None)
