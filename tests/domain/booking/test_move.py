"""Moving a booking: the old booking ends and a new one is made, or nothing changes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingLimit,
    BookingRef,
    BookingStatus,
    MadeAs,
    SlotId,
)
from slotlock.domain.booking.booking_outcomes import BookingMoved, HoldExtended
from slotlock.domain.booking.booking_refusals import (
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
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.booking_changes import cancel, expired_refusal, extend
from slotlock.domain.booking.slot import MAX_HOLD_MINUTES, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    HOUR,
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    change_request,
    in_choice_group,
    minutes_from_now,
    users_with_bookings,
    with_facts,
    with_waitlist,
)
from tests.support.domain.decisions import decide, decide_move, expire_and_promote

THERE = SlotId("there")


def there(capacity: int = 1, **facts: object) -> SlotState:
    """Return the slot to move to."""
    return build_slot(capacity, id=THERE, **facts)


def moved(
    old: SlotState,
    new: SlotState,
    which: BookingChangeRequest,
    by: str | None = None,
    users: UserContexts = NO_CONTEXTS,
) -> tuple[SlotState, SlotState, Booking]:
    """Both slots after Ada's booking moved now, and the new booking."""
    request = booking_request("ada", organizer=by)
    left, taken, outcome = decide_move(old, new, which, request, NOW, users)
    assert isinstance(outcome, BookingMoved)
    assert (outcome.slot_id, outcome.shown_slot_ids) == (taken.id, (taken.id, left.id))
    assert outcome.booking in taken.bookings
    assert outcome.old_booking in left.change.ended
    return left, taken, outcome.booking


def test_a_move_ends_one_booking_and_makes_the_other_and_they_refer_to_each_other() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    left, taken, new = moved(old, there(), change_request(booking))
    assert (left.remaining, taken.remaining) == (1, 0)
    assert left.change.ended[0].moved_to == BookingRef(taken.id, new.id)
    assert new.moved_from == BookingRef(left.id, booking.id)
    assert left.change.ended[0].history[:-1] == booking.history
    assert (left.change.ended[0].history[-1].action, new.history[0].action) == (
        BookingAction.MOVED,
        BookingAction.MOVED,
    )


@pytest.mark.parametrize("made_as", [None, *MadeAs])
def test_a_moved_booking_says_as_what_it_was_moved(made_as: MadeAs | None) -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    request = replace(booking_request("ada"), made_as=made_as)
    _, _, outcome = decide_move(old, there(), change_request(booking), request, NOW)
    assert isinstance(outcome, BookingMoved)
    assert outcome.booking.made_as is made_as


def test_a_refused_move_leaves_the_old_booking() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    full, _ = book_users(there(), "ben")
    own, (other,) = book_users(there(2), "ada")
    off, draft = there(status=SlotStatus.CANCELLED), there(status=SlotStatus.DRAFT)
    begun = there(start=NOW)
    for new, refusal in [
        (full, SlotFull(THERE)),
        (own, AlreadyBooked(THERE, other)),
        (off, SlotCancelled(THERE)),
        (draft, SlotNotFound(THERE)),
        (begun, SlotStarted(THERE)),
        (with_waitlist(there(), "ben"), SlotFull(THERE)),
        (old, AlreadyBooked(old.id, booking)),
    ]:
        assert decide_move(old, new, change_request(booking), booking_request("ada"), NOW) == (
            old,
            new,
            refusal,
        )


def test_a_move_into_the_own_slot_is_refused_as_one_into_another_at_that_time() -> None:
    for facts, hold, refusal in (
        ({"start": NOW}, False, SlotStarted),
        ({"start": NOW}, True, SlotStarted),
        ({"cancel_cutoff_minutes": 24 * 60}, False, CutoffPassed),
        ({}, True, AlreadyBooked),
    ):
        state, booking = book_place(build_slot(), booking_request("ada", hold))
        state = with_facts(state, **facts)
        request = booking_request("ada")
        old, new, outcome = decide_move(state, state, change_request(booking), request, NOW)
        assert (old, new, type(outcome)) == (state, state, refusal)


def test_a_moved_hold_stays_a_hold_and_is_not_extended() -> None:
    old, hold = book_place(
        build_slot(hold_minutes=5), booking_request("ada", hold=True), minutes_from_now(-4)
    )
    for state in (old, with_facts(old, start=NOW)):  # also after an earlier start
        _, _, new = moved(state, there(hold_minutes=60), change_request(hold))
        assert new.status is BookingStatus.HELD
        assert new.held_until == hold.held_until == minutes_from_now(1)


def test_a_moved_hold_expires_when_its_new_slot_starts_at_the_latest() -> None:
    old, hold = book_place(build_slot(hold_minutes=60), booking_request("ada", hold=True))
    soon = there(start=minutes_from_now(2), end=minutes_from_now(3))
    assert moved(old, soon, change_request(hold))[2].held_until == soon.slot.start


