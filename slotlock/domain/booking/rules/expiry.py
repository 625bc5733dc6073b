"""Holds and offers expire at their time, whether or not anything has written so.

Every decision and every reader first releases what has expired. The sweeper writes it soon after.
"""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import Booking, BookingAction, BookingStatus, HistoryEntry
from slotlock.domain.booking.rules.promotion import promotable_count
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS


def without_expired(state: SlotState, now: datetime) -> SlotState:
    """Return the state without the holds and offers that have expired by now."""
    if state.slot.status is SlotStatus.CANCELLED:  # which ended its bookings too
        return state
    expired = [_to_expired(each) for each in state.bookings if each.is_expired_at(now)]
    return state.without_bookings(*expired) if expired else state


def _to_expired(booking: Booking) -> Booking:
    until = booking.held_until or booking.created_at
    return booking.with_entry(
        HistoryEntry(until, None, BookingAction.EXPIRED, BookingStatus.EXPIRED, until)
    )


def as_of(state: SlotState, now: datetime) -> SlotState:
    """Return the state as readers see it: without expired holds, and without promised places.

    Reading promotes no user. Free places that belong to the waiting list count as booked.
    """
    state = without_expired(state, now)
    promised = promotable_count(state, NO_CONTEXTS, now) if state.remaining > 0 else 0
    if promised:
        booked_count = state.booked_count + min(state.remaining, promised)
        return replace(state, booked_count=booked_count)
    return state
