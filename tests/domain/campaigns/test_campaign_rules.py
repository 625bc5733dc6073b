"""The rules that a campaign adds to bookings, moves and waitlists of its slots."""

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


def test_a_campaign_takes_bookings_from_the_instant_it_opens() -> None:
    before = build_campaign_slot()
    assert refusal_of(before, "ada", OPENS_AT - INSTANT) == NotYetOpen(before, OPENS_AT)
    assert isinstance(decide(book, before, booking_request("ada"), OPENS_AT)[1], Booked)


def test_a_campaign_takes_bookings_until_the_instant_it_closes() -> None:
    before = build_campaign_slot()
    assert isinstance(decide(book, before, booking_request("ada"), CLOSES_AT - INSTANT)[1], Booked)
    assert refusal_of(before, "ada", CLOSES_AT) == Closed(before, CLOSES_AT)


def test_a_campaign_that_is_not_published_takes_no_bookings() -> None:
    before = build_campaign_slot(published=False)
    assert refusal_of(before, "ada") == Closed(before, CLOSES_AT, published=False)


@pytest.mark.parametrize(
    ("groups", "is_eligible"),
    [
        (("grade:5", "class:5a"), True),
        (("grade:6", "class:5a"), True),
        (("grade:5", "class:5b"), False),
        (("class:5a",), False),
        ((), False),
    ],
)
def test_an_eligible_user_has_a_group_of_every_set(
    groups: tuple[str, ...], is_eligible: bool
) -> None:
    group_sets = (("grade:5", "grade:6"), ("class:5a", "class:6a"))
    before = build_campaign_slot(5, user_in_groups("ada", *groups), eligible_groups=group_sets)
    outcome = decide(book, before, booking_request("ada"), NOW)[1]
    assert isinstance(outcome, Booked) if is_eligible else outcome == NotEligible(before)


def test_a_campaign_without_group_sets_is_open_to_everyone() -> None:
    assert isinstance(decide(book, build_campaign_slot(), booking_request("ada"), NOW)[1], Booked)


