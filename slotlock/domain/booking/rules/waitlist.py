"""The waiting list of a slot: first come, first served, until the slot starts."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import WaitlistEntry
from slotlock.domain.booking.booking_outcomes import (
    JoinWaitlistOutcome,
    LeaveWaitlistOutcome,
    WaitlistJoined,
    WaitlistLeft,
)
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    AlreadyWaiting,
    DrawOnly,
    NotWaiting,
    SlotCancelled,
    SlotNotFound,
    SlotNotFull,
    WaitlistFull,
)
from slotlock.domain.booking.decision import Decision, LoadedState, accept, refuse
from slotlock.domain.booking.rules.limits import time_violations, user_violations
from slotlock.domain.booking.rules.promotion import promotable_count
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.users.user import UserId


def join(
    state: SlotState,
    users: UserContexts,
    entry: WaitlistEntry,
    now: datetime,
    *,
    is_drawn: bool = False,
) -> Decision[JoinWaitlistOutcome]:
    """Append a user to the waiting list. A slot with free places has none.

    After a draw, users join in its order before the campaign opens for others.
    """
    if refusal := _refusal(state, users, entry.user_id, now, is_drawn):
        return refuse(refusal)
    # Clocks of processes differ: an entry never starts before the last change of its slot.
    groups = users.groups_for(state.slot, entry.user_id)
    joined = replace(entry, since=max(now, state.changed_at), groups=groups)
    after = state.with_waitlist_entry(joined)
    return accept(WaitlistJoined(state.id, joined, after.waitlist_length), after)


def _refusal(
    state: SlotState, users: UserContexts, user_id: UserId, now: datetime, is_drawn: bool
) -> JoinWaitlistOutcome | None:
    slot = state.slot
    if slot.is_hidden:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot.id)
    checks_time = not is_drawn or now >= slot.start
    if checks_time and (too_early_or_late := next(time_violations(slot, now), None)):
        return too_early_or_late[1]
    if booking := state.booking_of(user_id):
        return AlreadyBooked(slot.id, booking)
    if waiting := state.waitlist_entry_of(user_id):
        return AlreadyWaiting(slot.id, waiting)
    if slot.required_admission is SlotAdmission.DRAW and not is_drawn:
        return DrawOnly(slot.id)
    if not_allowed := next(user_violations(slot, users, user_id, now), None):
        return not_allowed[1]
    # A user whose group is full may wait although the slot has free places.
    full = state.exceeded_group_limit(users.groups_for(slot, user_id))
    is_free = state.remaining > 0 and not is_drawn
    if is_free and not promotable_count(state, users, now) and full is None:
        return SlotNotFull(slot.id)
    capacity = slot.waitlist_capacity
    return WaitlistFull(slot.id, capacity) if state.waitlist_length >= capacity else None


def leave(
    state: SlotState, user_id: UserId, now: datetime, by: UserId | None = None
) -> Decision[LeaveWaitlistOutcome]:
    """Remove a user from the waiting list; `by` is the user who does it, themselves by default."""
    waiting = state.waitlist_entry_of(user_id)
    if waiting is None:
        return refuse(SlotNotFound(state.id) if state.slot.is_hidden else NotWaiting(state.id))
    after = state.with_ended_waitlist_entry(waiting, now, by or user_id)
    return accept(WaitlistLeft(state.id), after)


def end_waitlists(loaded: LoadedState, now: datetime) -> LoadedState:
    """End the loaded entries of slots that have started: nobody can be promoted any more.

    A campaign that has closed may open again, so it ends no waiting list.
    """
    for state in loaded.slots.values():
        if state.loaded_waitlist and now >= state.slot.start:
            after = state
            for entry in state.waitlist[: state.loaded_waitlist]:
                after = after.with_ended_waitlist_entry(entry, now, None)
            loaded = loaded.with_slots([after])
    return loaded
