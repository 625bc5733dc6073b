"""The record of a booking: who did what when, and what was so before and after."""

from datetime import datetime, timedelta

from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.changes import cancel, confirm, extend
from slotlock.domain.booking.history import (
    BookingAction,
    BookingStatus,
    HistoryChange,
    HistoryEntry,
    history_changes,
)
from slotlock.domain.booking.promotion import expire_and_promote
from slotlock.domain.users.user import Role
from tests.domain.booking.test_book import NOW, booked, lined_up, party, place, slot
from tests.domain.booking.test_changes import ask, minutes
from tests.support.decisions import decide, decide_move

HELD, CONFIRMED = BookingStatus.HELD, BookingStatus.CONFIRMED
CANCELLED, EXPIRED = BookingStatus.CANCELLED, BookingStatus.EXPIRED
EVE = Role.ORGANIZER

Line = tuple[datetime, str | None, BookingAction, BookingStatus, datetime | None]


def story(booking: Booking) -> list[Line]:
    """What happened to a booking."""
    return [(e.at, e.by, e.action, e.status, e.held_until) for e in booking.history]


def test_all_that_happens_to_a_booking_is_told_with_who_and_when() -> None:
    full, hold = place(slot(), party("ada", hold=True, by="eve"))
    full, _ = decide(extend, full, ask(hold), minutes(1))
    full, _ = decide(confirm, full, ask(hold), minutes(2))
    full, _ = decide(cancel, full, ask(hold, "eve", EVE), minutes(3))
    assert story(full.change.ended[0]) == [
        (NOW, "eve", BookingAction.HELD, HELD, minutes(5)),
        (minutes(1), "ada", BookingAction.EXTENDED, HELD, minutes(6)),
        (minutes(2), "ada", BookingAction.CONFIRMED, CONFIRMED, None),
        (minutes(3), "eve", BookingAction.CANCELLED, CANCELLED, None),
    ]


def test_every_change_tells_what_was_before_it_and_what_after() -> None:
    full, hold = place(slot(), party("ada", hold=True))
    after, _ = decide(confirm, full, ask(hold), minutes(1))
    held, confirmed = after.bookings[0].history
    assert list(history_changes(after.bookings[0].history)) == [
        HistoryChange(None, held),
        HistoryChange(held, confirmed),
    ]
    assert list(history_changes(())) == []


def test_what_the_clock_and_the_line_do_is_done_by_nobody() -> None:
    offered = expire_and_promote(lined_up(slot(waitlist_offer_minutes=5), "ada"), NOW)
    (ended,) = expire_and_promote(offered, minutes(9)).change.ended
    assert story(ended) == [
        (NOW, None, BookingAction.OFFERED, HELD, minutes(5)),
        (minutes(5), None, BookingAction.EXPIRED, EXPIRED, minutes(5)),
    ]
    assert ended.waited_since == NOW


def test_the_record_goes_on_where_an_offer_is_taken() -> None:
    offered = expire_and_promote(lined_up(slot(waitlist_offer_minutes=5), "ada"), NOW)
    after, _ = decide(confirm, offered, ask(offered.bookings[0]), minutes(1))
    assert [line[1:4] for line in story(after.bookings[0])] == [
        (None, BookingAction.OFFERED, HELD),
        ("ada", BookingAction.CONFIRMED, CONFIRMED),
    ]


def test_a_move_is_told_in_both_records() -> None:
    old, (booking,) = booked(slot(), "ada")
    new = slot(id=SlotId("there"))
    which = ask(booking, "eve", EVE)
    left, taken, _ = decide_move(old, new, which, party("ada", by="eve"), minutes(1))
    assert story(left.change.ended[0]) == [
        (NOW, "ada", BookingAction.BOOKED, CONFIRMED, None),
        (minutes(1), "eve", BookingAction.MOVED, CANCELLED, None),
    ]
    assert story(taken.bookings[0]) == [(minutes(1), "eve", BookingAction.MOVED, CONFIRMED, None)]


def test_a_booking_is_made_by_whoever_asked_and_for_whoever_has_it() -> None:
    _, mine = place(slot(), party("ada"))
    _, theirs = place(slot(), party("ada", by="eve"))
    (given,) = expire_and_promote(lined_up(slot(), "ada"), NOW).bookings
    assert [b.made_by for b in (mine, theirs, given)] == ["ada", "eve", None]
    assert {b.user_id for b in (mine, theirs, given)} == {"ada"}


def test_only_what_takes_a_place_has_not_ended() -> None:
    assert {status for status in BookingStatus if status.is_live} == {HELD, CONFIRMED}
    full, (booking,) = booked(slot(), "ada")
    assert booking.ended_at is None
    after, _ = decide(cancel, full, ask(booking), minutes(1))
    assert (after.change.ended[0].created_at, after.change.ended[0].ended_at) == (
        NOW,
        minutes(1),
    )


def test_one_more_thing_that_happens_leaves_what_was_told_before() -> None:
    _, (booking,) = booked(slot(), "ada")
    entry = HistoryEntry(NOW + timedelta(hours=1), None, BookingAction.CANCELLED, CANCELLED)
    assert booking.with_entry(entry).history == (*booking.history, entry)
    assert booking.status is CONFIRMED
