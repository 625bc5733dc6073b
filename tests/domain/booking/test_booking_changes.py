"""Confirming, extending and cancelling a booking."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingLimit,
    BookingStatus,
    MadeAs,
    SlotId,
)
from slotlock.domain.booking.booking_outcomes import (
    BookingCancelled,
    BookingConfirmed,
    HoldExtended,
)
from slotlock.domain.booking.booking_refusals import (
    BookingNotFound,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    LimitReached,
    NotHeld,
    SlotCancelled,
    SlotStarted,
)
from slotlock.domain.booking.decision import BookingRule, refuse
from slotlock.domain.booking.rules.booking_changes import cancel, confirm, extend
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS
from slotlock.domain.users.user import Role, UserId
from tests.support.domain.builders import (
    INSTANT,
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

ORGANIZERS = (Role.ORGANIZER, Role.ADMIN)


def held(hold_minutes: int = 5) -> tuple[SlotState, Booking]:
    """Return a slot that is full with Ada's hold."""
    return book_place(build_slot(hold_minutes=hold_minutes), booking_request("ada", hold=True))


@pytest.mark.parametrize(
    ("made_as", "name", "relation", "manages"),
    [
        (None, "ben", {}, True),  # a teammate
        (MadeAs.LEADER, "ben", {}, False),
        (MadeAs.LEADER, "ben", {"leads": {"slot"}}, True),
        (MadeAs.LEADER, "cleo", {"leads": {"slot"}}, False),
        (MadeAs.GUARDIAN, "ben", {}, False),
        (MadeAs.GUARDIAN, "ben", {"leads": {"slot"}}, False),
        (MadeAs.GUARDIAN, "ben", {"acts_for": {"ada"}}, True),
        (None, "cleo", {"acts_for": {"ada"}}, True),
        (None, "cleo", {"acts_for": {"dana"}}, False),
        (MadeAs.LEADER, "ada", {}, True),
        (MadeAs.ORGANIZER, "ben", {}, False),
        (MadeAs.ORGANIZER, "ben", {"leads": {"slot"}}, False),
        (MadeAs.ORGANIZER, "ada", {}, True),
        (MadeAs.DRAW, "ben", {}, False),
        (MadeAs.DRAW, "ben", {"leads": {"slot"}}, False),
        (MadeAs.DRAW, "cleo", {"acts_for": {"ada"}}, True),
    ],
)
def test_the_booker_manages_a_booking_while_they_are_what_they_made_it_as(
    made_as: MadeAs | None, name: str, relation: dict[str, set[str]], manages: bool
) -> None:
    request = replace(booking_request("ada"), requested_by=UserId("ben"), made_as=made_as)
    state, booking = book_place(build_slot(id=SlotId("slot")), request)
    known = {key: frozenset(ids) for key, ids in relation.items()}
    change = change_request(booking, name)
    change = replace(change, caller=replace(change.caller, **known))  # type: ignore[arg-type]
    _, outcome = decide(cancel, state, change, NOW)
    assert isinstance(outcome, BookingCancelled if manages else BookingNotFound)


def test_a_confirmed_hold_does_not_expire() -> None:
    full, hold = held()
    after, outcome = decide(confirm, full, change_request(hold), minutes_from_now(4))
    assert isinstance(outcome, BookingConfirmed)
    assert outcome == BookingConfirmed(after.id, after.bookings[0])
    assert outcome.booking.status is BookingStatus.CONFIRMED
    assert outcome.booking.held_until is None
    assert after.booked_count == full.booked_count
    assert expire_and_promote(after, minutes_from_now(600)).booked_count == 1


def test_confirming_again_has_the_same_outcome_and_changes_nothing() -> None:
    full, hold = held()
    after, outcome = decide(confirm, full, change_request(hold), NOW)
    assert decide(confirm, after, change_request(hold), minutes_from_now(3)) == (after, outcome)


