"""The next version, the times and the next deadline that a write gives a changed slot."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import BookingStatus
from slotlock.domain.booking.rules.promotion import promotable_count
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts


def next_version(
    before: SlotState, after: SlotState, users: UserContexts, now: datetime
) -> SlotState:
    """Return the changed state with the version and times that its write gives it."""
    changed_at = max(now, before.changed_at)
    slot = after.slot
    if slot.revision != before.slot.revision:
        slot = replace(slot, revised_at=changed_at)
    return after.with_version(
        before.version + 1, changed_at, slot, next_deadline(after, users, now)
    )


def next_deadline(state: SlotState, users: UserContexts, now: datetime) -> datetime | None:
    """Return when the sweeper has to process the slot next; None if nothing is due."""
    slot = state.slot
    if slot.status is SlotStatus.CANCELLED:
        return None
    # `next_deadline` covers the holds that were not loaded.
    times = []
    for booking in state.bookings:
        last = booking.history[-1]
        if last.held_until and last.status is BookingStatus.HELD:
            times.append(last.held_until)
    if state.next_deadline is not None and state.next_deadline > now:
        times.append(state.next_deadline)
    if state.waitlist_length:
        times.append(slot.start)  # which ends the waiting list
    if state.waitlist_length and state.remaining > 0:
        if promotable_count(state, users, now):
            times.append(now)  # more entries can be promoted than were loaded
        elif slot.terms and slot.terms.opens_at > now:
            times.append(slot.terms.opens_at)
    return min(times, default=None)
