"""The history of a booking: who changed what, and when."""

from datetime import datetime, timedelta

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingStatus,
    HistoryChange,
    HistoryEntry,
    SlotId,
    history_changes,
)
from slotlock.domain.booking.rules.changes import cancel, confirm, extend
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_command,
    booking_request,
    build_slot,
    minutes_from_now,
    with_waitlist,
)
from tests.support.domain.decisions import decide, decide_move, expire_and_promote

HELD, CONFIRMED = BookingStatus.HELD, BookingStatus.CONFIRMED
CANCELLED, EXPIRED = BookingStatus.CANCELLED, BookingStatus.EXPIRED
EVE = Role.ORGANIZER

Line = tuple[datetime, str | None, BookingAction, BookingStatus, datetime | None]


def story(booking: Booking) -> list[Line]:
    """Return the history of a booking, one line per entry."""
    return [(e.at, e.by, e.action, e.status, e.held_until) for e in booking.history]


def test_the_history_names_every_change_with_its_user_and_time() -> None:
    full, hold = book_place(build_slot(), booking_request("ada", hold=True, organizer="eve"))
    full, _ = decide(extend, full, booking_command(hold), minutes_from_now(1))
    full, _ = decide(confirm, full, booking_command(hold), minutes_from_now(2))
    full, _ = decide(cancel, full, booking_command(hold, "eve", EVE), minutes_from_now(3))
    assert story(full.change.ended[0]) == [
        (NOW, "eve", BookingAction.HELD, HELD, minutes_from_now(5)),
        (minutes_from_now(1), "ada", BookingAction.EXTENDED, HELD, minutes_from_now(6)),
        (minutes_from_now(2), "ada", BookingAction.CONFIRMED, CONFIRMED, None),
        (minutes_from_now(3), "eve", BookingAction.CANCELLED, CANCELLED, None),
    ]


def test_every_change_has_the_entry_before_it() -> None:
    full, hold = book_place(build_slot(), booking_request("ada", hold=True))
    after, _ = decide(confirm, full, booking_command(hold), minutes_from_now(1))
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
    after, _ = decide(confirm, offered, booking_command(offered.bookings[0]), minutes_from_now(1))
    assert [line[1:4] for line in story(after.bookings[0])] == [
        (None, BookingAction.OFFERED, HELD),
        ("ada", BookingAction.CONFIRMED, CONFIRMED),
    ]


def test_a_move_is_in_the_history_of_both_bookings() -> None:
    old, (booking,) = book_users(build_slot(), "ada")
    new = build_slot(id=SlotId("there"))
    which = booking_command(booking, "eve", EVE)
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
    after, _ = decide(cancel, full, booking_command(booking), minutes_from_now(1))
    assert (after.change.ended[0].created_at, after.change.ended[0].ended_at) == (
        NOW,
        minutes_from_now(1),
    )


def test_a_new_entry_leaves_the_earlier_history_unchanged() -> None:
    _, (booking,) = book_users(build_slot(), "ada")
    entry = HistoryEntry(NOW + timedelta(hours=1), None, BookingAction.CANCELLED, CANCELLED)
    assert booking.with_entry(entry).history == (*booking.history, entry)
    assert booking.status is CONFIRMED
