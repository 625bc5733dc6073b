"""The waiting list of a slot: first come, first served."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.bookings import Left, Waiting
from slotlock.domain.limits import not_for_them, out_of_time
from slotlock.domain.outcomes import WaitlistJoined, WaitlistLeft
from slotlock.domain.people import UserId
from slotlock.domain.refusals import (
    AlreadyBooked,
    AlreadyWaiting,
    LimitRefusal,
    NotWaiting,
    PlacesLeft,
    SlotCancelled,
    SlotNotFound,
    WaitlistFull,
)
from slotlock.domain.settling import awaited
from slotlock.domain.slots import Slot, SlotStatus

Joined = (
    WaitlistJoined
    | AlreadyWaiting
    | AlreadyBooked
    | LimitRefusal
    | PlacesLeft
    | WaitlistFull
    | SlotNotFound
    | SlotCancelled
)


def join(slot: Slot, waiting: Waiting, now: datetime) -> tuple[Slot, Joined]:
    """Stand at the end of the line, which there is only while the slot is full."""
    refusal = _refusal(slot, waiting.user_id, now)
    if refusal is not None:
        return slot, refusal
    # Never before whoever came first, though their process's clock may be ahead.
    groups = slot.groups_of(waiting.user_id)
    joined = replace(waiting, since=max(now, slot.changed_at), groups=groups)
    after = replace(
        slot,
        waiting=(*slot.waiting, joined),
        heads=slot.heads + (slot.heads == slot.waiting_count),  # all before them are at hand
        waiting_count=slot.waiting_count + 1,
    )
    return after, WaitlistJoined(joined, after.waiting_count, after)


def _refusal(slot: Slot, user_id: UserId, now: datetime) -> Joined | None:
    if slot.status is SlotStatus.DRAFT:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    if late := next(out_of_time(slot, now), None):
        return late[1]
    if booking := slot.booking_of(user_id):
        return AlreadyBooked(booking, slot)
    if waiting := slot.waiting_of(user_id):
        return AlreadyWaiting(waiting, slot)
    if theirs := next(not_for_them(slot, user_id, now), None):
        return theirs[1]
    # Who has to wait for others of their group may wait though places are left.
    full = slot.full_group(slot.groups_of(user_id))
    if slot.remaining > 0 and not awaited(slot, now) and full is None:
        return PlacesLeft(slot)
    return WaitlistFull(slot) if slot.waiting_count >= slot.waitlist_capacity else None


def leave(
    slot: Slot, user_id: UserId, now: datetime, by: UserId | None = None
) -> tuple[Slot, WaitlistLeft | NotWaiting]:
    """Wait no longer, by oneself if nobody is named. Everybody else keeps their turn."""
    waiting = slot.waiting_of(user_id)
    if waiting is None:
        return slot, NotWaiting(slot)
    after = slot.without_waiting(waiting)
    after = replace(after, left=(*after.left, Left(waiting, now, by or user_id)))
    return after, WaitlistLeft(after)
