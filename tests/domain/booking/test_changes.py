"""What becomes of a booking: confirmed, extended, given back, moved."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.changes import cancel, confirm, extend
from slotlock.domain.booking.decision import refuse
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus
from slotlock.domain.booking.outcomes import BookingCancelled, BookingConfirmed, HoldExtended
from slotlock.domain.booking.promotion import expire_and_promote
from slotlock.domain.booking.refusals import (
    BookingNotFound,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    NotHeld,
    SlotCancelled,
    SlotStarted,
)
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    INSTANT,
    NOW,
    book_place,
    book_users,
    booking_command,
    booking_request,
    build_slot,
    minutes_from_now,
    with_waitlist,
)
from tests.support.domain.decisions import decide, decide_move

ORGANISERS = (Role.ORGANIZER, Role.ADMIN)


def held(hold_minutes: int = 5) -> tuple[Slot, Booking]:
    """A slot that is full with Ada's hold."""
    return book_place(build_slot(hold_minutes=hold_minutes), booking_request("ada", hold=True))


def test_a_hold_that_is_confirmed_is_a_booking_for_good() -> None:
    full, hold = held()
    after, outcome = decide(confirm, full, booking_command(hold), minutes_from_now(4))
    assert isinstance(outcome, BookingConfirmed)
    assert outcome == BookingConfirmed(after.bookings[0], after)
    assert outcome.booking.status is BookingStatus.CONFIRMED
    assert outcome.booking.held_until is None
    assert after.booked_count == full.booked_count
    assert expire_and_promote(after, minutes_from_now(600)).booked_count == 1


def test_confirming_twice_gives_the_same_answer_and_changes_nothing() -> None:
    full, hold = held()
    after, outcome = decide(confirm, full, booking_command(hold), NOW)
    assert decide(confirm, after, booking_command(hold), minutes_from_now(3)) == (after, outcome)


def test_a_hold_that_ran_out_is_not_confirmed_even_if_nobody_swept_it() -> None:
    full, hold = held()
    now = expire_and_promote(full, minutes_from_now(5))
    after, outcome = decide(confirm, now, booking_command(hold), minutes_from_now(5))
    assert after == now
    assert outcome == HoldExpired(now.change.ended[0], now)
    assert isinstance(
        decide(
            confirm,
            expire_and_promote(full, minutes_from_now(5) - INSTANT),
            booking_command(hold),
            NOW,
        )[1],
        BookingConfirmed,
    )


def test_organisers_confirm_for_others_and_are_named() -> None:
    full, hold = held()
    after, _ = decide(confirm, full, booking_command(hold, "eve", Role.ORGANIZER), NOW)
    assert after.bookings[0].history[-1].by == "eve"
    assert after.bookings[0].history[-1].overridden_limits == ()


def test_a_hold_given_after_the_start_is_confirmed_while_it_lasts() -> None:
    tomorrow = build_slot()
    full, hold = book_place(
        tomorrow, booking_request("ada", hold=True, organizer="eve"), tomorrow.start
    )
    after, outcome = decide(confirm, full, booking_command(hold), full.start)
    assert isinstance(outcome, BookingConfirmed)
    assert after.bookings[0].history[-1].overridden_limits == ()


def test_a_hold_in_a_slot_called_off_is_not_confirmed() -> None:
    full, hold = held()
    off = replace(full, status=SlotStatus.CANCELLED)
    assert decide(confirm, off, booking_command(hold), NOW) == (off, SlotCancelled(off))


@pytest.mark.parametrize("rule", [confirm, extend, cancel])
def test_nobody_touches_a_strangers_booking_or_learns_of_it(rule: object) -> None:
    assert callable(rule)
    full, hold = held()
    assert rule(full, booking_command(hold, "ben"), NOW) == refuse(
        BookingNotFound(full.id, hold.id)
    )
    ran_out = expire_and_promote(full, minutes_from_now(5))
    assert rule(ran_out, booking_command(hold, "ben"), minutes_from_now(5)) == refuse(
        BookingNotFound(full.id, hold.id)
    )


def test_an_extended_hold_lasts_as_long_as_one_that_begins_now() -> None:
    full, hold = held()
    after, outcome = decide(extend, full, booking_command(hold), minutes_from_now(3))
    assert isinstance(outcome, HoldExtended)
    assert outcome.booking.held_until == minutes_from_now(8)
    assert after.bookings == (outcome.booking,)
    assert expire_and_promote(after, minutes_from_now(5)).is_booked
    assert expire_and_promote(after, minutes_from_now(8)).remaining == 1


def test_no_number_of_extensions_passes_an_hour() -> None:
    full, hold = held(hold_minutes=25)
    extensions = 0
    for minute in range(0, 60, 5):
        after, outcome = decide(extend, full, booking_command(hold), minutes_from_now(minute))
        if isinstance(outcome, HoldLimitReached):
            assert after == full
        else:
            extensions += 1
        full = after
    assert extensions > 3
    assert full.bookings[0].held_until == minutes_from_now(60)
    assert expire_and_promote(full, minutes_from_now(60)).remaining == 1


