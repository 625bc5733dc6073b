"""Limits on the bookings of a group, which do not block other groups."""

from dataclasses import replace

from slotlock.domain.booking.book import book
from slotlock.domain.booking.booking import WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.changes import BookingCommand, cancel
from slotlock.domain.booking.outcomes import Booked, BookingCancelled, WaitlistJoined
from slotlock.domain.booking.promotion import expire_and_promote
from slotlock.domain.booking.refusals import GroupFull, SlotNotFull
from slotlock.domain.booking.waitlist import join
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
    refusal_of,
    user_in_groups,
)
from tests.support.domain.decisions import decide


def test_a_group_limit_bounds_the_bookings_of_its_group() -> None:
    users = tuple(user_in_groups(name, "class:5a") for name in ("ada", "ben", "cleo"))
    before = build_group_limited_slot(
        GroupLimit("class:5a", 2), users=(*users, user_in_groups("dan", "class:5b"))
    )
    two, _ = book_users(before, "ada", "ben")
    assert refusal_of(two, "cleo") == GroupFull(two, "class:5a", 2)
    assert isinstance(decide(book, two, booking_request("dan"), NOW)[1], Booked)


def test_a_limit_with_a_star_counts_each_group_by_itself() -> None:
    users = (
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    before = build_group_limited_slot(GroupLimit("class:*", 1), users=users)
    one, _ = book_users(before, "ada")
    assert refusal_of(one, "ben") == GroupFull(one, "class:5a", 1)
    assert isinstance(decide(book, one, booking_request("cleo"), NOW)[1], Booked)


def test_the_limit_of_a_slot_overrides_the_limit_of_its_campaign() -> None:
    users = (user_in_groups("ada", "class:5a"), user_in_groups("ben", "class:5a"))
    others = (GroupLimit("class:*", 1),)
    before = build_group_limited_slot(GroupLimit("class:5a", 2), users=users, group_limits=others)
    one, _ = book_users(before, "ada")
    assert isinstance(decide(book, one, booking_request("ben"), NOW)[1], Booked)


def test_a_cancelled_booking_frees_a_place_of_its_group() -> None:
    users = (user_in_groups("ada", "class:5a"), user_in_groups("ben", "class:5a"))
    one, (adas,) = book_users(
        build_group_limited_slot(GroupLimit("class:5a", 1), users=users), "ada"
    )
    free, outcome = decide(cancel, one, BookingCommand(adas.id, build_caller("ada")), NOW)
    assert isinstance(outcome, BookingCancelled)
    assert isinstance(decide(book, free, booking_request("ben"), NOW)[1], Booked)


def test_a_full_group_does_not_block_other_groups_on_the_waiting_list() -> None:
    users = (
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    one, (adas,) = book_users(
        build_group_limited_slot(GroupLimit("class:5a", 1), users=users), "ada"
    )
    line = expire_and_promote(with_waitlist(one, "ben", "cleo"), NOW)
    assert [b.user_id for b in line.bookings] == ["ada", "cleo"]
    assert [w.user_id for w in line.waitlist] == ["ben"]
    free, _ = decide(cancel, line, BookingCommand(adas.id, build_caller("ada")), NOW)
    assert [b.user_id for b in expire_and_promote(free, NOW).bookings] == ["cleo", "ben"]


def test_a_place_that_no_waiting_user_may_have_can_be_booked() -> None:
    users = (
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    one, _ = book_users(build_group_limited_slot(GroupLimit("class:5a", 1), users=users), "ada")
    line = with_waitlist(one, "ben")
    assert isinstance(decide(book, line, booking_request("cleo"), NOW)[1], Booked)


def test_users_of_a_full_group_can_wait_although_places_are_free() -> None:
    users = (
        user_in_groups("ada", "class:5a"),
        user_in_groups("ben", "class:5a"),
        user_in_groups("cleo", "class:5b"),
    )
    one, _ = book_users(build_group_limited_slot(GroupLimit("class:5a", 1), users=users), "ada")
    attempt = WaitlistEntry(WaitlistEntryId("w"), one.id, UserId("ben"), NOW)
    assert isinstance(decide(join, one, attempt, NOW)[1], WaitlistJoined)
    others = replace(attempt, user_id=UserId("cleo"))
    assert decide(join, one, others, NOW) == (one, SlotNotFull(one))
