"""Limits of a slot: the cooldown of holds, the bookings of a group, and whom it is for."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.booking import Booking, BookingLimit, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.booking_outcomes import Booked, BookingCancelled, WaitlistJoined
from slotlock.domain.booking.booking_refusals import (
    GroupFull,
    HoldCooldown,
    NotEligible,
    SlotNotFull,
)
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.rules.booking_changes import cancel, confirm
from slotlock.domain.booking.rules.promotion import promotion_candidates
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    change_request,
    minutes_from_now,
    with_facts,
    with_waitlist,
)
from tests.support.domain.campaign_builders import (
    build_campaign_slot,
    build_group_limited_slot,
    contexts,
    refusal_of,
    user_in_groups,
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
    return decide(cancel, slot, change_request(hold), NOW)[0]


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
    slot, _ = decide(confirm, slot, change_request(hold), NOW)
    slot, _ = decide(cancel, slot, change_request(hold), NOW)
    assert isinstance(hold_again(slot, NOW), Booked)


@pytest.mark.parametrize("minutes", [0, 1])
def test_the_setting_of_now_decides(minutes: int) -> None:
    slot = with_facts(given_back(), hold_cooldown_minutes=minutes)
    assert isinstance(hold_again(slot, NOW + timedelta(minutes=minutes)), Booked)


def test_a_slot_without_a_cooldown_records_no_ended_holds() -> None:
    slot, hold = held(hold_cooldown_minutes=0)
    slot, _ = decide(cancel, slot, change_request(hold), NOW)
    assert not slot.ended_holds
    assert isinstance(hold_again(slot, NOW), Booked)


def test_an_organizer_overrides_the_cooldown_and_the_booking_names_it() -> None:
    request = booking_request("ada", hold=True, organizer="organizer")
    _, outcome = decide(book, given_back(), request, NOW)
    assert isinstance(outcome, Booked)
    assert outcome.booking.history[0].overridden_limits == (BookingLimit.HOLD_COOLDOWN,)


def test_a_booking_of_an_organizer_overrides_no_cooldown_of_holds() -> None:
    _, outcome = decide(book, given_back(), booking_request("ada", organizer="organizer"), NOW)
    assert isinstance(outcome, Booked)
    assert outcome.booking.history[0].overridden_limits == ()


def test_moving_a_hold_neither_avoids_nor_ignores_a_cooldown() -> None:
    old, hold = held()
    new = build_slot(2, id="other")
    command, request = change_request(hold), booking_request("ada")
    old_after, new_after, _ = decide_move(old, new, command, request, NOW)
    assert hold_again(old_after, NOW) == HoldCooldown(old.id, NOW + COOLDOWN)
    (moved,) = new_after.bookings
    back = decide_move(new_after, old_after, change_request(moved), booking_request("ada"), NOW)
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


def test_a_group_limit_bounds_the_bookings_of_its_group() -> None:
    class_5a = tuple(user_in_groups(name, "class:5a") for name in ("ada", "ben", "cleo"))
    users = contexts(*class_5a, user_in_groups("dan", "class:5b"))
    before = build_group_limited_slot(GroupLimit("class:5a", 2))
    two, _ = book_users(before, "ada", "ben", users=users)
    assert refusal_of(two, "cleo", users=users) == GroupFull(two.id, "class:5a", 2)
    assert isinstance(decide(book, two, booking_request("dan"), NOW, users=users)[1], Booked)


def test_a_limit_with_a_star_counts_each_group_by_itself() -> None:
    users = contexts(
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    limited = build_group_limited_slot(GroupLimit("class:*", 1))
    for before in (limited, with_facts(limited, terms=None)):
        one, _ = book_users(before, "ada", users=users)
        assert refusal_of(one, "ben", users=users) == GroupFull(one.id, "class:5a", 1)
        assert isinstance(decide(book, one, booking_request("cleo"), NOW, users=users)[1], Booked)


def test_the_limit_of_a_slot_overrides_the_limit_of_its_campaign() -> None:
    users = contexts(user_in_groups("ada", "class:5a"), user_in_groups("ben", "class:5a"))
    others = (GroupLimit("class:*", 1),)
    before = build_group_limited_slot(GroupLimit("class:5a", 2), group_limits=others)
    one, _ = book_users(before, "ada", users=users)
    assert isinstance(decide(book, one, booking_request("ben"), NOW, users=users)[1], Booked)


def test_a_cancelled_booking_frees_a_place_of_its_group() -> None:
    users = contexts(user_in_groups("ada", "class:5a"), user_in_groups("ben", "class:5a"))
    one, (adas,) = book_users(
        build_group_limited_slot(GroupLimit("class:5a", 1)), "ada", users=users
    )
    free, outcome = decide(cancel, one, change_request(adas), NOW)
    assert isinstance(outcome, BookingCancelled)
    assert isinstance(decide(book, free, booking_request("ben"), NOW, users=users)[1], Booked)


def test_a_full_group_does_not_block_other_groups_on_the_waiting_list() -> None:
    users = contexts(
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    one, (adas,) = book_users(
        build_group_limited_slot(GroupLimit("class:5a", 1)), "ada", users=users
    )
    line = expire_and_promote(with_waitlist(one, "ben", "cleo", users=users), NOW, users)
    assert [b.user_id for b in line.bookings] == ["ada", "cleo"]
    assert [w.user_id for w in line.waitlist] == ["ben"]
    free, _ = decide(cancel, line, change_request(adas), NOW)
    assert [b.user_id for b in expire_and_promote(free, NOW, users).bookings] == ["cleo", "ben"]


def test_the_group_of_now_decides_about_a_waiting_user_and_is_recorded() -> None:
    waited = contexts(user_in_groups("ada", "class:5a"), user_in_groups("ben", "class:5a"))
    one, _ = book_users(build_group_limited_slot(GroupLimit("class:5a", 1)), "ada", users=waited)
    line, now_in_5b = with_waitlist(one, "ben", users=waited), user_in_groups("ben", "class:5b")
    assert expire_and_promote(line, NOW, waited).waitlist == line.waitlist
    bens = expire_and_promote(line, NOW, contexts(now_in_5b)).bookings[-1]
    assert (bens.user_id, bens.groups) == ("ben", ("class:5b",))


def test_a_waiting_user_is_a_candidate_for_a_place_that_the_own_group_frees() -> None:
    users = contexts(user_in_groups("ada", "class:5a"), user_in_groups("ben", "class:5a"))
    one, _ = book_users(build_group_limited_slot(GroupLimit("class:5a", 1)), "ada", users=users)
    line = with_waitlist(one, "ben", users=users)
    assert promotion_candidates(line, 1) == line.waitlist


def test_a_place_that_no_waiting_user_may_have_can_be_booked() -> None:
    users = contexts(
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    one, _ = book_users(build_group_limited_slot(GroupLimit("class:5a", 1)), "ada", users=users)
    line = with_waitlist(one, "ben", users=users)
    assert isinstance(decide(book, line, booking_request("cleo"), NOW, users=users)[1], Booked)


def test_users_of_a_full_group_can_wait_although_places_are_free() -> None:
    users = contexts(
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    one, _ = book_users(build_group_limited_slot(GroupLimit("class:5a", 1)), "ada", users=users)
    attempt = WaitlistEntry(WaitlistEntryId("w"), one.id, UserId("ben"), NOW)
    assert isinstance(decide(join, one, attempt, NOW, users=users)[1], WaitlistJoined)
    others = replace(attempt, user_id=UserId("cleo"))
    assert decide(join, one, others, NOW, users=users) == (one, SlotNotFull(one.id))


def only_for(*groups: str, of_campaign: bool = True, capacity: int = 5) -> SlotState:
    """Return a slot for these groups."""
    slot = build_campaign_slot(capacity) if of_campaign else build_slot(capacity)
    return with_facts(slot, only_for_groups=groups)


@pytest.mark.parametrize("of_campaign", [True, False])
@pytest.mark.parametrize(
    ("groups", "is_eligible"),
    [
        (("class:9a",), True),
        (("choir", "class:9b"), True),
        (("year:9",), True),
        (("class:8a",), False),
        (("Class:9A",), False),
        (("year:91",), False),
        ((), False),
    ],
)
def test_a_slot_is_for_users_with_one_of_its_groups(
    groups: tuple[str, ...], is_eligible: bool, of_campaign: bool
) -> None:
    before = only_for("class:9*", "year:9", of_campaign=of_campaign)
    users = contexts(user_in_groups("ada", *groups))
    for hold in (False, True):
        _, outcome = decide(book, before, booking_request("ada", hold), NOW, users=users)
        assert isinstance(outcome, Booked) if is_eligible else outcome == NotEligible(before.id)


def test_a_slot_for_no_groups_is_for_all_who_are_eligible() -> None:
    assert isinstance(decide(book, only_for(), booking_request("ada"), NOW)[1], Booked)
    campaign = with_facts(build_campaign_slot(eligible_groups=(("9a",),)), only_for_groups=("5a",))
    users = contexts(user_in_groups("ada", "5a"), user_in_groups("ben", "5a", "9a"))
    assert refusal_of(campaign, "ada", users=users) == NotEligible(campaign.id)
    assert isinstance(decide(book, campaign, booking_request("ben"), NOW, users=users)[1], Booked)


def test_nobody_moves_or_waits_where_only_others_may_book() -> None:
    users = contexts(user_in_groups("ada", "8a"))
    old, booking = book_place(build_campaign_slot(), booking_request("ada"), users=users)
    new = with_facts(only_for("9a"), id="other")
    assert decide_move(old, new, change_request(booking), booking_request("ada"), NOW, users=users)[
        2
    ] == NotEligible(new.id)
    full, _ = book_place(
        only_for("9a", capacity=1), booking_request("eve", organizer="olga"), users=users
    )
    entry = WaitlistEntry(WaitlistEntryId("w"), full.id, UserId("ada"), NOW)
    assert decide(join, full, entry, NOW, users=users)[1] == NotEligible(full.id)


def test_an_organizer_books_for_a_user_of_another_group_and_the_booking_says_so() -> None:
    users = contexts(user_in_groups("ada", "8a"))
    request = booking_request("ada", organizer="olga")
    _, booking = book_place(only_for("9a"), request, users=users)
    assert booking.history[0].overridden_limits == (BookingLimit.NOT_ELIGIBLE,)


@pytest.mark.parametrize("of_campaign", [True, False])
def test_a_waiting_user_who_left_the_group_is_passed_for_the_next(of_campaign: bool) -> None:
    joined = contexts(*(user_in_groups(name, "9a") for name in ("ada", "ben", "cleo")))
    full, (booking,) = book_users(
        only_for("9a", of_campaign=of_campaign, capacity=1), "ada", users=joined
    )
    waiting = with_waitlist(full, "ben", "cleo", users=joined)
    now = contexts(user_in_groups("ben", "8a"), user_in_groups("cleo", "9a"))
    freed, _ = decide(cancel, waiting, change_request(booking), NOW, users=now)
    after = expire_and_promote(freed, NOW, now)
    assert [each.user_id for each in after.bookings] == ["cleo"]
    assert not after.waitlist