def test_a_moved_offer_lasts_no_longer_than_a_hold_may() -> None:
    start = NOW + timedelta(days=30)
    old = build_slot(waitlist_offer_minutes=7 * 24 * 60, start=start, end=start + HOUR)
    offered = expire_and_promote(with_waitlist(old, "ada"), NOW)
    new_slot = there(start=start, end=start + HOUR)
    _, _, new = moved(offered, new_slot, change_request(offered.bookings[0]))
    assert new.held_until == minutes_from_now(MAX_HOLD_MINUTES)


def test_a_booking_that_was_moved_or_cancelled_is_not_moved_again() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    left, _, _ = moved(old, there(), change_request(booking))
    cancelled, _ = decide(cancel, old, change_request(booking), NOW)
    for ended in (left, cancelled):
        again = decide_move(ended, there(), change_request(booking), booking_request("ada"), NOW)
        assert again == (ended, there(), BookingNotFound(old.id, booking.id))
        assert expired_refusal(ended.change.ended[0]) is None


def test_moves_and_extensions_never_pass_the_maximum_of_an_hour() -> None:
    here, hold = book_place(build_slot(hold_minutes=30), booking_request("ada", hold=True))
    other = there(hold_minutes=30)
    for minute in range(0, 120, 10):
        here, other = (
            expire_and_promote(here, minutes_from_now(minute)),
            expire_and_promote(other, minutes_from_now(minute)),
        )
        if here.booking_by_id(hold.id) is None:
            break
        after, outcome = decide(extend, here, change_request(hold), minutes_from_now(minute))
        here = after if isinstance(outcome, HoldExtended) else here
        left, taken, answer = decide_move(
            here, other, change_request(hold), booking_request("ada"), minutes_from_now(minute)
        )
        assert isinstance(answer, BookingMoved)
        here, other, hold = taken, left, answer.booking
    assert hold.held_until is not None
    assert hold.held_until <= minutes_from_now(60)


def test_a_hold_that_an_organizer_moves_to_a_started_slot_does_not_expire_at_once() -> None:
    old, hold = book_place(build_slot(hold_minutes=30), booking_request("ada", hold=True))
    begun = there(start=minutes_from_now(-10))
    _, taken, new = moved(old, begun, change_request(hold, "eve", Role.ORGANIZER), by="eve")
    assert new.history[0].overridden_limits == (BookingLimit.SLOT_STARTED,)
    assert expire_and_promote(taken, NOW).booking_by_id(new.id) == new


def test_the_old_place_of_a_move_goes_to_the_waiting_list_in_the_same_write() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    left, _, _ = moved(with_waitlist(old, "ben"), there(), change_request(booking))
    assert [b.user_id for b in expire_and_promote(left, NOW).bookings] == ["ben"]


def test_the_old_booking_of_a_move_does_not_count_in_the_choice_group() -> None:
    old, (booking,) = book_users(build_slot(choice_group="week"), "ada")
    users = users_with_bookings("ada", booking)
    _, _, new = moved(old, in_choice_group(there()), change_request(booking), users=users)
    assert new.history[0].overridden_limits == ()


def test_a_third_booking_of_the_choice_group_refuses_a_move() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    _, (third,) = book_users(build_slot(id=SlotId("third")), "ada")
    new, users = in_choice_group(there()), users_with_bookings("ada", third)
    refused = decide_move(old, new, change_request(booking), booking_request("ada"), NOW, users)
    assert refused == (old, new, LimitReached(THERE, 1, third))


def test_after_the_cutoff_only_organizers_move_and_the_history_names_it() -> None:
    old, (booking,) = book_users(build_slot(cancel_cutoff_minutes=7 * 24 * 60), "ada")
    refused = decide_move(old, there(), change_request(booking), booking_request("ada"), NOW)
    assert refused == (old, there(), CutoffPassed(old.id, old.slot.cancel_cutoff))
    left, _, new = moved(old, there(), change_request(booking, "eve", Role.ORGANIZER), by="eve")
    assert left.change.ended[0].history[-1].overridden_limits == (BookingLimit.CANCEL_CUTOFF,)
    assert (left.change.ended[0].history[-1].by, new.made_by, new.user_id) == ("eve", "eve", "ada")


def test_only_organizers_move_bookings_out_of_a_started_slot() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    begun = with_facts(old, start=NOW - timedelta(minutes=1))
    assert decide_move(begun, there(), change_request(booking), booking_request("ada"), NOW)[
        2
    ] == SlotStarted(begun.id)
    left, _, _ = moved(begun, there(), change_request(booking, "eve", Role.ADMIN), by="eve")
    assert left.change.ended[0].history[-1].overridden_limits == (BookingLimit.SLOT_STARTED,)


@pytest.mark.parametrize(("name", "refusal"), [("ada", HoldExpired), ("ben", BookingNotFound)])
def test_an_expired_hold_cannot_be_moved_and_its_owner_learns_why(name: str, refusal: type) -> None:
    old, hold = book_place(build_slot(), booking_request("ada", hold=True), minutes_from_now(-5))
    now = expire_and_promote(old, NOW)
    left, taken, outcome = decide_move(
        now, there(), change_request(hold, name), booking_request(name), NOW
    )
    assert (left, taken, type(outcome)) == (now, there(), refusal)
