"""What becomes of a booking: confirm, extend, cancel, move."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from prometheus_client import Counter

from slotlock.desk.act import act
from slotlock.desk.deciding import Request, Slots, at
from slotlock.desk.desk import Desk
from slotlock.desk.once import Slip, once
from slotlock.domain import booked as rules
from slotlock.domain.booking import Party
from slotlock.domain.bookings import Booking, BookingId, SlotId
from slotlock.domain.outcomes import (
    BookingCancelled,
    CancelOutcome,
    ConfirmOutcome,
    ExtendOutcome,
    MoveOutcome,
)
from slotlock.domain.people import Caller
from slotlock.domain.record import BookingStatus
from slotlock.domain.refusals import BookingNotFound, HoldExpired, SlotNotFound
from slotlock.domain.slots import Slot
from slotlock.stores.ids import new_booking_id
from slotlock.stores.slots import Look

ACTS = Counter("slotlock_acts_total", "Answers to acts on bookings by outcome", ["act", "outcome"])

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Errand:
    """Which booking an act is about, who asks, how long they wait, and under which key."""

    slot_id: SlotId
    booking_id: BookingId
    caller: Caller
    wait_s: float = 0.0
    key: str | None = None

    def slip(self, *asked: str) -> Slip | None:
        """The slip of the errand's key, if it has one."""
        return Slip.of(self.caller.user_id, self.key, *asked, self.booking_id) if self.key else None


async def confirm(desk: Desk, errand: Errand) -> ConfirmOutcome:
    """Make a hold a booking for good."""
    outcome: ConfirmOutcome = await _on_booking(desk, errand, "confirm", rules.confirm)
    return outcome


async def extend(desk: Desk, errand: Errand) -> ExtendOutcome:
    """Let a hold last longer."""
    outcome: ExtendOutcome = await _on_booking(desk, errand, "extend", rules.extend)
    return outcome


async def cancel(desk: Desk, errand: Errand) -> CancelOutcome:
    """Give a place back. A booking that was cancelled before is answered as it was then."""
    outcome: CancelOutcome = await _on_booking(desk, errand, "cancel", rules.cancel)
    return outcome


async def _on_booking(
    desk: Desk,
    errand: Errand,
    name: str,
    rule: Callable[[Slot, rules.Ask, datetime], tuple[Slot, Any]],
) -> Any:
    slip = errand.slip(name)
    ask = rules.Ask(errand.booking_id, errand.caller)
    missing = BookingNotFound(errand.booking_id)
    request = Request(
        at(errand.slot_id, lambda slot, now: rule(slot, ask, now), missing),
        people=(errand.caller.user_id,),
        booking_ids=(errand.booking_id,),
        slip=slip,
    )

    async def run(wait_s: float) -> Any:
        outcome = await act(desk, [errand.slot_id], request, wait_s)
        if isinstance(outcome, BookingNotFound):
            return await _ended_before(desk, errand, name) or outcome
        return outcome

    outcome = await once(desk, slip, errand.slot_id, errand.wait_s, run)
    ACTS.labels(name, type(outcome).__name__).inc()
    return outcome


async def _ended_before(
    desk: Desk, errand: Errand, name: str
) -> BookingCancelled | HoldExpired | None:
    booking = await desk.slots.past.find(errand.booking_id)
    ask = rules.Ask(errand.booking_id, errand.caller)
    if booking is None or booking.slot_id != errand.slot_id or not ask.may_touch(booking):
        return None
    slot = await desk.slots.look(Look(errand.slot_id, desk.now(), [errand.caller.user_id]))
    if slot is None:
        return None
    if booking.status is BookingStatus.EXPIRED:
        return HoldExpired(booking, slot)
    return BookingCancelled(booking, slot) if name == "cancel" else None


async def move(desk: Desk, errand: Errand, to: SlotId) -> MoveOutcome:
    """Give a place in one slot back and take one in another, both or neither."""
    slip = errand.slip("move", to)

    async def run(wait_s: float) -> MoveOutcome:
        booking = await _theirs(desk, errand)
        if not isinstance(booking, Booking):
            return booking
        request = _move(errand, to, booking, slip)
        outcome = await act(desk, sorted({errand.slot_id, to}), request, wait_s)
        # It may have ended since it was looked up.
        return await _gone(desk, errand) if isinstance(outcome, BookingNotFound) else outcome

    outcome: MoveOutcome = await once(desk, slip, errand.slot_id, errand.wait_s, run)
    ACTS.labels("move", type(outcome).__name__).inc()
    return outcome


def _move(errand: Errand, to: SlotId, booking: Booking, slip: Slip | None) -> Request[MoveOutcome]:
    caller = errand.caller
    organised = caller.organises and booking.user_id != caller.user_id
    party = Party(booking.user_id, new_booking_id(), caller.user_id, organised=organised)
    ask = rules.Ask(errand.booking_id, caller)

    def rule(slots: Slots, now: datetime) -> tuple[Slots, MoveOutcome]:
        old, new = slots.get(errand.slot_id), slots.get(to)
        if old is None:
            return slots, BookingNotFound(errand.booking_id)
        if new is None:
            return slots, SlotNotFound(to)
        left, taken, outcome = rules.move(old, new, ask, party, now)
        return {**slots, old.id: left, new.id: taken}, outcome

    people = (booking.user_id, caller.user_id)
    return Request(rule, people=people, booking_ids=(errand.booking_id,), slip=slip)


async def _theirs(desk: Desk, errand: Errand) -> Booking | BookingNotFound | HoldExpired:
    look = Look(errand.slot_id, desk.now(), [errand.caller.user_id], [errand.booking_id])
    slot = await desk.slots.look(look)
    booking = slot.booking(errand.booking_id) if slot else None
    if booking is not None and rules.Ask(errand.booking_id, errand.caller).may_touch(booking):
        return booking
    return await _gone(desk, errand)


async def _gone(desk: Desk, errand: Errand) -> BookingNotFound | HoldExpired:
    ended = await _ended_before(desk, errand, "move")
    return ended if isinstance(ended, HoldExpired) else BookingNotFound(errand.booking_id)
