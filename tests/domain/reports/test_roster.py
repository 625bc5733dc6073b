"""Rosters: their rows and the counts of places."""

from datetime import timedelta

from slotlock.domain.booking.booking import BookingId, BookingStatus
from slotlock.domain.booking.slot import SlotCancellation, SlotStatus
from slotlock.domain.reports.roster import PlaceCounts, RosterUser, build_roster, user_ids_in
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    with_facts,
    with_waitlist,
)

ADA, BEN, OLGA = UserId("ada"), UserId("ben"), UserId("olga")
USERS = {
    ADA: RosterUser("Ada", "ada@slotlock.test", ("5a",)),
    BEN: RosterUser("Ben", "ben@slotlock.test"),
    OLGA: RosterUser("Olga", "olga@slotlock.test"),
}


def test_a_roster_names_the_users_and_the_creators_of_their_bookings() -> None:
    slot, _ = book_users(build_slot(3), "ada")
    slot, _ = book_place(slot, booking_request("ben", organizer="olga"))
    assert user_ids_in(slot) == {ADA, BEN, OLGA}
    roster = build_roster(slot, USERS, NOW)
    assert [(row.name, row.groups, row.made_by) for row in roster.rows] == [
        ("Ada", ("5a",), None),
        ("Ben", (), "Olga"),
    ]
    assert roster.counts == PlaceCounts(places=3, confirmed=2, free=1)


def test_a_hold_is_in_the_roster_until_it_expires() -> None:
    slot, hold = book_place(build_slot(2), booking_request("ada", hold=True))
    until = hold.held_until
    assert until is not None
    before = build_roster(slot, USERS, until - timedelta(milliseconds=1))
    assert [(row.status, row.held_until) for row in before.rows] == [(BookingStatus.HELD, until)]
    assert before.counts == PlaceCounts(places=2, held=1, free=1)
    assert build_roster(slot, USERS, until).counts == PlaceCounts(places=2, free=2)


def test_a_place_for_the_waitlist_is_not_free() -> None:
    slot, _ = book_place(build_slot(1), booking_request("ada", hold=True))
    slot = with_waitlist(slot, "ben")
    later = NOW + timedelta(hours=1)
    assert build_roster(slot, USERS, later).counts == PlaceCounts(places=1, waiting=1)


def test_bookings_of_a_cancelled_slot_are_cancelled_and_no_place_is_free() -> None:
    slot, _ = book_users(build_slot(3), "ada", "ben")
    cancelled_slot = with_facts(
        slot, status=SlotStatus.CANCELLED, cancellation=SlotCancellation(NOW, OLGA)
    )
    roster = build_roster(cancelled_slot, USERS, NOW)
    assert {row.status for row in roster.rows} == {BookingStatus.CANCELLED}
    assert roster.counts == PlaceCounts(places=3, cancelled=2)


def test_an_unknown_user_has_an_empty_name() -> None:
    slot, (booking,) = book_users(build_slot(1), "nobody")
    assert booking.id != BookingId("")
    (row,) = build_roster(slot, USERS, NOW).rows
    assert (row.name, row.email, row.made_by) == ("", "", None)
