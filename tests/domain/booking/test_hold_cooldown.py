"""A slot with a cooldown refuses a new hold of a user whose last hold ended unconfirmed."""

from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.booking import Booking, BookingLimit
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.refusals import HoldCooldown
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.rules.changes import cancel, confirm
from slotlock.domain.booking.slot_state import SlotState
from tests.support.domain.builders import (
    NOW,
    book_place,
    booking_command,
    booking_request,
    build_slot,
    minutes_from_now,
    with_facts,
    with_waitlist,
)
from tests.support.domain.decisions import decide, decide_move, expire_and_promote

COOLDOWN = timedelta(minutes=60)


def held(**facts: object) -> tuple[SlotState, Booking]:
    """Return a slot with a cooldown of an hour in which Ada holds a place, and her hold."""
    slot = build_slot(2, **{"hold_cooldown_minutes": 60, **facts})
    return book_place(slot, booking_request("ada", hold=True))


def given_back() -> SlotState:
    """Return the slot after Ada has given her hold back."""
    slot, hold = held()
    return decide(cancel, slot, booking_command(hold), NOW)[0]


def hold_again(slot: SlotState, now: datetime, name: str = "ada") -> object:
    """Return the outcome of another hold."""
    return decide(book, slot, booking_request(name, hold=True), now)[1]


def test_a_hold_that_was_given_back_cannot_be_taken_again_for_a_time() -> None:
    slot, until = given_back(), NOW + COOLDOWN
    assert hold_again(slot, NOW) == HoldCooldown(slot.id, until)
    assert hold_again(slot, until - timedelta(seconds=1)) == HoldCooldown(slot.id, until)
    assert isinstance(hold_again(slot, until), Booked)


def test_a_hold_that_ran_out_counts_from_its_expiry() -> None:
    slot, hold = held()
    assert hold.held_until is not None
    seen_late = expire_and_promote(slot, minutes_from_now(30))
    assert hold_again(seen_late, minutes_from_now(30)) == HoldCooldown(
        slot.id, hold.held_until + COOLDOWN
    )


def test_the_cooldown_stops_only_holds_of_the_same_user() -> None:
    slot = given_back()
    assert isinstance(hold_again(slot, NOW, "ben"), Booked)
    assert isinstance(decide(book, slot, booking_request("ada"), NOW)[1], Booked)


def test_a_confirmed_booking_starts_no_cooldown_when_it_is_cancelled() -> None:
    slot, hold = held()
    slot, _ = decide(confirm, slot, booking_command(hold), NOW)
    slot, _ = decide(cancel, slot, booking_command(hold), NOW)
    assert isinstance(hold_again(slot, NOW), Booked)


@pytest.mark.parametrize("minutes", [0, 1])
def test_the_setting_of_now_decides(minutes: int) -> None:
    slot = with_facts(given_back(), hold_cooldown_minutes=minutes)
    assert isinstance(hold_again(slot, NOW + timedelta(minutes=minutes)), Booked)


def test_a_slot_without_a_cooldown_records_no_ended_holds() -> None:
    slot, hold = held(hold_cooldown_minutes=0)
    slot, _ = decide(cancel, slot, booking_command(hold), NOW)
    assert not slot.ended_holds
    assert isinstance(hold_again(slot, NOW), Booked)


def test_an_organizer_overrides_the_cooldown_and_the_booking_names_it() -> None:
    request = booking_request("ada", hold=True, organizer="organizer")
    _, outcome = decide(book, given_back(), request, NOW)
    assert isinstance(outcome, Booked)
    assert outcome.booking.history[0].overridden_limits == (BookingLimit.HOLD_COOLDOWN,)


def test_moving_a_hold_neither_avoids_nor_ignores_a_cooldown() -> None:
    old, hold = held()
    new = build_slot(2, id="other")
    command, request = booking_command(hold), booking_request("ada")
    old_after, new_after, _ = decide_move(old, new, command, request, NOW)
    assert hold_again(old_after, NOW) == HoldCooldown(old.id, NOW + COOLDOWN)
    (moved,) = new_after.bookings
    back = decide_move(new_after, old_after, booking_command(moved), booking_request("ada"), NOW)
    assert back[2] == HoldCooldown(old.id, NOW + COOLDOWN)


def test_the_waiting_list_offers_a_place_during_a_cooldown() -> None:
    slot = with_facts(given_back(), waitlist_offer_minutes=10)
    offered = expire_and_promote(with_waitlist(slot, "ada"), NOW)
    assert [booking.user_id for booking in offered.bookings] == ["ada"]


def test_an_offer_that_ran_out_starts_no_cooldown() -> None:
    slot = build_slot(1, hold_cooldown_minutes=60, waitlist_offer_minutes=10)
    offered = expire_and_promote(with_waitlist(slot, "ada"), NOW)
    later = minutes_from_now(11)
    assert isinstance(hold_again(expire_and_promote(offered, later), later), Booked)
