"""The rules that a campaign adds to bookings, moves and waitlists of its slots."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.booking import (
    BookingId,
    BookingLimit,
    MadeAs,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.booking_outcomes import (
    AllBooked,
    Booked,
    BookingCancelled,
    BookingConfirmed,
    BookingMoved,
    NoneBooked,
    WaitlistLeft,
)
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    Closed,
    CutoffPassed,
    DrawOnly,
    EmailNotVerified,
    LimitReached,
    NotEligible,
    NotYetOpen,
    QueueOnly,
    SlotFull,
    SlotNotFound,
    SlotStarted,
    TimeConflict,
)
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.book import BookingRequest, SlotClaim, book
from slotlock.domain.booking.rules.booking_changes import cancel, confirm
from slotlock.domain.booking.rules.waitlist import join, leave
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    HOUR,
    INSTANT,
    NOW,
    book_place,
    book_users,
    booking_request,
    change_request,
    in_choice_group,
    users_with_bookings,
    with_facts,
    with_waitlist,
)
from tests.support.domain.campaign_builders import (
    CLOSES_AT,
    OPENS_AT,
    build_campaign_slot,
    build_group_limited_slot,
    build_terms,
    contexts,
    refusal_of,
    user_in_groups,
    user_with_booking,
)
from tests.support.domain.decisions import decide, decide_all, decide_move, expire_and_promote


def test_a_campaign_takes_bookings_from_the_instant_it_opens() -> None:
    before = build_campaign_slot()
    assert refusal_of(before, "ada", OPENS_AT - INSTANT) == NotYetOpen(before.id, OPENS_AT)
    assert isinstance(decide(book, before, booking_request("ada"), OPENS_AT)[1], Booked)


def test_a_campaign_takes_bookings_until_the_instant_it_closes() -> None:
    before = build_campaign_slot()
    assert isinstance(decide(book, before, booking_request("ada"), CLOSES_AT - INSTANT)[1], Booked)
    assert refusal_of(before, "ada", CLOSES_AT) == Closed(before.id, CLOSES_AT)


@pytest.mark.parametrize("status", list(SlotStatus))
def test_a_slot_of_an_unpublished_campaign_does_not_exist_for_users(status: SlotStatus) -> None:
    before = with_facts(build_campaign_slot(published=False), status=status)
    started = before.slot.start + INSTANT
    for now in (OPENS_AT - INSTANT, NOW, CLOSES_AT, started):
        assert refusal_of(before, "ada", now) == SlotNotFound(before.id)
    booked, _ = book_users(build_campaign_slot(), "ada")
    hidden = with_facts(booked, status=status, terms=before.slot.terms)
    assert refusal_of(hidden, "ada") == SlotNotFound(before.id)
    entry = WaitlistEntry(WaitlistEntryId("w"), before.id, UserId("ada"), NOW)
    assert decide(join, before, entry, NOW) == (before, SlotNotFound(before.id))
    assert decide(leave, before, entry.user_id, NOW) == (before, SlotNotFound(before.id))


def test_users_of_an_unpublished_campaign_can_cancel_and_stop_waiting() -> None:
    booked, (booking,) = book_users(build_campaign_slot(1), "ada")
    hidden = with_facts(with_waitlist(booked, "ben"), terms=build_terms(published=False))
    assert isinstance(decide(cancel, hidden, change_request(booking), NOW)[1], BookingCancelled)
    assert decide(leave, hidden, UserId("ben"), NOW)[1] == WaitlistLeft(hidden.id)


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
def test_eligible_users_match_every_set(groups: tuple[str, ...], is_eligible: bool) -> None:
    group_sets = (("grade:5", "grade:6"), ("class:5a", "class:6a"))
    before = build_campaign_slot(eligible_groups=group_sets)
    users = contexts(user_in_groups("ada", *groups))
    _, outcome = decide(book, before, booking_request("ada"), NOW, users=users)
    assert isinstance(outcome, Booked) if is_eligible else outcome == NotEligible(before.id)


@pytest.mark.parametrize("of_site", [True, False])
def test_a_campaign_or_the_site_can_require_a_verified_address(of_site: bool) -> None:
    before = build_campaign_slot(require_verified_email=not of_site)
    ada = replace(user_in_groups("ada"), email_verified=False)
    users = replace(contexts(ada, user_in_groups("ben")), require_verified_email=of_site)
    assert refusal_of(before, "ada", users=users) == EmailNotVerified(before.id)
    book_place(before, booking_request("ben"), users=users)
    _, outcome = decide(book, before, organizer_request("ada"), NOW, users=users)
    assert isinstance(outcome, Booked)
    [overridden] = outcome.booking.history[0].overridden_limits
    assert overridden is BookingLimit.EMAIL_NOT_VERIFIED
    entry = WaitlistEntry(WaitlistEntryId("w"), before.id, UserId("ada"), NOW)
    assert decide(join, before, entry, NOW, users=users)[1] == EmailNotVerified(before.id)


def test_a_campaign_without_group_sets_is_open_to_everyone() -> None:
    assert isinstance(decide(book, build_campaign_slot(), booking_request("ada"), NOW)[1], Booked)


def test_the_bookings_of_a_user_in_a_campaign_are_limited() -> None:
    other = with_facts(build_campaign_slot(max_bookings=1), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    users = contexts(user_with_booking("ada", other, booking))
    before = build_campaign_slot(max_bookings=1)
    assert refusal_of(before, "ada", users=users) == LimitReached(before.id, 1, None)
    higher_limit = build_campaign_slot(max_bookings=2)
    book_place(higher_limit, booking_request("ada"), users=users)


def test_bookings_in_other_campaigns_do_not_count_toward_the_limit() -> None:
    other = with_facts(build_campaign_slot(campaign_id=CampaignId("another")), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    users = contexts(user_with_booking("ada", other, booking))
    book_place(build_campaign_slot(max_bookings=1), booking_request("ada"), users=users)


def weekly_meetings(first: datetime, times: int = 10) -> tuple[Meeting, ...]:
    """Return meetings of one hour each week."""
    starts = (first + timedelta(weeks=week) for week in range(times))
    return tuple(Meeting(start, start + HOUR) for start in starts)


def with_timetable(before: SlotState, meetings: tuple[Meeting, ...]) -> SlotState:
    """Return the slot with a timetable."""
    start, end = meetings[0].start, meetings[-1].end
    return with_facts(before, start=start, end=end, meetings=meetings)


def test_the_weekly_timetables_of_a_user_cannot_overlap() -> None:
    monday = NOW + timedelta(days=7)
    other = with_timetable(build_campaign_slot(forbid_overlap=True), weekly_meetings(monday))
    other, (booking,) = book_users(with_facts(other, id=SlotId("other")), "ada")
    users = contexts(user_with_booking("ada", other, booking))
    overlapping = with_timetable(
        build_campaign_slot(forbid_overlap=True), weekly_meetings(monday + HOUR / 2)
    )
    overlapping_meeting = Meeting(monday + HOUR / 2, monday + HOUR * 1.5)
    expected = TimeConflict(
        overlapping.id, booking, overlapping_meeting, Meeting(monday, monday + HOUR)
    )
    assert refusal_of(overlapping, "ada", users=users) == expected
    later = with_timetable(build_campaign_slot(forbid_overlap=True), weekly_meetings(monday + HOUR))
    book_place(later, booking_request("ada"), users=users)


def test_one_overlapping_meeting_is_a_time_conflict() -> None:
    monday = NOW + timedelta(days=7)
    other = with_timetable(build_campaign_slot(forbid_overlap=True), weekly_meetings(monday))
    other, (booking,) = book_users(with_facts(other, id=SlotId("other")), "ada")
    sixth_monday = monday + timedelta(weeks=5)
    users = contexts(user_with_booking("ada", other, booking))
    once = with_timetable(
        build_campaign_slot(forbid_overlap=True), weekly_meetings(sixth_monday, 1)
    )
    assert isinstance(refusal_of(once, "ada", users=users), TimeConflict)


def test_overlaps_are_allowed_unless_both_campaigns_forbid_them() -> None:
    other = with_facts(build_campaign_slot(campaign_id=CampaignId("free")), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    users = contexts(user_with_booking("ada", other, booking))
    book_place(build_campaign_slot(forbid_overlap=True), booking_request("ada"), users=users)


def test_a_user_who_cannot_book_cannot_join_the_waitlist() -> None:
    before = build_campaign_slot(1, eligible_groups=(("class:5a",),))
    users = contexts(user_in_groups("ben"))
    entry = WaitlistEntry(WaitlistEntryId("w"), before.id, UserId("ben"), NOW)
    assert decide(join, before, entry, NOW, users=users) == (before, NotEligible(before.id))
    closed = Closed(before.id, CLOSES_AT)
    assert decide(join, before, entry, CLOSES_AT, users=users) == (before, closed)


def test_the_waitlist_waits_for_a_user_whose_context_is_not_loaded() -> None:
    users = contexts(user_in_groups("ada", "class:5a"))
    empty = build_campaign_slot(2, eligible_groups=(("class:5a",),))
    before = with_waitlist(empty, "ben", "ada", users=users)
    assert expire_and_promote(before, NOW, users) == before


@pytest.mark.parametrize(
    "closed", [{"closes_at": NOW}, {"published": False}, {"opens_at": NOW + INSTANT}]
)
def test_a_campaign_promotes_waiting_users_only_while_it_is_open(closed: dict[str, object]) -> None:
    users = contexts(user_in_groups("ada"), user_in_groups("ben"))
    full, (booking,) = book_users(build_campaign_slot(1), "ada", users=users)
    waiting = with_waitlist(full, "ben", users=users)
    freed, _ = decide(cancel, waiting, change_request(booking), NOW)
    shut = with_facts(freed, terms=build_terms(**closed))
    assert expire_and_promote(shut, NOW, users) == shut
    reopened = with_facts(shut, terms=freed.slot.terms)
    promoted = expire_and_promote(reopened, NOW, users).bookings
    assert [booking.user_id for booking in promoted] == ["ben"]


def test_members_can_cancel_until_the_cutoff_of_the_campaign() -> None:
    until = NOW + timedelta(minutes=5)
    one, (booking,) = book_users(build_campaign_slot(1, cancel_until=until), "ada")
    command = change_request(booking)
    refusal = CutoffPassed(one.id, until)
    assert decide(cancel, one, command, until) == (one, refusal)
    free = with_facts(one, id=SlotId("free"))
    assert decide_move(one, free, command, booking_request("ada"), until)[2] == refusal
    assert isinstance(decide(cancel, one, command, until - INSTANT)[1], BookingCancelled)


@pytest.mark.parametrize(
    "changed",
    [
        {"closes_at": NOW},
        {"published": False},
        {"eligible_groups": (("class:6a",),)},
        {"group_limits": (GroupLimit("class:5a", 1),)},
    ],
)
def test_a_hold_survives_any_change_of_the_campaign(changed: dict[str, object]) -> None:
    users = contexts(user_in_groups("ada", "class:5a"))
    request = booking_request("ada", hold=True)
    held, hold = book_place(build_campaign_slot(), request, users=users)
    state = with_facts(held, terms=build_terms(**changed))
    state = replace(state, group_counts={"class:5a": 1})
    _, outcome = decide(confirm, state, change_request(hold), NOW, users=users)
    assert isinstance(outcome, BookingConfirmed)
    assert outcome.booking.history[-1].overridden_limits == ()


def test_a_move_within_a_campaign_needs_no_second_booking() -> None:
    other = with_facts(build_campaign_slot(max_bookings=1), id=SlotId("other"))
    old, (booking,) = book_users(other, "ada")
    new = build_campaign_slot(max_bookings=1, forbid_overlap=True)
    users = contexts(user_with_booking("ada", old, booking))
    command = change_request(booking)
    _, _, outcome = decide_move(old, new, command, booking_request("ada"), NOW, users)
    assert isinstance(outcome, BookingMoved)


def decide_claims_of_ada(*slots: SlotState) -> AllBooked | NoneBooked:
    """Return the outcome of one request of a user for a place in each of these slots."""
    loaded = LoadedState({state.id: state for state in slots}, contexts(user_in_groups("ada")))
    claims = [SlotClaim(state.id, booking_request("ada")) for state in slots]
    return decide_all(loaded, claims, NOW)[1]


def test_several_claims_of_one_user_count_together() -> None:
    one = build_campaign_slot(max_bookings=1)
    outcome = decide_claims_of_ada(one, with_facts(one, id=SlotId("two")))
    assert isinstance(outcome, NoneBooked)
    assert outcome.refusals[0] is None
    assert isinstance(outcome.refusals[1], LimitReached)


def test_overlapping_claims_of_one_user_name_no_booking() -> None:
    one = build_campaign_slot(forbid_overlap=True)
    outcome = decide_claims_of_ada(one, with_facts(one, id=SlotId("two")))
    assert isinstance(outcome, NoneBooked)
    conflict = outcome.refusals[1]
    assert isinstance(conflict, TimeConflict)
    assert conflict.booking is None


def test_claims_that_do_not_overlap_are_all_booked() -> None:
    one = build_campaign_slot(forbid_overlap=True, max_bookings=2)
    end = one.slot.end
    two = with_facts(one, id=SlotId("two"), start=end, end=end + HOUR)
    assert isinstance(decide_claims_of_ada(one, two), AllBooked)


def organizer_request(name: str) -> BookingRequest:
    """Return a request of an organizer for a user."""
    return booking_request(name, organizer="organizer")


def test_an_organizer_overrides_every_limit_and_the_booking_names_each() -> None:
    other = with_facts(build_campaign_slot(max_bookings=1, forbid_overlap=True), id=SlotId("other"))
    other, (booking,) = book_users(other, "ada")
    ben = user_in_groups("ben", "class:5a")
    ada = user_with_booking("ada", other, booking, "class:5a")
    users = contexts(ada, ben)
    before = build_group_limited_slot(
        GroupLimit("class:5a", 1),
        max_bookings=1,
        forbid_overlap=True,
        eligible_groups=(("class:6a",),),
    )
    before, _ = decide(book, before, organizer_request("ben"), NOW, users=users)
    _, outcome = decide(book, before, organizer_request("ada"), CLOSES_AT, users=users)
    assert isinstance(outcome, Booked)
    assert set(outcome.booking.history[0].overridden_limits) == {
        BookingLimit.CLOSED,
        BookingLimit.NOT_ELIGIBLE,
        BookingLimit.MAX_BOOKINGS,
        BookingLimit.TIME_CONFLICT,
        BookingLimit.GROUP_FULL,
    }


def test_an_organizer_books_for_a_user_in_a_campaign_that_is_not_open_or_not_published() -> None:
    before = build_campaign_slot(published=False)
    early = build_campaign_slot(opens_at=CLOSES_AT, closes_at=CLOSES_AT + HOUR)
    for slot, limit in ((before, BookingLimit.CLOSED), (early, BookingLimit.NOT_YET_OPEN)):
        _, booking = book_place(slot, organizer_request("ada"))
        assert booking.history[0].overridden_limits == (limit,)
    draft = with_facts(before, status=SlotStatus.DRAFT)
    assert decide(book, draft, organizer_request("ada"), NOW)[1] == SlotNotFound(before.id)


def test_an_organizer_cannot_override_the_capacity() -> None:
    full, _ = book_users(build_campaign_slot(1), "ada")
    assert decide(book, full, organizer_request("ben"), NOW) == (full, SlotFull(full.id))


def test_a_booking_records_the_groups_of_its_user() -> None:
    users = contexts(user_in_groups("ada", "class:5a", "grade:5"))
    after, (booking,) = book_users(build_campaign_slot(), "ada", users=users)
    assert booking.groups == ("class:5a", "grade:5")
    assert after.booking_by_id(BookingId(booking.id)) == booking


@pytest.mark.parametrize("where", ["campaign", "slot"])
def test_until_a_draw_is_published_only_organizers_book_and_nobody_waits(where: str) -> None:
    slot = with_facts(build_campaign_slot(2), admission=SlotAdmission.DRAW)
    if where == "campaign":
        slot = build_campaign_slot(2, admission=SlotAdmission.DRAW)
    now, ada = OPENS_AT, booking_request("ada")
    queued = replace(ada, admission=SlotAdmission.QUEUE_ONLY)
    for request in (ada, queued):
        assert book(slot, NO_CONTEXTS, request, now).outcome == DrawOnly(slot.id)
    for_ada = booking_request("ada", organizer="olga")
    for request in (replace(for_ada, admission=SlotAdmission.DRAW), drawn(ada)):
        assert isinstance(book(slot, NO_CONTEXTS, request, now).outcome, Booked)
    entry = WaitlistEntry(WaitlistEntryId("w"), slot.id, UserId("ada"), now)
    assert join(slot, NO_CONTEXTS, entry, now).outcome == DrawOnly(slot.id)


def test_a_slot_behind_the_queue_takes_what_passed_it_also_of_organizers_and_draws() -> None:
    slot, ada = build_campaign_slot(2, admission=SlotAdmission.QUEUE_ONLY), booking_request("ada")
    assert book(slot, NO_CONTEXTS, ada, OPENS_AT).outcome == QueueOnly(slot.id)
    for admission in (SlotAdmission.QUEUE_ONLY, SlotAdmission.DRAW):
        request = replace(ada, admission=admission)
        assert isinstance(book(slot, NO_CONTEXTS, request, OPENS_AT).outcome, Booked)


def test_a_drawn_place_needs_no_open_campaign_but_a_slot_that_has_not_started() -> None:
    slot = build_campaign_slot(1)
    for now in (OPENS_AT - HOUR, CLOSES_AT + INSTANT):
        decision = book(slot, NO_CONTEXTS, drawn(booking_request("ada")), now)
        assert isinstance(decision.outcome, Booked)
    started = book(slot, NO_CONTEXTS, drawn(booking_request("ada")), slot.slot.start)
    assert started.outcome == SlotStarted(slot.id)


def test_no_limit_refuses_a_place_that_a_draw_gave() -> None:
    other = with_facts(build_campaign_slot(forbid_overlap=True), id=SlotId("other"))
    elsewhere, (booking,) = book_users(other, "ada")
    busy = contexts(user_with_booking("ada", elsewhere, booking))
    in_5a = contexts(user_in_groups("ada", "5a"), user_in_groups("ben", "5a"))
    limited = build_group_limited_slot(GroupLimit("5a", 1))
    unverified = contexts(replace(user_in_groups("ada"), email_verified=False))
    waiting = with_waitlist(book_users(build_campaign_slot(1), "ben")[0], "cem")
    scenes = [
        (build_campaign_slot(eligible_groups=(("6b",),)), in_5a),
        (build_campaign_slot(require_verified_email=True), unverified),
        (build_campaign_slot(max_bookings=1), busy),
        (build_campaign_slot(forbid_overlap=True), busy),
        (in_choice_group(build_campaign_slot()), users_with_bookings("ada", booking)),
        (book_users(limited, "ben", users=in_5a)[0], in_5a),
        (with_facts(waiting, capacity=2), NO_CONTEXTS),
    ]
    for slot, users in scenes:
        request = booking_request("ada")
        assert not isinstance(book(slot, users, request, NOW).outcome, Booked)
        assert isinstance(book(slot, users, drawn(request), NOW).outcome, Booked)


def test_a_drawn_place_needs_a_free_place_and_is_no_second_one() -> None:
    full, (booking,) = book_users(build_campaign_slot(1), "ben")
    for name, refusal in (("ada", SlotFull(full.id)), ("ben", AlreadyBooked(full.id, booking))):
        request = drawn(booking_request(name))
        assert book(full, NO_CONTEXTS, request, NOW).outcome == refusal


def drawn(request: BookingRequest) -> BookingRequest:
    """Return the request of a draw for the same user."""
    return replace(request, admission=SlotAdmission.DRAW, made_as=MadeAs.DRAW)
