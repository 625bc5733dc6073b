"""Moving a booking: the place in one slot is given back and one in the other taken, or neither."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import Booking, BookingRef, SlotId
from slotlock.domain.booking.changes import BookingCommand, extend
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus
from slotlock.domain.booking.outcomes import BookingMoved, HoldExtended
from slotlock.domain.booking.promotion import expire_and_promote
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    BookingNotFound,
    CutoffPassed,
    HoldExpired,
    LimitReached,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import Role
from tests.domain.booking.test_book import NOW, booked, chosen, lined_up, party, place, slot
from tests.domain.booking.test_changes import ask, minutes
from tests.support.decisions import decide, decide_move

THERE = SlotId("there")


def there(capacity: int = 1, **fields: object) -> Slot:
    """The slot to move to."""
    return slot(capacity, id=THERE, **fields)


def moved(
    old: Slot, new: Slot, which: BookingCommand, by: str | None = None
) -> tuple[Slot, Slot, Booking]:
    """Both slots after Ada's booking moved now, and the new booking."""
    left, taken, outcome = decide_move(old, new, which, party("ada", by=by), NOW)
    assert isinstance(outcome, BookingMoved)
    assert (outcome.slot, outcome.old_slot) == (taken, left)
    assert outcome.booking in taken.bookings
    assert outcome.old_booking in left.change.ended
    return left, taken, outcome.booking


def test_a_move_gives_one_place_back_and_takes_the_other_and_each_knows_of_the_other() -> None:
    old, (booking,) = booked(slot(), "ada")
    left, taken, new = moved(old, there(), ask(booking))
    assert (left.remaining, taken.remaining) == (1, 0)
    assert left.change.ended[0].moved_to == BookingRef(taken.id, new.id)
    assert new.moved_from == BookingRef(left.id, booking.id)
    assert left.change.ended[0].history[:-1] == booking.history
    assert (left.change.ended[0].history[-1].action, new.history[0].action) == (
        BookingAction.MOVED,
        BookingAction.MOVED,
    )


def test_where_no_place_can_be_had_the_old_one_stays() -> None:
    old, (booking,) = booked(slot(), "ada")
    full, _ = booked(there(), "ben")
    mine, (other,) = booked(there(2), "ada")
    off, draft = there(status=SlotStatus.CANCELLED), there(status=SlotStatus.DRAFT)
    begun = there(start=NOW)
    for new, refusal in [
        (full, SlotFull(full)),
        (mine, AlreadyBooked(other, mine)),
        (off, SlotCancelled(off)),
        (draft, SlotNotFound(THERE)),
        (begun, SlotStarted(begun)),
        (lined_up(there(), "ben"), SlotFull(lined_up(there(), "ben"))),
    ]:
        assert decide_move(old, new, ask(booking), party("ada"), NOW) == (old, new, refusal)


def test_a_moved_hold_is_a_hold_and_lasts_no_longer_for_it() -> None:
    old, hold = place(slot(hold_minutes=5), party("ada", hold=True), minutes(-4))
    _, _, new = moved(old, there(hold_minutes=60), ask(hold))
    assert new.status is BookingStatus.HELD
    assert new.held_until == hold.held_until == minutes(1)


def test_a_moved_hold_never_outlasts_the_beginning_of_its_new_slot() -> None:
    old, hold = place(slot(hold_minutes=60), party("ada", hold=True))
    soon = there(start=minutes(2), end=minutes(3))
    assert moved(old, soon, ask(hold))[2].held_until == soon.start


def test_no_number_of_moves_and_extensions_keeps_a_hold_for_more_than_an_hour() -> None:
    here, hold = place(slot(hold_minutes=30), party("ada", hold=True))
    other = there(hold_minutes=30)
    for minute in range(0, 120, 10):
        here, other = (
            expire_and_promote(here, minutes(minute)),
            expire_and_promote(other, minutes(minute)),
        )
        if here.booking_by_id(hold.id) is None:
            break
        after, outcome = decide(extend, here, ask(hold), minutes(minute))
        here = after if isinstance(outcome, HoldExtended) else here
        left, taken, answer = decide_move(here, other, ask(hold), party("ada"), minutes(minute))
        assert isinstance(answer, BookingMoved)
        here, other, hold = taken, left, answer.booking
    assert hold.held_until is not None
    assert hold.held_until <= minutes(60)


def test_a_hold_that_an_organiser_moves_to_a_slot_that_began_is_not_over_at_once() -> None:
    old, hold = place(slot(hold_minutes=30), party("ada", hold=True))
    begun = there(start=minutes(-10))
    _, taken, new = moved(old, begun, ask(hold, "eve", Role.ORGANIZER), by="eve")
    assert new.history[0].overridden_limits == (BookingLimit.SLOT_STARTED,)
    assert expire_and_promote(taken, NOW).booking_by_id(new.id) == new


def test_what_is_promised_to_the_line_of_the_old_slot_is_theirs_in_the_same_write() -> None:
    old, (booking,) = booked(slot(), "ada")
    left, _, _ = moved(lined_up(old, "ben"), there(), ask(booking))
    assert [b.user_id for b in expire_and_promote(left, NOW).bookings] == ["ben"]


def test_within_a_choice_the_place_given_back_does_not_stand_against_the_one_taken() -> None:
    old, (booking,) = booked(slot(choice_group="week"), "ada")
    _, _, new = moved(old, chosen(there(), "ada", booking), ask(booking))
    assert new.history[0].overridden_limits == ()


def test_any_other_of_the_choice_stands_against_a_move() -> None:
    old, (booking,) = booked(slot(), "ada")
    _, (third,) = booked(slot(id=SlotId("third")), "ada")
    new = chosen(there(), "ada", third)
    refusal = LimitReached(1, third, new)
    assert decide_move(old, new, ask(booking), party("ada"), NOW) == (old, new, refusal)


def test_after_the_cut_off_organisers_alone_move_and_the_limit_is_named() -> None:
    old, (booking,) = booked(slot(cancel_cutoff_minutes=7 * 24 * 60), "ada")
    refused = decide_move(old, there(), ask(booking), party("ada"), NOW)
    assert refused == (old, there(), CutoffPassed(old.cancel_cutoff, old))
    left, _, new = moved(old, there(), ask(booking, "eve", Role.ORGANIZER), by="eve")
    assert left.change.ended[0].history[-1].overridden_limits == (BookingLimit.CANCEL_CUTOFF,)
    assert (left.change.ended[0].history[-1].by, new.made_by, new.user_id) == (
        "eve",
        "eve",
        "ada",
    )


def test_out_of_a_slot_that_began_organisers_alone_move() -> None:
    old, (booking,) = booked(slot(), "ada")
    begun = replace(old, start=NOW - timedelta(minutes=1))
    assert decide_move(begun, there(), ask(booking), party("ada"), NOW)[2] == SlotStarted(begun)
    left, _, _ = moved(begun, there(), ask(booking, "eve", Role.ADMIN), by="eve")
    assert left.change.ended[0].history[-1].overridden_limits == (BookingLimit.SLOT_STARTED,)


@pytest.mark.parametrize(("name", "refusal"), [("ada", HoldExpired), ("ben", BookingNotFound)])
def test_what_ran_out_is_not_moved_and_its_owner_is_told_why(name: str, refusal: type) -> None:
    old, hold = place(slot(), party("ada", hold=True), minutes(-5))
    now = expire_and_promote(old, NOW)
    left, taken, outcome = decide_move(now, there(), ask(hold, name), party(name), NOW)
    assert (left, taken, type(outcome)) == (now, there(), refusal)