def test_the_bookings_of_a_user_in_a_campaign_are_limited() -> None:
    other = replace(build_campaign_slot(max_bookings=1), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    before = build_campaign_slot(5, user_with_booking("ada", other, booking), max_bookings=1)
    assert refusal_of(before, "ada") == LimitReached(before, 1, None)
    higher_limit = build_campaign_slot(5, user_with_booking("ada", other, booking), max_bookings=2)
    assert isinstance(decide(book, higher_limit, booking_request("ada"), NOW)[1], Booked)


def test_bookings_in_other_campaigns_do_not_count_toward_the_limit() -> None:
    other = replace(build_campaign_slot(campaign_id=CampaignId("another")), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    before = build_campaign_slot(5, user_with_booking("ada", other, booking), max_bookings=1)
    assert isinstance(decide(book, before, booking_request("ada"), NOW)[1], Booked)


def weekly_meetings(first: datetime, times: int = 10) -> tuple[Meeting, ...]:
    """Return meetings of one hour each week."""
    starts = (first + timedelta(weeks=week) for week in range(times))
    return tuple(Meeting(start, start + HOUR) for start in starts)


def with_timetable(before: Slot, meetings: tuple[Meeting, ...]) -> Slot:
    """Return the slot with a timetable."""
    start, end = meetings[0].start, meetings[-1].end
    return replace(before, start=start, end=end, meetings=meetings)


def test_the_weekly_timetables_of_a_user_cannot_overlap() -> None:
    monday = NOW + timedelta(days=7)
    other = with_timetable(build_campaign_slot(forbid_overlap=True), weekly_meetings(monday))
    other, (booking,) = book_users(replace(other, id=SlotId("other")), "ada")
    ada = user_with_booking("ada", other, booking)
    overlapping = with_timetable(
        build_campaign_slot(5, ada, forbid_overlap=True), weekly_meetings(monday + HOUR / 2)
    )
    overlapping_meeting = Meeting(monday + HOUR / 2, monday + HOUR * 1.5)
    expected = TimeConflict(
        overlapping, booking, overlapping_meeting, Meeting(monday, monday + HOUR)
    )
    assert refusal_of(overlapping, "ada") == expected
    later = with_timetable(
        build_campaign_slot(5, ada, forbid_overlap=True), weekly_meetings(monday + HOUR)
    )
    assert isinstance(decide(book, later, booking_request("ada"), NOW)[1], Booked)


def test_one_overlapping_meeting_is_a_time_conflict() -> None:
    monday = NOW + timedelta(days=7)
    other = with_timetable(build_campaign_slot(forbid_overlap=True), weekly_meetings(monday))
    other, (booking,) = book_users(replace(other, id=SlotId("other")), "ada")
    sixth_monday = monday + timedelta(weeks=5)
    ada = user_with_booking("ada", other, booking)
    once = with_timetable(
        build_campaign_slot(5, ada, forbid_overlap=True), weekly_meetings(sixth_monday, 1)
    )
    assert isinstance(refusal_of(once, "ada"), TimeConflict)


def test_overlaps_are_allowed_unless_both_campaigns_forbid_them() -> None:
    other = replace(build_campaign_slot(campaign_id=CampaignId("free")), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    before = build_campaign_slot(5, user_with_booking("ada", other, booking), forbid_overlap=True)
    assert isinstance(decide(book, before, booking_request("ada"), NOW)[1], Booked)


def test_a_user_who_cannot_book_cannot_join_the_waitlist() -> None:
    before = build_campaign_slot(1, user_in_groups("ben"), eligible_groups=(("class:5a",),))
    entry = WaitlistEntry(WaitlistEntryId("w"), before.id, UserId("ben"), NOW)
    assert decide(join, before, entry, NOW) == (before, NotEligible(before))
    assert decide(join, before, entry, CLOSES_AT) == (before, Closed(before, CLOSES_AT))


def test_the_waitlist_waits_for_a_user_whose_context_is_not_loaded() -> None:
    before = with_waitlist(
        build_campaign_slot(2, user_in_groups("ada", "class:5a"), eligible_groups=(("class:5a",),)),
        "ben",
        "ada",
    )
    assert expire_and_promote(before, NOW) == before


def test_no_waiting_user_is_promoted_after_the_campaign_closed() -> None:
    full, (booking,) = book_users(
        build_campaign_slot(1, user_in_groups("ada"), user_in_groups("ben")), "ada"
    )
    waiting = with_waitlist(full, "ben")
    freed, _ = decide(cancel, waiting, BookingCommand(booking.id, build_caller("ada")), NOW)
    assert [promoted.user_id for promoted in expire_and_promote(freed, NOW).bookings] == ["ben"]
    assert expire_and_promote(freed, CLOSES_AT).bookings == ()


def test_members_can_cancel_until_the_cutoff_of_the_campaign() -> None:
    until = NOW + timedelta(minutes=5)
    one, (booking,) = book_users(build_campaign_slot(1, cancel_until=until), "ada")
    command = BookingCommand(booking.id, build_caller("ada"))
    assert decide(cancel, one, command, until) == (one, CutoffPassed(one, until))
    assert isinstance(decide(cancel, one, command, until - INSTANT)[1], BookingCancelled)


def test_a_hold_can_be_confirmed_after_the_campaign_closed() -> None:
    before, outcome = decide(
        book, build_campaign_slot(), booking_request("ada", hold=True), CLOSES_AT - INSTANT
    )
    assert isinstance(outcome, Booked)
    command = BookingCommand(outcome.booking.id, build_caller("ada"))
    assert isinstance(decide(confirm, before, command, CLOSES_AT)[1], BookingConfirmed)


def test_a_move_within_a_campaign_needs_no_second_booking() -> None:
    old, (booking,) = book_users(
        replace(build_campaign_slot(max_bookings=1), id=SlotId("other")), "ada"
    )
    new = build_campaign_slot(
        5, user_with_booking("ada", old, booking), max_bookings=1, forbid_overlap=True
    )
    _, _, outcome = decide_move(
        old, new, BookingCommand(booking.id, build_caller("ada")), booking_request("ada"), NOW
    )
    assert isinstance(outcome, BookingMoved)


def test_several_claims_of_one_user_count_together() -> None:
    one = build_campaign_slot(5, user_in_groups("ada"), max_bookings=1)
    two = replace(one, id=SlotId("two"))
    claims = [SlotClaim(slot.id, booking_request("ada")) for slot in (one, two)]
    _, outcome = decide_all({one.id: one, two.id: two}, claims, NOW)
    assert isinstance(outcome, NoneBooked)
    assert outcome.refusals[0] is None
    assert isinstance(outcome.refusals[1], LimitReached)


def test_overlapping_claims_of_one_user_name_no_booking() -> None:
    one = build_campaign_slot(5, user_in_groups("ada"), forbid_overlap=True)
    two = replace(one, id=SlotId("two"))
    claims = [SlotClaim(slot.id, booking_request("ada")) for slot in (one, two)]
    _, outcome = decide_all({one.id: one, two.id: two}, claims, NOW)
    assert isinstance(outcome, NoneBooked)
    conflict = outcome.refusals[1]
    assert isinstance(conflict, TimeConflict)
    assert conflict.booking is None


def test_claims_that_do_not_overlap_are_all_booked() -> None:
    one = build_campaign_slot(5, user_in_groups("ada"), forbid_overlap=True, max_bookings=2)
    two = replace(one, id=SlotId("two"), start=one.end, end=one.end + HOUR)
    claims = [SlotClaim(slot.id, booking_request("ada")) for slot in (one, two)]
    assert isinstance(decide_all({one.id: one, two.id: two}, claims, NOW)[1], AllBooked)


def organizer_request(name: str) -> BookingRequest:
    """Return a request of an organizer for a user."""
    return booking_request(name, organizer="organizer")


def test_an_organizer_overrides_every_limit_and_the_booking_names_each() -> None:
    other, (booking,) = book_users(
        replace(build_campaign_slot(max_bookings=1, forbid_overlap=True), id=SlotId("other")), "ada"
    )
    ben = user_in_groups("ben", "class:5a")
    ada = user_with_booking("ada", other, booking, "class:5a")
    before = build_group_limited_slot(
        GroupLimit("class:5a", 1),
        users=(ada, ben),
        max_bookings=1,
        forbid_overlap=True,
        eligible_groups=(("class:6a",),),
    )
    before, _ = decide(book, before, organizer_request("ben"), NOW)
    _, outcome = decide(book, before, organizer_request("ada"), CLOSES_AT)
    assert isinstance(outcome, Booked)
    assert set(outcome.booking.history[0].overridden_limits) == {
        BookingLimit.CLOSED,
        BookingLimit.NOT_ELIGIBLE,
        BookingLimit.MAX_BOOKINGS,
        BookingLimit.TIME_CONFLICT,
        BookingLimit.GROUP_FULL,
    }


def test_an_organizer_cannot_override_the_capacity() -> None:
    full, _ = book_users(build_campaign_slot(1), "ada")
    assert decide(book, full, organizer_request("ben"), NOW) == (full, SlotFull(full))


def test_a_booking_records_the_groups_of_its_user() -> None:
    after, (booking,) = book_users(
        build_campaign_slot(5, user_in_groups("ada", "class:5a", "grade:5")), "ada"
    )
    assert booking.groups == ("class:5a", "grade:5")
    assert after.booking_by_id(BookingId(booking.id)) == booking