def test_an_expired_hold_cannot_be_confirmed_even_if_no_sweep_has_run() -> None:
    full, hold = held()
    now = expire_and_promote(full, minutes_from_now(5))
    after, outcome = decide(confirm, now, change_request(hold), minutes_from_now(5))
    assert after == now
    assert outcome == HoldExpired(now.id, now.change.ended[0])
    assert isinstance(
        decide(
            confirm,
            expire_and_promote(full, minutes_from_now(5) - INSTANT),
            change_request(hold),
            NOW,
        )[1],
        BookingConfirmed,
    )


def test_organizers_confirm_for_others_and_the_history_names_them() -> None:
    full, hold = held()
    after, _ = decide(confirm, full, change_request(hold, "eve", Role.ORGANIZER), NOW)
    assert after.bookings[0].history[-1].by == "eve"
    assert after.bookings[0].history[-1].overridden_limits == ()


@pytest.mark.parametrize("forced", ["hold", "other", None])
def test_what_an_organizer_forced_neither_rules_out_a_hold_nor_is_ruled_out(
    forced: str | None,
) -> None:
    _, hold = book_place(
        in_choice_group(build_slot(hold_minutes=5)), booking_request("ada", hold=True)
    )
    _, other = book_place(build_slot(id="other"), booking_request("ada"))
    if forced == "hold":
        hold = overriding(hold)
    elif forced == "other":
        other = overriding(other)
    full = in_choice_group(build_slot(hold_minutes=5)).with_booking(hold)
    users = users_with_bookings("ada", other)
    _, confirmed = decide(confirm, full, change_request(hold), NOW, users=users)
    _, extended = decide(extend, full, change_request(hold), minutes_from_now(3), users=users)
    expected = (BookingConfirmed, HoldExtended) if forced else (LimitReached, HoldLimitReached)
    assert (type(confirmed), type(extended)) == expected
    by_eve = change_request(hold, "eve", Role.ORGANIZER)
    after, _ = decide(confirm, full, by_eve, NOW, users=users)
    assert after.bookings[0].history[-1].overridden_limits == (BookingLimit.ONE_OF_CHOICE,)


def overriding(booking: Booking) -> Booking:
    """Return the booking as an organizer makes it against a limit."""
    entry = replace(
        booking.history[0], by=UserId("eve"), overridden_limits=(BookingLimit.ONE_OF_CHOICE,)
    )
    return replace(booking, history=(entry,))


def test_a_hold_made_after_the_start_can_be_confirmed_until_it_expires() -> None:
    tomorrow = build_slot()
    full, hold = book_place(
        tomorrow, booking_request("ada", hold=True, organizer="eve"), tomorrow.slot.start
    )
    after, outcome = decide(confirm, full, change_request(hold), full.slot.start)
    assert isinstance(outcome, BookingConfirmed)
    assert after.bookings[0].history[-1].overridden_limits == ()


def test_nothing_in_a_cancelled_slot_can_be_confirmed_or_extended() -> None:
    for full, booking in (held(), book_place(build_slot(), booking_request("ada"))):
        off = with_facts(full, status=SlotStatus.CANCELLED)
        for rule in (confirm, extend):
            assert decide(rule, off, change_request(booking), NOW) == (off, SlotCancelled(off.id))


def test_a_cancelled_hold_has_ended_and_cannot_be_confirmed_or_extended() -> None:
    full, hold = held()
    after, _ = decide(cancel, full, change_request(hold), NOW)
    for rule in (confirm, extend):
        not_found = BookingNotFound(full.id, hold.id)
        assert decide(rule, after, change_request(hold), NOW) == (after, not_found)
        assert rule.ended_outcome(after.change.ended[0]) is None


def test_a_booking_of_another_user_is_reported_as_not_found() -> None:
    full, hold = held()
    ran_out = expire_and_promote(full, minutes_from_now(5))
    command = change_request(hold, "ben")
    not_found = refuse(BookingNotFound(full.id, hold.id))
    for state, now in ((full, NOW), (ran_out, minutes_from_now(5))):
        for rule in (confirm, extend, cancel):
            assert rule.decide(state, NO_CONTEXTS, command, now) == not_found


