"""What holds in every state, whatever was done before."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise

from slotlock.domain.booking.booking import Booking, BookingAction, BookingStatus
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState

# The actions that may begin the history of a booking, and those that may follow a status.
FIRST_ACTIONS = {"booked", "held", "promoted", "offered", "moved"}
NEXT_ACTIONS = {
    BookingStatus.HELD: {"confirmed", "extended", "cancelled", "moved", "expired"},
    BookingStatus.CONFIRMED: {"cancelled", "moved"},
}


def assert_valid_slot(state: SlotState) -> None:
    """Assert capacity, one booking or waitlist entry per user, and no ignored waitlist."""
    bookings, slot = state.bookings, state.slot
    assert len(bookings) <= slot.capacity, f"above capacity: {state}"
    assert state.booked_count == len(bookings), f"miscounted: {state}"
    assert state.waitlist_length == len(state.waitlist), f"miscounted: {state}"
    users = [*(each.user_id for each in bookings), *(each.user_id for each in state.waitlist)]
    assert len(users) == len(set(users)), f"twice: {state}"
    if slot.status is SlotStatus.PUBLISHED and state.changed_at < slot.start:
        assert not (state.remaining and state.waitlist), f"free place although users wait: {state}"
    for booking in bookings:
        assert_valid_history(booking)
        assert booking.status.is_live, state
        if booking.held_until and slot.status is not SlotStatus.CANCELLED:
            sweep_at = state.next_deadline or datetime.max.replace(tzinfo=UTC)
            assert sweep_at <= booking.held_until, f"no sweep is due: {state}"


def assert_valid_history(booking: Booking) -> None:
    """Assert that each entry of a history may follow the one before it."""
    history = booking.history
    assert history[0].action in FIRST_ACTIONS, history
    for before, entry in pairwise(history):
        assert entry.action in NEXT_ACTIONS[before.status], history
        assert before.at <= entry.at, history
        assert entry.by is not None or entry.action is BookingAction.EXPIRED, history
    for entry in history:
        is_of_hold = entry.status in (BookingStatus.HELD, BookingStatus.EXPIRED)
        assert (entry.held_until is not None) == is_of_hold, history


def assert_one_per_choice_group(states: Iterable[SlotState], now: datetime) -> None:
    """Assert one booking per user and choice group, not counting those that override the limit."""
    bookings = Counter(
        (state.slot.choice_group, booking.user_id)
        for state in states
        if state.slot.choice_group and state.slot.status is not SlotStatus.CANCELLED
        for booking in state.bookings
        if not (booking.is_expired_at(now) or booking.was_forced)
    )
    assert max(bookings.values(), default=1) == 1, f"two bookings in a choice group: {bookings}"


def assert_served_in_order(state: SlotState, ended: Iterable[Booking]) -> None:
    """Assert that nobody waits longer than those with a place of the waitlist. No group is full."""
    places = (each.waited_since for each in (*state.bookings, *ended) if each.slot_id == state.id)
    served, first = [since for since in places if since], state.waitlist[:1]
    assert all(since <= each.since for each in first for since in served), f"overtaken: {state}"
