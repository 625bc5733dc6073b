"""The rules of a campaign, as a school would print them."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.book import BookingRequest, SlotClaim, book
from slotlock.domain.booking.booking import (
    BookingId,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.changes import BookingCommand, cancel, confirm
from slotlock.domain.booking.history import BookingLimit
from slotlock.domain.booking.outcomes import (
    AllBooked,
    Booked,
    BookingCancelled,
    BookingConfirmed,
    BookingMoved,
    NoneBooked,
)
from slotlock.domain.booking.promotion import expire_and_promote
from slotlock.domain.booking.refusals import (
    Closed,
    CutoffPassed,
    LimitReached,
    NotEligible,
    NotYetOpen,
    SlotFull,
    TimeConflict,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.waitlist import join
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    HOUR,
    INSTANT,
    NOW,
    book_users,
    booking_request,
    build_caller,
    with_waitlist,
)
from tests.support.domain.campaign_builders import (
    CLOSES_AT,
    OPENS_AT,
    build_campaign_slot,
    build_group_limited_slot,
    refusal_of,
    user_in_groups,
    user_with_booking,
)
from tests.support.domain.decisions import decide, decide_all, decide_move


def test_nothing_is_booked_before_the_instant_of_opening_and_anything_from_it_on() -> None:
    before = build_campaign_slot()
    assert refusal_of(before, "ada", OPENS_AT - INSTANT) == NotYetOpen(OPENS_AT, before)
    assert isinstance(decide(book, before, booking_request("ada"), OPENS_AT)[1], Booked)


def test_a_campaign_takes_bookings_until_the_instant_it_closes() -> None:
    before = build_campaign_slot()
    assert isinstance(decide(book, before, booking_request("ada"), CLOSES_AT - INSTANT)[1], Booked)
    assert refusal_of(before, "ada", CLOSES_AT) == Closed(CLOSES_AT, before)


def test_a_campaign_that_is_not_published_takes_no_bookings() -> None:
    before = build_campaign_slot(published=False)
    assert refusal_of(before, "ada") == Closed(CLOSES_AT, before, published=False)


@pytest.mark.parametrize(
    ("groups", "may"),
    [
        (("grade:5", "class:5a"), True),
        (("grade:6", "class:5a"), True),
        (("grade:5", "class:5b"), False),
        (("class:5a",), False),
        ((), False),
    ],
)
def test_who_takes_part_has_one_group_of_every_set(groups: tuple[str, ...], may: bool) -> None:
    eligible = (("grade:5", "grade:6"), ("class:5a", "class:6a"))
    before = build_campaign_slot(5, user_in_groups("ada", *groups), eligible_groups=eligible)
    outcome = decide(book, before, booking_request("ada"), NOW)[1]
    assert isinstance(outcome, Booked) if may else outcome == NotEligible(before)


def test_a_campaign_without_sets_is_for_everybody() -> None:
    assert isinstance(decide(book, build_campaign_slot(), booking_request("ada"), NOW)[1], Booked)


def test_a_person_has_at_most_so_many_bookings_in_a_campaign() -> None:
    other = replace(build_campaign_slot(max_bookings=1), id=SlotId("other"))
    other, (theirs,) = book_users(other, "ada")
    before = build_campaign_slot(5, user_with_booking("ada", other, theirs), max_bookings=1)
    assert refusal_of(before, "ada") == LimitReached(1, None, before)
    again = build_campaign_slot(5, user_with_booking("ada", other, theirs), max_bookings=2)
    assert isinstance(decide(book, again, booking_request("ada"), NOW)[1], Booked)


def test_bookings_in_other_campaigns_do_not_count() -> None:
    other = replace(build_campaign_slot(campaign_id=CampaignId("another")), id=SlotId("other"))
    other, (theirs,) = book_users(other, "ada")
    before = build_campaign_slot(5, user_with_booking("ada", other, theirs), max_bookings=1)
    assert isinstance(decide(book, before, booking_request("ada"), NOW)[1], Booked)


def weekly(first: datetime, times: int = 10) -> tuple[Meeting, ...]:
    """An hour each week."""
    starts = (first + timedelta(weeks=week) for week in range(times))
    return tuple(Meeting(start, start + HOUR) for start in starts)


def timetabled(before: Slot, meetings: tuple[Meeting, ...]) -> Slot:
    """The slot with a timetable."""
    start, end = meetings[0].start, meetings[-1].end
    return replace(before, start=start, end=end, meetings=meetings)


def test_a_persons_weekly_timetables_do_not_overlap() -> None:
    monday = NOW + timedelta(days=7)
    other = timetabled(build_campaign_slot(forbid_overlap=True), weekly(monday))
    other, (theirs,) = book_users(replace(other, id=SlotId("other")), "ada")
    known = user_with_booking("ada", other, theirs)
    clashing = timetabled(
        build_campaign_slot(5, known, forbid_overlap=True), weekly(monday + HOUR / 2)
    )
    third = Meeting(monday + HOUR / 2, monday + HOUR * 1.5)
    expected = TimeConflict(theirs, third, Meeting(monday, monday + HOUR), clashing)
    assert refusal_of(clashing, "ada") == expected
    later = timetabled(build_campaign_slot(5, known, forbid_overlap=True), weekly(monday + HOUR))
    assert isinstance(decide(book, later, booking_request("ada"), NOW)[1], Booked)


def test_one_meeting_in_the_middle_of_the_term_is_enough_to_clash() -> None:
    monday = NOW + timedelta(days=7)
    other = timetabled(build_campaign_slot(forbid_overlap=True), weekly(monday))
    other, (theirs,) = book_users(replace(other, id=SlotId("other")), "ada")
    sixth = monday + timedelta(weeks=5)
    known = user_with_booking("ada", other, theirs)
    once = timetabled(build_campaign_slot(5, known, forbid_overlap=True), weekly(sixth, 1))
    assert isinstance(refusal_of(once, "ada"), TimeConflict)


def test_where_only_one_campaign_forbids_overlaps_they_are_allowed() -> None:
    other = replace(build_campaign_slot(campaign_id=CampaignId("free")), id=SlotId("other"))
    other, (theirs,) = book_users(other, "ada")
    before = build_campaign_slot(5, user_with_booking("ada", other, theirs), forbid_overlap=True)
    assert isinstance(decide(book, before, booking_request("ada"), NOW)[1], Booked)


def test_nobody_waits_for_what_they_may_not_have() -> None:
    before = build_campaign_slot(1, user_in_groups("ben"), eligible_groups=(("class:5a",),))
    turn = WaitlistEntry(WaitlistEntryId("w"), before.id, UserId("ben"), NOW)
    assert decide(join, before, turn, NOW) == (before, NotEligible(before))
    assert decide(join, before, turn, CLOSES_AT) == (before, Closed(CLOSES_AT, before))


def test_nobody_in_line_is_judged_before_anything_is_known_of_them() -> None:
    before = with_waitlist(
        build_campaign_slot(2, user_in_groups("ada", "class:5a"), eligible_groups=(("class:5a",),)),
        "ben",
        "ada",
    )
    assert expire_and_promote(before, NOW) == before


def test_once_a_campaign_closed_nobody_moves_up() -> None:
    full, (adas,) = book_users(
        build_campaign_slot(1, user_in_groups("ada"), user_in_groups("ben")), "ada"
    )
    line = with_waitlist(full, "ben")
    free, _ = decide(cancel, line, BookingCommand(adas.id, build_caller("ada")), NOW)
    assert [b.user_id for b in expire_and_promote(free, NOW).bookings] == ["ben"]
    assert expire_and_promote(free, CLOSES_AT).bookings == ()


def test_places_are_given_back_until_the_campaigns_cut_off() -> None:
    until = NOW + timedelta(minutes=5)
    one, (booking,) = book_users(build_campaign_slot(1, cancel_until=until), "ada")
    ask = BookingCommand(booking.id, build_caller("ada"))
    assert decide(cancel, one, ask, until) == (one, CutoffPassed(until, one))
    assert isinstance(decide(cancel, one, ask, until - INSTANT)[1], BookingCancelled)


def test_a_hold_is_confirmed_after_the_campaign_closed() -> None:
    before, outcome = decide(
        book, build_campaign_slot(), booking_request("ada", hold=True), CLOSES_AT - INSTANT
    )
    assert isinstance(outcome, Booked)
    ask = BookingCommand(outcome.booking.id, build_caller("ada"))
    assert isinstance(decide(confirm, before, ask, CLOSES_AT)[1], BookingConfirmed)


def test_who_moves_within_a_campaign_needs_no_second_booking() -> None:
    old, (theirs,) = book_users(
        replace(build_campaign_slot(max_bookings=1), id=SlotId("other")), "ada"
    )
    new = build_campaign_slot(
        5, user_with_booking("ada", old, theirs), max_bookings=1, forbid_overlap=True
    )
    _, _, outcome = decide_move(
        old, new, BookingCommand(theirs.id, build_caller("ada")), booking_request("ada"), NOW
    )
    assert isinstance(outcome, BookingMoved)


def test_several_claims_of_one_person_count_together() -> None:
    one = build_campaign_slot(5, user_in_groups("ada"), max_bookings=1)
    two = replace(one, id=SlotId("two"))
    claims = [SlotClaim(each.id, booking_request("ada")) for each in (one, two)]
    _, outcome = decide_all({one.id: one, two.id: two}, claims, NOW)
    assert isinstance(outcome, NoneBooked)
    assert outcome.refusals[0] is None
    assert isinstance(outcome.refusals[1], LimitReached)


def test_several_claims_of_one_person_that_overlap_name_no_booking_that_is_not() -> None:
    one = build_campaign_slot(5, user_in_groups("ada"), forbid_overlap=True)
    two = replace(one, id=SlotId("two"))
    claims = [SlotClaim(each.id, booking_request("ada")) for each in (one, two)]
    _, outcome = decide_all({one.id: one, two.id: two}, claims, NOW)
    assert isinstance(outcome, NoneBooked)
    conflict = outcome.refusals[1]
    assert isinstance(conflict, TimeConflict)
    assert conflict.booking is None


def test_claims_that_do_not_overlap_are_all_booked() -> None:
    one = build_campaign_slot(5, user_in_groups("ada"), forbid_overlap=True, max_bookings=2)
    two = replace(one, id=SlotId("two"), start=one.end, end=one.end + HOUR)
    claims = [SlotClaim(each.id, booking_request("ada")) for each in (one, two)]
    assert isinstance(decide_all({one.id: one, two.id: two}, claims, NOW)[1], AllBooked)


def organised(name: str) -> BookingRequest:
    """An organiser who asks for somebody."""
    return booking_request(name, organizer="organiser")


def test_an_organiser_passes_over_every_limit_and_names_each() -> None:
    other, (theirs,) = book_users(
        replace(build_campaign_slot(max_bookings=1, forbid_overlap=True), id=SlotId("other")), "ada"
    )
    ben = user_in_groups("ben", "class:5a")
    ada = user_with_booking("ada", other, theirs, "class:5a")
    before = build_group_limited_slot(
        GroupLimit("class:5a", 1),
        users=(ada, ben),
        max_bookings=1,
        forbid_overlap=True,
        eligible_groups=(("class:6a",),),
    )
    before, _ = decide(book, before, organised("ben"), NOW)
    _, outcome = decide(book, before, organised("ada"), CLOSES_AT)
    assert isinstance(outcome, Booked)
    assert set(outcome.booking.history[0].overridden_limits) == {
        BookingLimit.CLOSED,
        BookingLimit.NOT_ELIGIBLE,
        BookingLimit.MAX_BOOKINGS,
        BookingLimit.TIME_CONFLICT,
        BookingLimit.GROUP_FULL,
    }


def test_an_organiser_does_not_pass_over_the_capacity() -> None:
    full, _ = book_users(build_campaign_slot(1), "ada")
    assert decide(book, full, organised("ben"), NOW) == (full, SlotFull(full))


def test_what_groups_a_person_had_is_kept_with_the_booking() -> None:
    after, (booking,) = book_users(
        build_campaign_slot(5, user_in_groups("ada", "class:5a", "grade:5")), "ada"
    )
    assert booking.groups == ("class:5a", "grade:5")
    assert after.booking_by_id(BookingId(booking.id)) == booking
