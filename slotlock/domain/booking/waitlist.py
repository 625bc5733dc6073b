"""The waiting list of a slot: first come, first served."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import EndedWaitlistEntry, WaitlistEntry
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


def join(slot: Slot, entry: WaitlistEntry, now: datetime) -> tuple[Slot, JoinWaitlistResult]:
    """Stand at the end of the line, which there is only while the slot is full."""
    refusal = _refusal(slot, entry.user_id, now)
    if refusal is not None:
        return slot, refusal
    # Never before whoever came first, though their process's clock may be ahead.
    groups = slot.groups_of(entry.user_id)
    joined = replace(entry, since=max(now, slot.changed_at), groups=groups)
    after = replace(
        slot,
        waitlist=(*slot.waitlist, joined),
        loaded_waitlist=slot.loaded_waitlist
        + (slot.loaded_waitlist == slot.waitlist_length),  # all before them are at hand
        waitlist_length=slot.waitlist_length + 1,
    )
    return after, WaitlistJoined(joined, after.waitlist_length, after)


def _refusal(slot: Slot, user_id: UserId, now: datetime) -> JoinWaitlistResult | None:
    if slot.status is SlotStatus.DRAFT:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    if late := next(time_violations(slot, now), None):
        return late[1]
    if booking := slot.booking_of(user_id):
        return AlreadyBooked(booking, slot)
    if waiting := slot.waitlist_entry_of(user_id):
        return AlreadyWaiting(waiting, slot)
    if theirs := next(user_violations(slot, user_id, now), None):
        return theirs[1]
    # Who has to wait for others of their group may wait though places are left.
    full = slot.exceeded_group_limit(slot.groups_of(user_id))
    if slot.remaining > 0 and not promotable_count(slot, now) and full is None:
        return SlotNotFull(slot)
    return WaitlistFull(slot) if slot.waitlist_length >= slot.waitlist_capacity else None


def leave(
    slot: Slot, user_id: UserId, now: datetime, by: UserId | None = None
) -> tuple[Slot, WaitlistLeft | NotWaiting]:
    """Wait no longer, by oneself if nobody is named. Everybody else keeps their turn."""
    waiting = slot.waitlist_entry_of(user_id)
    if waiting is None:
        return slot, NotWaiting(slot)
    after = slot.without_waitlist_entry(waiting)
    after = replace(
        after,
        ended_waitlist_entries=(
            *after.ended_waitlist_entries,
            EndedWaitlistEntry(waiting, now, by or user_id),
        ),
    )
    return after, WaitlistLeft(after)
