"""The history of a booking: who changed what, when, and who came; what a change contains."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.booking import (
    Attendance,
    Booking,
    BookingAction,
    BookingStatus,
    HistoryChange,
    HistoryEntry,
    SlotId,
    history_changes,
)
from slotlock.domain.booking.booking_outcomes import BookingMoved, CheckedIn, NoShowMarked
from slotlock.domain.booking.booking_refusals import BookingNotFound, CheckInNotOpen, SlotNotStarted
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.rules.attendance import (
    CHECK_IN_OPENS_BEFORE_START,
    check_in,
    mark_no_show,
    undo_no_show,
)
from slotlock.domain.booking.rules.booking_changes import cancel, confirm, extend
from slotlock.domain.booking.slot_change import EMPTY_CHANGE, SlotChange
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    INSTANT,
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
from tests.support.domain.decisions import decide, decide_move, expire_and_promote

HELD, CONFIRMED = BookingStatus.HELD, BookingStatus.CONFIRMED
CANCELLED, EXPIRED = BookingStatus.CANCELLED, BookingStatus.EXPIRED
EVE = Role.ORGANIZER

Line = tuple[datetime, str | None, BookingAction, BookingStatus, datetime | None]
OTHER_FIELDS = [each.name for each in fields(SlotChange) if each.name != "added" and each.compare]
SOMETHING = {"is_edited": True}
SLOT, BOOKING = book_place(build_slot(), booking_request("ada"))
START, OPENS_AT = SLOT.slot.start, SLOT.slot.start - CHECK_IN_OPENS_BEFORE_START
COMMAND = change_request(BOOKING, "olga", Role.ORGANIZER)


def story(booking: Booking) -> list[Line]:
    """Return the history of a booking, one line per entry."""
    return [(e.at, e.by, e.action, e.status, e.held_until) for e in booking.history]


def test_the_history_names_every_change_with_its_user_and_time() -> None:
    full, hold = book_place(build_slot(), booking_request("ada", hold=True, organizer="eve"))
    full, _ = decide(extend, full, change_request(hold), minutes_from_now(1))
    full, _ = decide(confirm, full, change_request(hold), minutes_from_now(2))
    full, _ = decide(cancel, full, change_request(hold, "eve", EVE), minutes_from_now(3))
    assert story(full.change.ended[0]) == [
        (NOW, "eve", BookingAction.HELD, HELD, minutes_from_now(5)),
        (minutes_from_now(1), "ada", BookingAction.EXTENDED, HELD, minutes_from_now(6)),
        (minutes_from_now(2), "ada", BookingAction.CONFIRMED, CONFIRMED, None),
        (minutes_from_now(3), "eve", BookingAction.CANCELLED, CANCELLED, None),
    ]


def test_every_change_has_the_entry_before_it() -> None:
    full, hold = book_place(build_slot(), booking_request("ada", hold=True))
    after, _ = decide(confirm, full, change_request(hold), minutes_from_now(1))
    held, confirmed = after.bookings[0].history
    assert list(history_changes(after.bookings[0].history)) == [
        HistoryChange(None, held),
        HistoryChange(held, confirmed),
    ]
    assert list(history_changes(())) == []


def test_expiry_and_promotion_have_no_user() -> None:
    offered = expire_and_promote(with_waitlist(build_slot(waitlist_offer_minutes=5), "ada"), NOW)
    (ended,) = expire_and_promote(offered, minutes_from_now(9)).change.ended
    assert story(ended) == [
        (NOW, None, BookingAction.OFFERED, HELD, minutes_from_now(5)),
        (minutes_from_now(5), None, BookingAction.EXPIRED, EXPIRED, minutes_from_now(5)),
    ]
    assert ended.waited_since == NOW


def test_the_history_continues_when_an_offer_is_accepted() -> None:
    offered = expire_and_promote(with_waitlist(build_slot(waitlist_offer_minutes=5), "ada"), NOW)
    after, _ = decide(confirm, offered, change_request(offered.bookings[0]), minutes_from_now(1))
    assert [line[1:4] for line in story(after.bookings[0])] == [
        (None, BookingAction.OFFERED, HELD),
        ("ada", BookingAction.CONFIRMED, CONFIRMED),
    ]


def test_a_move_is_in_the_history_of_both_bookings() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    new = build_slot(id=SlotId("there"))
    which = change_request(booking, "eve", EVE)
    left, taken, _ = decide_move(
        old, new, which, booking_request("ada", organizer="eve"), minutes_from_now(1)
    )
    assert story(left.change.ended[0]) == [
        (NOW, "ada", BookingAction.BOOKED, CONFIRMED, None),
        (minutes_from_now(1), "eve", BookingAction.MOVED, CANCELLED, None),
    ]
    assert story(taken.bookings[0]) == [
        (minutes_from_now(1), "eve", BookingAction.MOVED, CONFIRMED, None)
    ]


def test_a_booking_names_its_user_and_the_user_who_made_it() -> None:
    _, own = book_place(build_slot(), booking_request("ada"))
    _, others = book_place(build_slot(), booking_request("ada", organizer="eve"))
    (given,) = expire_and_promote(with_waitlist(build_slot(), "ada"), NOW).bookings
    assert [b.made_by for b in (own, others, given)] == ["ada", "eve", None]
    assert {b.user_id for b in (own, others, given)} == {"ada"}


def test_live_bookings_have_no_end() -> None:
    assert {status for status in BookingStatus if status.is_live} == {HELD, CONFIRMED}
    full, (booking,) = book_users(build_slot(), "ada")
    assert booking.ended_at is None
    after, _ = decide(cancel, full, change_request(booking), minutes_from_now(1))
    assert (after.change.ended[0].created_at, after.change.ended[0].ended_at) == (
        NOW,
        minutes_from_now(1),
    )


def test_a_new_entry_leaves_the_earlier_history_unchanged() -> None:
    _, (booking,) = book_users(build_slot(), "ada")
    entry = HistoryEntry(NOW + timedelta(hours=1), None, BookingAction.CANCELLED, CANCELLED)
    assert booking.with_entry(entry).history == (*booking.history, entry)
    assert booking.status is CONFIRMED


def test_a_change_without_anything_is_empty_and_adds_nothing() -> None:
    for change in (EMPTY_CHANGE, SlotChange()):
        assert change.is_empty
        assert not change.only_adds_bookings


@pytest.mark.parametrize("name", OTHER_FIELDS)
def test_each_field_makes_a_change_more_than_added_bookings(name: str) -> None:
    value = SOMETHING.get(name, ("something",))
    only_adding = SlotChange(added=("a booking",))  # type: ignore[arg-type]
    assert only_adding.only_adds_bookings
    assert not only_adding.is_empty
    for change in (only_adding, EMPTY_CHANGE):
        changed = replace(change, **{name: value})  # type: ignore[arg-type]
        assert not changed.is_empty
        assert not changed.only_adds_bookings


def attendance_in(state: SlotState) -> Attendance:
    """Return the attendance of the only booking."""
    (booking,) = state.bookings
    return booking.attendance


def test_check_in_opens_12_hours_before_the_start() -> None:
    _, refused = decide(check_in, SLOT, COMMAND, OPENS_AT - INSTANT)
    assert refused == CheckInNotOpen(SLOT.id, OPENS_AT)
    after, outcome = decide(check_in, SLOT, COMMAND, OPENS_AT)
    assert isinstance(outcome, CheckedIn)
    assert attendance_in(after) is Attendance.CHECKED_IN
    assert outcome.booking.check_in is outcome.booking.history[-1]


def test_a_no_show_is_one_from_the_start_of_the_slot_on() -> None:
    _, refused = decide(mark_no_show, SLOT, COMMAND, START - INSTANT)
    assert refused == SlotNotStarted(SLOT.id)
    after, outcome = decide(mark_no_show, SLOT, COMMAND, START)
    assert isinstance(outcome, NoShowMarked)
    undone, _ = decide(undo_no_show, after, COMMAND, START)
    assert (attendance_in(after), attendance_in(undone)) == (
        Attendance.NO_SHOW,
        Attendance.NOT_RECORDED,
    )


def test_attendance_leaves_the_places_as_they_are() -> None:
    after, _ = decide(check_in, SLOT, COMMAND, START)
    assert (after.remaining, after.booked_count) == (SLOT.remaining, SLOT.booked_count)


@pytest.mark.parametrize("rule", [check_in, mark_no_show, undo_no_show])
def test_a_member_cannot_record_attendance(rule: Callable[..., Decision[object]]) -> None:
    command = change_request(BOOKING, "ada")
    after, refused = decide(rule, SLOT, command, START)
    assert (after, refused) == (SLOT, BookingNotFound(SLOT.id, BOOKING.id))


def test_a_moved_booking_has_no_attendance() -> None:
    checked_in, _ = decide(check_in, SLOT, COMMAND, OPENS_AT)
    other = with_facts(build_slot(), id="other", start=START + timedelta(days=1))
    request = booking_request("ada", organizer="olga")
    _, _, moved = decide_move(checked_in, other, COMMAND, request, OPENS_AT)
    assert isinstance(moved, BookingMoved)
    assert moved.booking.attendance is Attendance.NOT_RECORDED
    assert moved.old_booking.attendance is Attendance.CHECKED_IN
