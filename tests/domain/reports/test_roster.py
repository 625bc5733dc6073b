"""Rosters as organisers keep them, and names of sheets that Excel takes."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from slotlock.api.exports.workbook import MAX_SHEET_NAME_LENGTH, SheetNames
from slotlock.domain.booking.booking import BookingId
from slotlock.domain.booking.history import BookingStatus
from slotlock.domain.booking.slot import SlotCancellation, SlotStatus
from slotlock.domain.reports.roster import PlaceCounts, RosterUser, build_roster, user_ids_in
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    with_waitlist,
)

ADA, BEN, OLGA = UserId("ada"), UserId("ben"), UserId("olga")
PEOPLE = {
    ADA: RosterUser("Ada", "ada@slotlock.test", ("5a",)),
    BEN: RosterUser("Ben", "ben@slotlock.test"),
    OLGA: RosterUser("Olga", "olga@slotlock.test"),
}


def test_a_roster_names_who_booked_and_who_did_it_for_them() -> None:
    seats, _ = book_users(build_slot(3), "ada")
    seats, _ = book_place(seats, booking_request("ben", organizer="olga"))
    assert user_ids_in(seats) == {ADA, BEN, OLGA}
    roster = build_roster(seats, PEOPLE, NOW)
    assert [(row.name, row.groups, row.made_by) for row in roster.rows] == [
        ("Ada", ("5a",), None),
        ("Ben", (), "Olga"),
    ]
    assert roster.counts == PlaceCounts(places=3, confirmed=2, free=1)


def test_a_hold_counts_until_its_last_instant() -> None:
    seats, hold = book_place(build_slot(2), booking_request("ada", hold=True))
    until = hold.held_until
    assert until is not None
    before = build_roster(seats, PEOPLE, until - timedelta(milliseconds=1))
    assert [(row.status, row.held_until) for row in before.rows] == [(BookingStatus.HELD, until)]
    assert before.counts == PlaceCounts(places=2, held=1, free=1)
    assert build_roster(seats, PEOPLE, until).counts == PlaceCounts(places=2, free=2)


def test_what_others_wait_for_is_not_free() -> None:
    seats, _ = book_place(build_slot(1), booking_request("ada", hold=True))
    seats = with_waitlist(seats, "ben")
    later = NOW + timedelta(hours=1)
    assert build_roster(seats, PEOPLE, later).counts == PlaceCounts(places=1, waiting=1)


def test_places_in_a_called_off_slot_are_cancelled_and_none_is_free() -> None:
    seats, _ = book_users(build_slot(3), "ada", "ben")
    off = replace(seats, status=SlotStatus.CANCELLED, cancellation=SlotCancellation(NOW, OLGA))
    roster = build_roster(off, PEOPLE, NOW)
    assert {row.status for row in roster.rows} == {BookingStatus.CANCELLED}
    assert roster.counts == PlaceCounts(places=3, cancelled=2)


def test_who_is_not_known_has_no_name() -> None:
    seats, (booking,) = book_users(build_slot(1), "nobody")
    assert booking.id != BookingId("")
    (row,) = build_roster(seats, PEOPLE, NOW).rows
    assert (row.name, row.email, row.made_by) == ("", "", None)


@given(st.lists(st.text(max_size=40), max_size=12))
def test_excel_takes_every_name_whatever_is_wished(wishes: list[str]) -> None:
    names = SheetNames("Summary")
    given = [names.name(wish) for wish in [*wishes, *wishes, "summary", "SUMMARY"]]
    assert len({name.casefold() for name in [*given, "Summary"]}) == len(given) + 1
    for name in given:
        assert 1 <= len(name.encode("utf-16-le")) // 2 <= MAX_SHEET_NAME_LENGTH
        assert not set(name) & set("[]:*?/\\\0\n")
        assert not name.startswith("'")
        assert not name.endswith("'")
    again = SheetNames("Summary")
    assert [again.name(wish) for wish in [*wishes, *wishes, "summary", "SUMMARY"]] == given


def test_names_that_are_alike_are_numbered() -> None:
    names = SheetNames()
    long = "Swimming for beginners of every age"
    assert [names.name(wish) for wish in (long, long.upper(), "'a/b'", "a b", "")] == [
        "Swimming for beginners of every",
        "SWIMMING FOR BEGINNERS OF E (2)",
        "a b",
        "a b (2)",
        "Sheet",
    ]
