"""Booking one place, or several places all or none."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import (
    BookingAction,
    BookingLimit,
    BookingStatus,
    MadeAs,
    SlotId,
)
from slotlock.domain.booking.booking_outcomes import AllBooked, NoneBooked
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    LimitReached,
    QueueOnly,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.book import SlotClaim, book
from slotlock.domain.booking.slot import MAX_HOLD_MINUTES, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.users.user import Role, UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_caller,
    build_slot,
    in_choice_group,
    users_with_bookings,
    with_facts,
    with_waitlist,
)
from tests.support.domain.campaign_builders import build_campaign_slot
from tests.support.domain.decisions import decide, decide_all


def test_a_free_place_can_be_booked() -> None:
    after, booking = book_place(build_slot(2), booking_request("ada"))
    assert after.remaining == 1
    assert after.bookings == (booking,)
    assert booking.status is BookingStatus.CONFIRMED
    assert booking.held_until is None
    assert booking.ended_at is None


def test_the_last_place_goes_to_the_first_request() -> None:
    full, _ = book_users(build_slot(2), "ada", "ben")
    assert full.is_booked
    assert decide(book, full, booking_request("cleo"), NOW) == (full, SlotFull(full.id))


@pytest.mark.parametrize("by", [None, "eve"])
def test_a_user_has_one_place_in_a_slot_by_any_booker(by: str | None) -> None:
    one, (booking,) = book_users(build_slot(5), "ada")
    again = booking_request("ada", organizer=by)
    assert decide(book, one, again, NOW) == (one, AlreadyBooked(one.id, booking))


def test_a_user_with_a_booking_gets_already_booked_in_a_full_slot() -> None:
    full, (booking,) = book_users(build_slot(1), "ada")
    assert decide(book, full, booking_request("ada"), NOW)[1] == AlreadyBooked(full.id, booking)


def test_a_slot_cannot_be_booked_from_its_start() -> None:
    tomorrow = build_slot()
    start = tomorrow.slot.start
    book_place(tomorrow, booking_request("ada"), start - timedelta(milliseconds=1))
    assert decide(book, tomorrow, booking_request("ada"), start)[1] == SlotStarted(tomorrow.id)


def test_organizers_book_for_others_after_the_start_and_the_history_names_it() -> None:
    tomorrow = build_slot()
    request = booking_request("ada", organizer="eve")
    _, booking = book_place(tomorrow, request, tomorrow.slot.start)
    assert booking.made_by == UserId("eve")
    assert booking.history[0].overridden_limits == (BookingLimit.SLOT_STARTED,)


def test_organizers_book_for_themselves_by_the_rules_of_members() -> None:
    own, eve = booking_request("eve"), build_caller("eve", Role.ORGANIZER)
    assert own.made_by(eve) == own
    assert booking_request("ada").made_by(eve).made_as is MadeAs.ORGANIZER


def test_before_the_start_an_organizer_overrides_no_limit() -> None:
    _, booking = book_place(build_slot(), booking_request("ada", organizer="eve"))
    assert (booking.user_id, booking.made_by) == (UserId("ada"), UserId("eve"))
    assert booking.history[0].overridden_limits == ()


def test_nobody_books_a_draft_or_a_cancelled_slot() -> None:
    draft, off = build_slot(status=SlotStatus.DRAFT), build_slot(status=SlotStatus.CANCELLED)
    for wanted in (booking_request("ada"), booking_request("ada", organizer="eve")):
        assert decide(book, draft, wanted, NOW)[1] == SlotNotFound(draft.id)
        assert decide(book, off, wanted, NOW)[1] == SlotCancelled(off.id)


@pytest.mark.parametrize(
    "slot",
    [
        build_slot(admission=SlotAdmission.QUEUE_ONLY),
        build_campaign_slot(admission=SlotAdmission.QUEUE_ONLY),
    ],
    ids=["slot", "campaign"],
)
def test_a_slot_for_the_queue_only_refuses_requests_that_are_not_admitted(slot: SlotState) -> None:
    request = booking_request("ada")
    assert decide(book, slot, request, NOW)[1] == QueueOnly(slot.id)
    book_place(slot, replace(request, admission=SlotAdmission.QUEUE_ONLY))


def test_a_slot_for_the_queue_only_is_hidden_first_and_booked_by_its_own_user() -> None:
    slot = build_campaign_slot(admission=SlotAdmission.QUEUE_ONLY, published=False)
    assert decide(book, slot, booking_request("ada"), NOW)[1] == SlotNotFound(slot.id)
    admitted = replace(booking_request("ada"), admission=SlotAdmission.QUEUE_ONLY)
    taken, booking = book_place(build_slot(admission=SlotAdmission.QUEUE_ONLY), admitted)
    outcome = decide(book, taken, booking_request("ada"), NOW)[1]
    assert outcome == AlreadyBooked(taken.id, booking)


def test_a_hold_occupies_a_place_for_the_hold_minutes_of_the_slot() -> None:
    after, booking = book_place(build_slot(hold_minutes=7), booking_request("ada", hold=True))
    assert after.is_booked
    assert booking.status is BookingStatus.HELD
    assert booking.history[0].action is BookingAction.HELD
    assert booking.held_until == NOW + timedelta(minutes=7)


def test_a_hold_expires_when_its_slot_starts_at_the_latest() -> None:
    tomorrow = build_slot(hold_minutes=MAX_HOLD_MINUTES)
    late = tomorrow.slot.start - timedelta(minutes=1)
    _, hold = book_place(tomorrow, booking_request("ada", hold=True), late)
    assert hold.held_until == tomorrow.slot.start


def test_an_organizer_hold_in_a_started_slot_has_the_usual_lifetime() -> None:
    tomorrow = build_slot(hold_minutes=5)
    start = tomorrow.slot.start
    _, booking = book_place(tomorrow, booking_request("ada", hold=True, organizer="eve"), start)
    assert booking.held_until == start + timedelta(minutes=5)


@pytest.mark.parametrize("by", [None, "eve"])
def test_a_free_place_belongs_to_the_waiting_list_first(by: str | None) -> None:
    # A place is free and nobody was given it yet: it is the next one's in line all the same.
    promised = with_waitlist(build_slot(1), "ben")
    assert decide(book, promised, booking_request("ada", organizer=by), NOW) == (
        promised,
        SlotFull(promised.id),
    )


def test_after_the_start_organizers_book_despite_the_waiting_list() -> None:
    begun = with_waitlist(build_slot(1), "ben")
    request = booking_request("ada", organizer="eve")
    assert book_place(begun, request, begun.slot.start)[0].is_booked


def test_a_user_has_one_booking_per_choice_group() -> None:
    _, (other,) = book_users(build_slot(id=SlotId("other")), "ada")
    here, users = in_choice_group(build_slot()), users_with_bookings("ada", other)
    refused, outcome = decide(book, here, booking_request("ada"), NOW, users=users)
    assert (refused, outcome) == (here, LimitReached(here.id, 1, other))
    book_place(here, booking_request("ben"), users=users)


def test_a_hold_in_another_slot_counts_until_it_expires() -> None:
    _, other = book_place(
        build_slot(id=SlotId("other"), hold_minutes=5), booking_request("ada", hold=True)
    )
    here, users = in_choice_group(build_slot()), users_with_bookings("ada", other)
    assert other.held_until is not None
    just_before = other.held_until - timedelta(milliseconds=1)
    _, refusal = decide(book, here, booking_request("ada"), just_before, users=users)
    assert isinstance(refusal, LimitReached)
    book_place(here, booking_request("ada"), other.held_until, users)


def test_organizers_override_the_choice_group_and_the_history_names_it() -> None:
    _, (other,) = book_users(build_slot(id=SlotId("other")), "ada")
    here, users = in_choice_group(build_slot()), users_with_bookings("ada", other)
    _, booking = book_place(here, booking_request("ada", organizer="eve"), users=users)
    assert booking.history[0].overridden_limits == (BookingLimit.ONE_OF_CHOICE,)


def two() -> dict[SlotId, SlotState]:
    """Two slots."""
    return {id_: build_slot(id=id_) for id_ in (SlotId("one"), SlotId("two"))}


def claims(*wanted: tuple[str, str]) -> list[SlotClaim]:
    """Return a claim for each pair of these slots and users."""
    return [SlotClaim(SlotId(slot_id), booking_request(name)) for slot_id, name in wanted]


def test_several_claims_are_booked_together() -> None:
    wanted = claims(("one", "ada"), ("two", "ada"))
    after, outcome = decide_all(LoadedState(two()), wanted, NOW)
    assert isinstance(outcome, AllBooked)
    assert [each.booking.id for each in outcome.booked] == [c.request.booking_id for c in wanted]
    assert [each.booked_count for each in after.values()] == [1, 1]


def test_several_places_are_held_together() -> None:
    wanted = [SlotClaim(id_, booking_request("ada", hold=True)) for id_ in two()]
    _, outcome = decide_all(LoadedState(two()), wanted, NOW)
    assert isinstance(outcome, AllBooked)
    assert {each.booking.status for each in outcome.booked} == {BookingStatus.HELD}


def test_an_organizer_overrides_the_limits_of_each_claim_by_itself() -> None:
    begun, coming = build_slot(id=SlotId("begun"), start=NOW), build_slot()
    requests = (booking_request(name, organizer="eve") for name in ("ada", "ben"))
    wanted = [SlotClaim(s.id, r) for s, r in zip((begun, coming), requests, strict=True)]
    _, outcome = decide_all(LoadedState({begun.id: begun, coming.id: coming}), wanted, NOW)
    assert isinstance(outcome, AllBooked)
    assert [each.booking.history[0].overridden_limits for each in outcome.booked] == [
        (BookingLimit.SLOT_STARTED,),
        (),
    ]


def test_all_claims_are_booked_or_none_and_each_refusal_is_returned() -> None:
    before = two()
    before[SlotId("two")], _ = book_users(before[SlotId("two")], "ben")
    wanted = claims(("one", "ada"), ("two", "ada"), ("gone", "ada"))
    after, outcome = decide_all(LoadedState(before), wanted, NOW)
    assert after == before
    refusals = (None, SlotFull(SlotId("two")), SlotNotFound(SlotId("gone")))
    assert outcome == NoneBooked(refusals)


def test_the_claims_of_one_request_are_counted_together() -> None:
    _, outcome = decide_all(LoadedState(two()), claims(("one", "ada"), ("one", "ben")), NOW)
    assert isinstance(outcome, NoneBooked)
    assert [type(each) for each in outcome.refusals] == [type(None), SlotFull]


def test_the_choice_group_limits_the_claims_of_one_request() -> None:
    before = {id_: in_choice_group(each) for id_, each in two().items()}
    loaded = LoadedState(before, users_with_bookings("ada"))
    after, outcome = decide_all(loaded, claims(("one", "ada"), ("two", "ada")), NOW)
    assert after == before
    assert isinstance(outcome, NoneBooked)
    assert [type(each) for each in outcome.refusals] == [type(None), LimitReached]


def test_slots_of_different_choice_groups_are_booked_together() -> None:
    one, other = (in_choice_group(each) for each in two().values())
    other = with_facts(other, choice_group="another week")
    loaded = LoadedState({one.id: one, other.id: other}, users_with_bookings("ada"))
    wanted = claims(("one", "ada"), ("two", "ada"))
    assert isinstance(decide_all(loaded, wanted, NOW)[1], AllBooked)
