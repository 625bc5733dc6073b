"""Limits on the bookings of a group, which do not block other groups."""

from dataclasses import replace

from slotlock.domain.booking.booking import WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.outcomes import Booked, BookingCancelled, WaitlistJoined
from slotlock.domain.booking.refusals import GroupFull, SlotNotFull
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.rules.changes import BookingCommand, cancel
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_users,
    booking_request,
    build_caller,
    with_waitlist,
)
from tests.support.domain.campaign_builders import (
    build_group_limited_slot,
    contexts,
    refusal_of,
    user_in_groups,
)
from tests.support.domain.decisions import decide, expire_and_promote


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
    before = build_group_limited_slot(GroupLimit("class:*", 1))
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
    free, outcome = decide(cancel, one, BookingCommand(adas.id, build_caller("ada")), NOW)
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
    free, _ = decide(cancel, line, BookingCommand(adas.id, build_caller("ada")), NOW)
    assert [b.user_id for b in expire_and_promote(free, NOW, users).bookings] == ["cleo", "ben"]


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
