"""Booking a place and giving it back."""

from collections.abc import Sequence

from prometheus_client import Counter

from slotlock.desk.act import act
from slotlock.desk.desk import Desk
from slotlock.domain import booking as rules
from slotlock.domain.outcomes import (
    BookingCancelled,
    BookingNotFound,
    BookOutcome,
    CancelOutcome,
    Locked,
    SlotNotFound,
)
from slotlock.domain.people import Caller, UserId
from slotlock.domain.slots import BookingId, SlotId
from slotlock.stores.slots import new_booking_id

BOOKINGS = Counter("slotlock_bookings_total", "Answers to bookSlot by outcome", ["outcome"])
CANCELLATIONS = Counter(
    "slotlock_cancellations_total", "Answers to cancelBooking by outcome", ["outcome"]
)


async def book(desk: Desk, slot_id: SlotId, user_id: UserId) -> BookOutcome:
    """Book a place for one person."""
    (outcome,) = await book_batch(desk, slot_id, [user_id])
    return outcome


async def book_batch(
    desk: Desk, slot_id: SlotId, user_ids: Sequence[UserId]
) -> tuple[BookOutcome, ...]:
    """Serve several people at one slot under one lease and with one write, in order of arrival."""
    parties = [rules.Party(user_id, new_booking_id()) for user_id in user_ids]
    outcomes = await act(
        desk,
        slot_id,
        look=lambda: desk.slots.look(slot_id, user_ids),
        decide=lambda slot, now: rules.book(slot, parties, now),
    )
    if outcomes is None:
        outcomes = (SlotNotFound(slot_id),) * len(parties)
    elif isinstance(outcomes, Locked):
        outcomes = (outcomes,) * len(parties)
    for outcome in outcomes:
        BOOKINGS.labels(type(outcome).__name__).inc()
    return outcomes


async def cancel(
    desk: Desk, slot_id: SlotId, booking_id: BookingId, caller: Caller
) -> CancelOutcome:
    """Give a place back. A booking that was cancelled before is answered as it was then."""
    outcome = await act(
        desk,
        slot_id,
        look=lambda: desk.slots.look(slot_id, [caller.user_id], [booking_id]),
        decide=lambda slot, now: rules.cancel(slot, booking_id, caller, now),
    )
    if outcome is None:
        outcome = BookingNotFound(booking_id)
    if isinstance(outcome, BookingNotFound):
        outcome = await _cancelled_before(desk, slot_id, booking_id, caller) or outcome
    CANCELLATIONS.labels(type(outcome).__name__).inc()
    return outcome


async def _cancelled_before(
    desk: Desk, slot_id: SlotId, booking_id: BookingId, caller: Caller
) -> BookingCancelled | None:
    booking = await desk.slots.ended(booking_id)
    if booking is None or booking.slot_id != slot_id:
        return None
    if not (caller.organises or booking.user_id == caller.user_id):
        return None
    slot = await desk.slots.look(slot_id, [caller.user_id])
    return BookingCancelled(booking, slot) if slot else None