def test_an_extended_hold_lasts_as_long_as_a_new_hold() -> None:
    full, hold = held()
    after, outcome = decide(extend, full, change_request(hold), minutes_from_now(3))
    assert isinstance(outcome, HoldExtended)
    assert outcome.booking.held_until == minutes_from_now(8)
    assert after.bookings == (outcome.booking,)
    assert expire_and_promote(after, minutes_from_now(5)).is_booked
    assert expire_and_promote(after, minutes_from_now(8)).remaining == 1


def test_extensions_never_pass_the_maximum_of_an_hour() -> None:
    full, hold = held(hold_minutes=25)
    extensions = 0
    for minute in range(0, 60, 5):
        after, outcome = decide(extend, full, change_request(hold), minutes_from_now(minute))
        if isinstance(outcome, HoldLimitReached):
            assert after == full
        else:
            extensions += 1
        full = after
    assert extensions > 3
    assert full.bookings[0].held_until == minutes_from_now(60)
    assert expire_and_promote(full, minutes_from_now(60)).remaining == 1


def test_an_extension_by_less_than_half_a_minute_adds_nothing_to_the_history() -> None:
    full, hold = held()
    request, soon = change_request(hold), NOW + timedelta(seconds=30)
    assert decide(extend, full, request, soon - INSTANT) == (full, HoldExtended(full.id, hold))
    assert len(decide(extend, full, request, soon)[0].bookings[0].history) == 2


def test_an_extended_hold_expires_when_its_slot_starts_at_the_latest() -> None:
    soon = build_slot(start=minutes_from_now(10), end=minutes_from_now(20))
    full, hold = book_place(soon, booking_request("ada", hold=True))
    after, _ = decide(extend, full, change_request(hold), minutes_from_now(4))
    full, _ = decide(extend, after, change_request(hold), minutes_from_now(8))
    assert full.bookings[0].held_until == full.slot.start
    assert isinstance(
        decide(extend, full, change_request(hold), minutes_from_now(9))[1], HoldLimitReached
    )


def test_an_extension_never_shortens_a_hold() -> None:
    full, hold = held(hold_minutes=30)
    shorter = with_facts(full, hold_minutes=1)
    assert decide(extend, shorter, change_request(hold), NOW) == (
        shorter,
        HoldLimitReached(shorter.id, hold),
    )


def test_an_offer_from_the_waiting_list_cannot_be_extended() -> None:
    offered = expire_and_promote(
        with_waitlist(build_slot(waitlist_offer_minutes=1), "ada", "ben"), NOW
    )
    assert isinstance(
        decide(extend, offered, change_request(offered.bookings[0]), NOW)[1], HoldLimitReached
    )


def test_a_confirmed_booking_cannot_be_extended() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    assert decide(extend, full, change_request(booking), NOW) == (full, NotHeld(full.id, booking))


@pytest.mark.parametrize("rule", [extend, cancel])
def test_an_expired_hold_cannot_be_extended_or_cancelled(rule: BookingRule[..., object]) -> None:
    full, hold = held()
    late = minutes_from_now(5)
    now = expire_and_promote(full, late)
    expired = HoldExpired(full.id, now.change.ended[0])
    assert decide(rule, now, change_request(hold), late) == (now, expired)
    # The same after the end of the hold was written.
    assert rule.ended_outcome(now.change.ended[0]) == expired


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("rule", [confirm, extend, cancel])
def test_an_expired_hold_can_be_neither_confirmed_nor_extended_nor_cancelled(
    rule: BookingRule[[], object], started: bool
) -> None:
    full, hold = held()
    if started:
        full = with_facts(full, start=NOW)
    ended = expire_and_promote(full, minutes_from_now(5))
    _, outcome = decide(rule, ended, change_request(hold), minutes_from_now(5))
    assert isinstance(outcome, HoldExpired)


