"""The record of a booking: who did what when, and what was so before and after."""

from datetime import datetime, timedelta

from slotlock.domain.booked import cancel, confirm, extend, move
from slotlock.domain.bookings import Booking, SlotId
from slotlock.domain.people import Role
from slotlock.domain.record import BookingStatus, Change, Deed, Entry, changes
from slotlock.domain.settling import settle
from tests.domain.test_booked import ask, minutes
from tests.domain.test_booking import NOW, booked, lined_up, party, place, slot

HELD, CONFIRMED = BookingStatus.HELD, BookingStatus.CONFIRMED
CANCELLED, EXPIRED = BookingStatus.CANCELLED, BookingStatus.EXPIRED
EVE = Role.ORGANIZER

Line = tuple[datetime, str | None, Deed, BookingStatus, datetime | None]


def story(booking: Booking) -> list[Line]:
    """What happened to a booking."""
    return [(e.at, e.by, e.deed, e.after, e.held_until) for e in booking.log]


def test_all_that_happens_to_a_booking_is_told_with_who_and_when() -> None:
    full, hold = place(slot(), party("ada", hold=True, by="eve"))
    full, _ = extend(full, ask(hold), minutes(1))
    full, _ = confirm(full, ask(hold), minutes(2))
    full, _ = cancel(full, ask(hold, "eve", EVE), minutes(3))
    assert story(full.ended[0]) == [
        (NOW, "eve", Deed.HELD, HELD, minutes(5)),
        (minutes(1), "ada", Deed.EXTENDED, HELD, minutes(6)),
        (minutes(2), "ada", Deed.CONFIRMED, CONFIRMED, None),
        (minutes(3), "eve", Deed.CANCELLED, CANCELLED, None),
    ]


def test_every_change_tells_what_was_before_it_and_what_after() -> None:
    full, hold = place(slot(), party("ada", hold=True))
    after, _ = confirm(full, ask(hold), minutes(1))
    held, confirmed = after.bookings[0].log
    assert list(changes(after.bookings[0].log)) == [Change(None, held), Change(held, confirmed)]
    assert list(changes(())) == []


def test_what_the_clock_and_the_line_do_is_done_by_nobody() -> None:
    offered = settle(lined_up(slot(offer_minutes=5), "ada"), NOW)
    (ended,) = settle(offered, minutes(9)).ended
    assert story(ended) == [
        (NOW, None, Deed.OFFERED, HELD, minutes(5)),
        (minutes(5), None, Deed.EXPIRED, EXPIRED, minutes(5)),
    ]
    assert ended.waited_since == NOW


def test_the_record_goes_on_where_an_offer_is_taken() -> None:
    offered = settle(lined_up(slot(offer_minutes=5), "ada"), NOW)
    after, _ = confirm(offered, ask(offered.bookings[0]), minutes(1))
    assert [line[1:4] for line in story(after.bookings[0])] == [
        (None, Deed.OFFERED, HELD),
        ("ada", Deed.CONFIRMED, CONFIRMED),
    ]


def test_a_move_is_told_in_both_records() -> None:
    old, (booking,) = booked(slot(), "ada")
    new = slot(id=SlotId("there"))
    which = ask(booking, "eve", EVE)
    left, taken, _ = move(old, new, which, party("ada", by="eve"), minutes(1))
    assert story(left.ended[0]) == [
        (NOW, "ada", Deed.BOOKED, CONFIRMED, None),
        (minutes(1), "eve", Deed.MOVED, CANCELLED, None),
    ]
    assert story(taken.bookings[0]) == [(minutes(1), "eve", Deed.MOVED, CONFIRMED, None)]


def test_a_booking_is_made_by_whoever_asked_and_for_whoever_has_it() -> None:
    _, mine = place(slot(), party("ada"))
    _, theirs = place(slot(), party("ada", by="eve"))
    (given,) = settle(lined_up(slot(), "ada"), NOW).bookings
    assert [b.made_by for b in (mine, theirs, given)] == ["ada", "eve", None]
    assert {b.user_id for b in (mine, theirs, given)} == {"ada"}


def test_only_what_takes_a_place_has_not_ended() -> None:
    assert {status for status in BookingStatus if status.takes_a_place} == {HELD, CONFIRMED}
    full, (booking,) = booked(slot(), "ada")
    assert booking.ended_at is None
    after, _ = cancel(full, ask(booking), minutes(1))
    assert (after.ended[0].created_at, after.ended[0].ended_at) == (NOW, minutes(1))


def test_one_more_thing_that_happens_leaves_what_was_told_before() -> None:
    _, (booking,) = booked(slot(), "ada")
    entry = Entry(NOW + timedelta(hours=1), None, Deed.CANCELLED, CANCELLED)
    assert booking.then(entry).log == (*booking.log, entry)
    assert booking.status is CONFIRMED
