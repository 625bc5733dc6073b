"""Promotion from the waiting list: a freed place goes to the first user who may have it.

Every decision ends with promotions, in the same write as the change that freed the place.
"""

from datetime import datetime, timedelta
from itertools import islice

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingStatus,
    HistoryEntry,
    WaitlistEntry,
)
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.limits import user_violations
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.terms import SlotAdmission


def promote_waitlists(loaded: LoadedState, now: datetime) -> LoadedState:
    """Fill the free places of all slots; no user gets two of a choice group."""
    for before in loaded.slots.values():
        after = promote_waitlist(before, loaded.users, now) if before.loaded_waitlist else before
        if after is not before:
            loaded = loaded.with_slots([after])
    return loaded


def promote_waitlist(state: SlotState, users: UserContexts, now: datetime) -> SlotState:
    """Return the state with its free places filled from the waiting list, in order."""
    index = 0
    while (
        index < state.loaded_waitlist
        and state.remaining > 0
        and _accepts_bookings(state.slot, now)
        and state.group_counts is not None
    ):
        entry = state.waitlist[index]
        if state.exceeded_group_limit(_current_groups(state.slot, users, entry)):
            index += 1  # the user's group is full: the user keeps waiting, the next one is tried
        elif state.slot.needs_user_context and users.context_of(entry.user_id) is None:
            break  # this user's context was not loaded; the next operation on the slot loads it
        else:
            state = _promote(state, users, entry, now)
    return state


def promotion_candidates(state: SlotState, max_candidates: int) -> tuple[WaitlistEntry, ...]:
    """Return the entries that could be promoted if all loaded bookings ended, in order.

    Where groups are limited, these entries may be far behind the first.
    """
    if not state.loaded_waitlist:
        return ()
    freed = state.without_bookings(*state.bookings)
    entries = state.waitlist[: state.loaded_waitlist]
    candidates = (entry for entry in entries if not freed.exceeded_group_limit(entry.groups))
    return tuple(islice(candidates, max_candidates))


def promotable_count(state: SlotState, users: UserContexts, now: datetime) -> int:
    """Return how many waitlist entries could get a free place now."""
    if not state.waitlist_length or not _accepts_bookings(state.slot, now):
        return 0
    entries = state.waitlist[: state.loaded_waitlist]
    blocked = (
        state.exceeded_group_limit(_current_groups(state.slot, users, entry)) for entry in entries
    )
    return state.waitlist_length - sum(limit is not None for limit in blocked)


def _accepts_bookings(slot: Slot, now: datetime) -> bool:
    if slot.required_admission is SlotAdmission.DRAW:
        return False
    open_ = slot.terms is None or slot.terms.accepts_bookings_at(now)
    return slot.status is SlotStatus.PUBLISHED and now < slot.start and open_


def _current_groups(slot: Slot, users: UserContexts, entry: WaitlistEntry) -> tuple[str, ...]:
    context = users.context_of(entry.user_id)
    return context.groups if context and slot.needs_user_groups else entry.groups


def _promote(
    state: SlotState, users: UserContexts, waitlist_entry: WaitlistEntry, now: datetime
) -> SlotState:
    slot = state.slot
    # The user may have booked another slot since, which rules this one out.
    if any(user_violations(slot, users, waitlist_entry.user_id, now)):
        return state.with_ended_waitlist_entry(waitlist_entry, now, None)
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
        groups=_current_groups(slot, users, waitlist_entry),
        waitlisted_by=waitlist_entry.waitlisted_by,
    )
    return state.without_waitlist_entry(waitlist_entry).with_booking(booking)
