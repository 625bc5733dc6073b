"""The waiting list of a slot: first come, first served."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import WaitlistEntry
from slotlock.domain.booking.decision import Decision, accept, refuse
from slotlock.domain.booking.limits import time_violations, user_violations
from slotlock.domain.booking.outcomes import WaitlistJoined, WaitlistLeft
from slotlock.domain.booking.promotion import promotable_count
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    AlreadyWaiting,
    LimitRefusal,
    NotWaiting,
    SlotCancelled,
    SlotNotFound,
    SlotNotFull,
    WaitlistFull,
)
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import UserId

JoinWaitlistResult = (
    WaitlistJoined
    | AlreadyWaiting
    | AlreadyBooked
    | LimitRefusal
    | SlotNotFull
    | WaitlistFull
    | SlotNotFound
    | SlotCancelled
)


def join(slot: Slot, entry: WaitlistEntry, now: datetime) -> Decision[JoinWaitlistResult]:
    """Append a user to the waiting list. A slot with free places has none."""
    if refusal := _refusal(slot, entry.user_id, now):
        return refuse(refusal)
    # Clocks of processes differ: an entry never starts before the last change of its slot.
    groups = slot.groups_of(entry.user_id)
    joined = replace(entry, since=max(now, slot.changed_at), groups=groups)
    after = slot.with_waitlist_entry(joined)
    return accept(WaitlistJoined(after, joined, after.waitlist_length), after)


def _refusal(slot: Slot, user_id: UserId, now: datetime) -> JoinWaitlistResult | None:
    if slot.status is SlotStatus.DRAFT:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    if too_early_or_late := next(time_violations(slot, now), None):
        return too_early_or_late[1]
    if booking := slot.booking_of(user_id):
        return AlreadyBooked(slot, booking)
    if waiting := slot.waitlist_entry_of(user_id):
        return AlreadyWaiting(slot, waiting)
    if not_allowed := next(user_violations(slot, user_id, now), None):
        return not_allowed[1]
    # A user whose group is full may wait although the slot has free places.
    full = slot.exceeded_group_limit(slot.groups_of(user_id))
    if slot.remaining > 0 and not promotable_count(slot, now) and full is None:
        return SlotNotFull(slot)
    return WaitlistFull(slot) if slot.waitlist_length >= slot.waitlist_capacity else None


def leave(
    slot: Slot, user_id: UserId, now: datetime, by: UserId | None = None
) -> Decision[WaitlistLeft | NotWaiting]:
    """Remove a user from the waiting list; `by` is the user who does it, themselves by default."""
    waiting = slot.waitlist_entry_of(user_id)
    if waiting is None:
        return refuse(NotWaiting(slot))
    after = slot.with_ended_waitlist_entry(waiting, now, by or user_id)
    return accept(WaitlistLeft(after), after)
