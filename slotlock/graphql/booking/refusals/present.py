"""The refusals of every command on bookings, holds, waiting lists and the booking queue."""

from typing import assert_never

from slotlock.domain.booking import refusals
from slotlock.graphql.booking.refusals.book import (
    AlreadyBooked,
    HoldCooldown,
    SlotFull,
    present_queue_refusal,
)
from slotlock.graphql.booking.refusals.changes import ChangeRefusal, present_change_refusal
from slotlock.graphql.booking.refusals.limits import present_limit_refusal
from slotlock.graphql.booking.refusals.waitlist import WaitlistRefusal, present_waitlist_refusal
from slotlock.graphql.core.refusals import KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import present_slot_refusal
from slotlock.graphql.users.refusals import present_user_refusal

BookingCommandRefusal = (
    refusals.BookingRefusal
    | refusals.OnBehalfRefusal
    | refusals.Locked
    | refusals.KeyReused
    | refusals.QueueFull
    | ChangeRefusal
    | WaitlistRefusal
)


def present_booking_refusal(  # noqa: C901 - a case for each refusal
    refusal: BookingCommandRefusal, view: ResultView
) -> Refusal:
    """Show why a booking, a hold or a waiting list entry was not made or changed."""
    if isinstance(refusal, refusals.LimitRefusal):
        return present_limit_refusal(refusal, view)
    if isinstance(refusal, refusals.OnBehalfRefusal):
        return present_user_refusal(refusal, view)
    if isinstance(refusal, ChangeRefusal):
        return present_change_refusal(refusal, view)
    if isinstance(refusal, WaitlistRefusal):
        return present_waitlist_refusal(refusal, view)
    match refusal:
        case refusals.SlotFull():
            return SlotFull.from_domain(refusal, view)
        case refusals.AlreadyBooked():
            return AlreadyBooked.from_domain(refusal, view)
        case refusals.HoldCooldown():
            return HoldCooldown.from_domain(refusal, view)
        case refusals.KeyReused():
            return KeyReused.from_domain(refusal, view)
        case refusals.QueueFull() | refusals.QueueOnly():
            return present_queue_refusal(refusal, view)
        case refusals.Locked() | refusals.SlotNotFound() | refusals.SlotCancelled():
            return present_slot_refusal(refusal, view)
        case _:
            assert_never(refusal)
