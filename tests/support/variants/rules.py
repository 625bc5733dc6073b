"""Rules and promises of the desk, switched off one by one as the five designs lacked them."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from slotlock.desk import sweeping
from slotlock.desk.booked import Errand
from slotlock.desk.booking import Wish
from slotlock.domain import booked, booking, settling
from slotlock.domain.bookings import Booking
from slotlock.domain.outcomes import Booked
from slotlock.domain.refusals import SlotFull
from slotlock.domain.slots import Slot
from tests.support.variants.points import instead

book, serve_line, served = booking.book, settling.serve_line, settling._served


def _yes(*_: Any) -> bool:
    return True


def _no(*_: Any) -> bool:
    return False


def _nothing(*_: Any) -> None:
    return None


def _as_it_is(slot: Slot, *_: Any) -> Slot:
    return slot


def anybodys_bookings() -> None:
    """Whoever knows the id of a booking may do with it as they please (D5)."""
    booked.Ask.may_touch = _yes  # type: ignore[method-assign,assignment]


def holds_without_end() -> None:
    """Nobody looks at the clock when a hold is confirmed (D5)."""
    Booking.ran_out = _no  # type: ignore[method-assign,assignment]


def no_sweeper() -> None:
    """Nothing is swept up; no guard of any promise but of speed."""

    async def idle(desk: Any) -> int:
        return 0

    instead(sweeping.sweep, idle)


def one_hold_a_second() -> None:
    """The sweep frees one hold, and sleeps for a second (D5)."""
    sweeping.MOST_DUE, sweeping.SWEEP_EVERY_S = 1, 1.0
    sweep = sweeping.sweep

    async def and_sleep(desk: Any) -> int:
        return await sweep(desk) * 0

    instead(sweep, and_sleep)


def no_keys() -> None:
    """A request that is sent again is a new one (D5)."""
    Wish.slip = Errand.slip = _nothing  # type: ignore[method-assign,assignment]


def _always_a_success(slot: Slot, party: Any, now: datetime) -> tuple[Slot, Any]:
    after, outcome = book(slot, party, now)
    if isinstance(outcome, SlotFull):
        entry = booking._first_entry(slot, party, now)
        return slot, Booked(Booking(party.booking_id, slot.id, party.user_id, (entry,)), slot)
    return after, outcome


def sold_out_is_a_success() -> None:
    """Whoever comes too late is congratulated (D5)."""
    instead(book, _always_a_success)


def _past_the_line(slot: Slot, party: Any, now: datetime) -> tuple[Slot, Any]:
    after, outcome = book(replace(slot, waiting_count=0), party, now)
    if not isinstance(outcome, Booked):
        return slot, outcome
    return replace(after, waiting_count=slot.waiting_count), outcome


def walk_ins_first() -> None:
    """A freed place is whoever's who comes next; those who wait may ask for it too."""
    instead(serve_line, _as_it_is)
    instead(book, _past_the_line)


def last_come_first_served() -> None:
    """The end of the line is served first."""

    def from_the_end(slot: Slot, now: datetime) -> Slot:
        line = slot.waiting
        served = serve_line(replace(slot, waiting=line[::-1], heads=len(line)), now)
        return replace(served, waiting=served.waiting[::-1])

    instead(serve_line, from_the_end)


def _offered(slot: Slot, waiting: Any, now: datetime) -> Slot:
    after = served(slot, waiting, now)
    return replace(after, taken=slot.taken) if slot.offer_minutes else after


def offers_hold_nothing() -> None:
    """An offered place is anybody's until it is accepted."""

    def line(slot: Slot, now: datetime) -> Slot:
        return _offered(slot, slot.waiting[0], now) if slot.waiting and slot.remaining else slot

    instead(serve_line, line)


GUARDS = {
    "owner-of-booking": anybodys_bookings,
    "end-of-holds": holds_without_end,
    "sweeper": no_sweeper,
    "whole-sweep": one_hold_a_second,
    "keys": no_keys,
    "refusals": sold_out_is_a_success,
    "line": walk_ins_first,
    "first-come": last_come_first_served,
    "offers": offers_hold_nothing,
}