def test_an_extension_never_outlasts_the_beginning_of_the_slot() -> None:
    soon = build_slot(start=minutes_from_now(10), end=minutes_from_now(20))
    full, hold = book_place(soon, booking_request("ada", hold=True))
    after, _ = decide(extend, full, booking_command(hold), minutes_from_now(4))
    full, _ = decide(extend, after, booking_command(hold), minutes_from_now(8))
    assert full.bookings[0].held_until == full.start
    assert isinstance(
        decide(extend, full, booking_command(hold), minutes_from_now(9))[1], HoldLimitReached
    )


def test_an_extension_that_would_shorten_a_hold_is_none() -> None:
    full, hold = held(hold_minutes=30)
    shorter = replace(full, hold_minutes=1)
    assert decide(extend, shorter, booking_command(hold), NOW) == (
        shorter,
        HoldLimitReached(hold, shorter),
    )


def test_an_offer_is_not_extended_for_others_wait_for_it() -> None:
    offered = expire_and_promote(
        with_waitlist(build_slot(waitlist_offer_minutes=1), "ada", "ben"), NOW
    )
    assert isinstance(
        decide(extend, offered, booking_command(offered.bookings[0]), NOW)[1], HoldLimitReached
    )


def test_a_booking_for_good_needs_no_more_time() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    assert decide(extend, full, booking_command(booking), NOW) == (full, NotHeld(booking, full))


def test_a_hold_that_ran_out_is_not_extended() -> None:
    full, hold = held()
    assert isinstance(
        decide(
            extend,
            expire_and_promote(full, minutes_from_now(5)),
            booking_command(hold),
            minutes_from_now(5),
        )[1],
        HoldExpired,
    )


def test_a_place_given_back_is_free_at_once() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    after, outcome = decide(cancel, full, booking_command(booking), NOW)
    assert (after.remaining, after.bookings) == (1, ())
    assert outcome == BookingCancelled(after.change.ended[0], after)
    assert after.change.ended[0].ended_at == NOW


def test_a_place_given_back_is_the_next_ones_in_line_in_the_same_write() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    after, _ = decide(cancel, with_waitlist(full, "ben"), booking_command(booking), NOW)
    assert [b.user_id for b in expire_and_promote(after, NOW).bookings] == ["ben"]


def test_organisers_give_back_for_others_and_are_named() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    after, _ = decide(cancel, full, booking_command(booking, "eve", Role.ORGANIZER), NOW)
    last = after.change.ended[0].history[-1]
    assert (last.by, last.action, last.overridden_limits) == ("eve", BookingAction.CANCELLED, ())


@pytest.mark.parametrize("role", ORGANISERS)
@pytest.mark.parametrize(
    ("before_start", "refusal", "limit"),
    [(30, CutoffPassed, BookingLimit.CANCEL_CUTOFF), (0, SlotStarted, BookingLimit.SLOT_STARTED)],
)
def test_what_is_too_late_for_members_organisers_do_and_the_limit_is_named(
    before_start: int, refusal: type, limit: BookingLimit, role: Role
) -> None:
    full, (booking,) = book_users(build_slot(cancel_cutoff_minutes=30), "ada")
    now = full.start - timedelta(minutes=before_start)
    after, outcome = decide(cancel, full, booking_command(booking), now)
    assert (after, type(outcome)) == (full, refusal)
    done, _ = decide(cancel, full, booking_command(booking, "eve", role), now)
    assert done.change.ended[0].history[-1].overridden_limits == (limit,)


def test_the_cut_off_begins_at_its_very_instant() -> None:
    full, (booking,) = book_users(build_slot(cancel_cutoff_minutes=30), "ada")
    assert isinstance(
        decide(cancel, full, booking_command(booking), full.cancel_cutoff - INSTANT)[1],
        BookingCancelled,
    )
    assert decide(cancel, full, booking_command(booking), full.cancel_cutoff)[1] == CutoffPassed(
        full.cancel_cutoff, full
    )


def test_a_hold_is_given_up_after_the_cut_off_too() -> None:
    late = build_slot(cancel_cutoff_minutes=30).start - timedelta(minutes=10)
    full, hold = book_place(
        build_slot(cancel_cutoff_minutes=30), booking_request("ada", hold=True), late
    )
    assert isinstance(decide(cancel, full, booking_command(hold), late)[1], BookingCancelled)


def test_after_a_move_whose_slot_and_booking_are_unknown_nothing_happens() -> None:
    full, hold = held()
    other = build_slot(id="other")
    outcome = decide_move(full, other, booking_command(hold, "ben"), booking_request("ben"), NOW)
    assert outcome == (full, other, BookingNotFound(full.id, hold.id))