def test_a_booking_ended_with_its_slot_and_cannot_be_changed_any_more() -> None:
    for hold in (True, False):
        full, booking = book_place(build_slot(), booking_request("ada", hold=hold))
        off, other = with_facts(full, status=SlotStatus.CANCELLED), build_slot(id="other")
        command, start = change_request(booking), off.slot.start
        assert decide(cancel, off, command, start) == (off, BookingCancelled(off.id, booking))
        assert decide(extend, off, command, NOW) == (off, SlotCancelled(off.id))
        for new in (other, off):
            refused = (off, new, SlotCancelled(off.id))
            assert decide_move(off, new, command, booking_request("ada"), NOW) == refused


def test_the_place_of_a_cancelled_booking_is_free_at_once() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    after, outcome = decide(cancel, full, change_request(booking), NOW)
    assert (after.remaining, after.bookings) == (1, ())
    assert outcome == BookingCancelled(after.id, after.change.ended[0])
    assert after.change.ended[0].ended_at == NOW


def test_the_place_of_a_cancelled_booking_goes_to_the_waiting_list_in_the_same_write() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    after, _ = decide(cancel, with_waitlist(full, "ben"), change_request(booking), NOW)
    assert [b.user_id for b in expire_and_promote(after, NOW).bookings] == ["ben"]


def test_organizers_cancel_for_others_and_the_history_names_them() -> None:
    full, (booking,) = book_users(build_slot(), "ada")
    after, _ = decide(cancel, full, change_request(booking, "eve", Role.ORGANIZER), NOW)
    last = after.change.ended[0].history[-1]
    assert (last.by, last.action, last.overridden_limits) == ("eve", BookingAction.CANCELLED, ())


@pytest.mark.parametrize("role", ORGANIZERS)
@pytest.mark.parametrize(
    ("before_start", "refusal", "limit"),
    [(30, CutoffPassed, BookingLimit.CANCEL_CUTOFF), (0, SlotStarted, BookingLimit.SLOT_STARTED)],
)
def test_organizers_cancel_after_the_cutoff_and_the_history_names_it(
    before_start: int, refusal: type, limit: BookingLimit, role: Role
) -> None:
    full, (booking,) = book_users(build_slot(cancel_cutoff_minutes=30), "ada")
    now = full.slot.start - timedelta(minutes=before_start)
    after, outcome = decide(cancel, full, change_request(booking), now)
    assert (after, type(outcome)) == (full, refusal)
    done, _ = decide(cancel, full, change_request(booking, "eve", role), now)
    assert done.change.ended[0].history[-1].overridden_limits == (limit,)


def test_the_cutoff_applies_from_its_exact_time() -> None:
    full, (booking,) = book_users(build_slot(cancel_cutoff_minutes=30), "ada")
    assert isinstance(
        decide(cancel, full, change_request(booking), full.slot.cancel_cutoff - INSTANT)[1],
        BookingCancelled,
    )
    cutoff = full.slot.cancel_cutoff
    assert decide(cancel, full, change_request(booking), cutoff)[1] == CutoffPassed(full.id, cutoff)


def test_a_hold_can_be_cancelled_after_the_cutoff_and_after_an_earlier_start() -> None:
    late = build_slot(cancel_cutoff_minutes=30).slot.start - timedelta(minutes=10)
    full, hold = book_place(
        build_slot(cancel_cutoff_minutes=30), booking_request("ada", hold=True), late
    )
    for state in (full, with_facts(full, start=late)):
        after, outcome = decide(cancel, state, change_request(hold), late)
        assert isinstance(outcome, BookingCancelled)
        assert after.change.ended[0].history[-1].overridden_limits == ()


def test_a_move_of_an_unknown_booking_changes_nothing() -> None:
    full, hold = held()
    other = build_slot(id="other")
    outcome = decide_move(full, other, change_request(hold, "ben"), booking_request("ben"), NOW)
    assert outcome == (full, other, BookingNotFound(full.id, hold.id))
