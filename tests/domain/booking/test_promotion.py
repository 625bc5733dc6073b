"""Expired holds, promotion from the waiting list, and what readers see of them."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.rules.promotion import promote_waitlists
from slotlock.domain.booking.rules.waitlist import end_waitlists
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    change_request,
    in_choice_group,
    with_facts,
    with_waitlist,
)
from tests.support.domain.campaign_builders import contexts, user_in_groups, user_with_booking
from tests.support.domain.decisions import as_written, decide, expire_and_promote

INSTANT = timedelta(milliseconds=1)
LATER = NOW + timedelta(minutes=5)


def held(capacity: int = 1) -> tuple[SlotState, Booking]:
    """Return a slot with a hold of five minutes."""
    return book_place(build_slot(capacity), booking_request("ada", hold=True))


def test_the_place_of_a_hold_is_free_from_the_time_it_expires() -> None:
    full, _ = held()
    assert expire_and_promote(full, LATER - INSTANT).is_booked
    assert expire_and_promote(full, LATER).remaining == 1


def test_an_expired_hold_ended_at_its_time_and_not_when_it_was_released() -> None:
    full, hold = held()
    (ended,) = expire_and_promote(full, LATER + timedelta(hours=3)).change.ended
    assert ended.history == (
        *hold.history,
        HistoryEntry(LATER, None, BookingAction.EXPIRED, BookingStatus.EXPIRED, LATER),
    )
    assert ended.ended_at == LATER


def test_a_confirmed_booking_never_expires() -> None:
    full, _ = book_users(build_slot(), "ada")
    assert expire_and_promote(full, full.slot.end) == full


def test_a_free_place_goes_to_the_first_waiting_user() -> None:
    full, _ = held()
    after = expire_and_promote(with_waitlist(full, "ben", "cleo"), LATER)
    (booking,) = after.bookings
    assert booking.history == (
        HistoryEntry(LATER, None, BookingAction.PROMOTED, BookingStatus.CONFIRMED),
    )
    assert (booking.user_id, booking.made_by, booking.waited_since) == ("ben", None, NOW)
    assert booking.id == "w-ben"  # their turn became it
    assert [waiting.user_id for waiting in after.waitlist] == ["cleo"]
    assert (after.waitlist_length, after.loaded_waitlist, after.remaining) == (1, 1, 0)


def test_a_free_place_is_offered_if_the_slot_has_offer_minutes() -> None:
    after = expire_and_promote(with_waitlist(build_slot(waitlist_offer_minutes=30), "ben"), NOW)
    (offer,) = after.bookings
    until = NOW + timedelta(minutes=30)
    assert offer.history == (
        HistoryEntry(NOW, None, BookingAction.OFFERED, BookingStatus.HELD, until),
    )
    assert as_written(build_slot(), after, NOW).next_deadline == until


def test_a_promoted_booking_says_who_added_its_user_to_the_waiting_list() -> None:
    line = with_waitlist(build_slot(), "ben")
    entry = replace(line.waitlist[0], waitlisted_by=UserId("eve"))
    (booking,) = expire_and_promote(replace(line, waitlist=(entry,)), NOW).bookings
    assert booking.waitlisted_by == "eve"


def test_an_expired_offer_goes_to_the_next_waiting_user() -> None:
    offered = expire_and_promote(
        with_waitlist(build_slot(waitlist_offer_minutes=30), "ben", "cleo"), NOW
    )
    after = expire_and_promote(offered, NOW + timedelta(minutes=30))
    assert [booking.user_id for booking in after.bookings] == ["cleo"]
    assert [(b.user_id, b.status) for b in after.change.ended] == [("ben", BookingStatus.EXPIRED)]
    assert after.bookings[0].held_until == NOW + timedelta(minutes=60)


def test_a_declined_offer_goes_to_the_next_waiting_user_at_once() -> None:
    waiting = with_waitlist(build_slot(waitlist_offer_minutes=30), "ben", "cleo")
    offered = expire_and_promote(waiting, NOW)
    declined, _ = decide(cancel, offered, change_request(offered.bookings[0], "ben"), NOW)
    (offer,) = expire_and_promote(declined, NOW).bookings
    assert (offer.user_id, offer.status) == ("cleo", BookingStatus.HELD)


def test_several_free_places_are_offered_at_once_in_order() -> None:
    waiting = with_waitlist(build_slot(2, waitlist_offer_minutes=30), "ben", "cleo", "dan")
    offers = expire_and_promote(waiting, NOW).bookings
    assert [(each.user_id, each.status) for each in offers] == [
        ("ben", BookingStatus.HELD),
        ("cleo", BookingStatus.HELD),
    ]


def test_an_offer_expires_when_its_slot_starts_at_the_latest() -> None:
    waited = with_waitlist(build_slot(waitlist_offer_minutes=7 * 24 * 60), "ben")
    assert expire_and_promote(waited, NOW).bookings[0].held_until == waited.slot.start


@pytest.mark.parametrize("status", [SlotStatus.DRAFT, SlotStatus.CANCELLED])
def test_a_slot_that_is_not_published_promotes_nobody(status: SlotStatus) -> None:
    before = with_waitlist(build_slot(status=status), "ben")
    assert expire_and_promote(before, NOW) == before


def test_a_started_slot_promotes_nobody() -> None:
    before = with_waitlist(build_slot(), "ben")
    assert expire_and_promote(before, before.slot.start) == before
    assert expire_and_promote(before, before.slot.start - INSTANT).is_booked


def test_holds_in_a_cancelled_slot_do_not_expire() -> None:
    full, _ = held()
    off = with_facts(full, status=SlotStatus.CANCELLED)
    assert expire_and_promote(off, LATER) == off
    assert due(off, LATER) is None


def test_a_waiting_user_with_another_booking_of_the_choice_group_leaves_the_waiting_list() -> None:
    other, (booking,) = book_users(in_choice_group(build_slot(id=SlotId("other"))), "ben")
    users = contexts(user_with_booking("ben", other, booking), user_in_groups("cleo"))
    waiting = with_waitlist(in_choice_group(build_slot()), "ben", "cleo")
    after = expire_and_promote(waiting, NOW, users)
    assert [booking.user_id for booking in after.bookings] == ["cleo"]
    (left,) = after.change.ended_entries
    assert (left.entry.user_id, left.at, left.by) == ("ben", NOW, None)


def test_a_user_who_waits_in_two_slots_of_a_choice_group_is_promoted_in_one() -> None:
    slots = (in_choice_group(build_slot(id=SlotId(name))) for name in ("here", "there"))
    waiting = {each.id: with_waitlist(each, "ben") for each in slots}
    loaded = LoadedState(waiting, contexts(user_in_groups("ben")))
    after = promote_waitlists(loaded, NOW).slots.values()
    assert [(each.booked_count, each.waitlist_length) for each in after] == [(1, 0), (0, 0)]


def test_expiring_and_promoting_twice_changes_nothing_more() -> None:
    full, _ = held(2)
    once = expire_and_promote(with_waitlist(full, "ben", "cleo"), LATER)
    assert expire_and_promote(once, LATER) == once


def test_a_slot_without_expired_holds_or_free_places_stays_the_same_object() -> None:
    before, _ = book_users(build_slot(2), "ada")
    assert expire_and_promote(before, NOW) == before


def due(before: SlotState, now: datetime) -> datetime | None:
    """When the next hold runs out, as it is written."""
    return as_written(before, expire_and_promote(before, now), now).next_deadline


def test_the_next_deadline_is_the_next_expiry_of_a_hold() -> None:
    full, hold = held(3)
    after, _ = book_place(full, booking_request("ben", hold=True), NOW + timedelta(minutes=1))
    assert due(after, NOW + timedelta(minutes=1)) == hold.held_until
    assert due(after, LATER) == LATER + timedelta(minutes=1)
    assert due(after, LATER + timedelta(minutes=1)) is None


def test_the_next_deadline_covers_holds_that_were_not_loaded() -> None:
    soon = NOW + timedelta(minutes=2)
    elsewhere = build_slot(5, booked_count=1, next_deadline=soon)
    after, _ = book_place(elsewhere, booking_request("ben", hold=True))
    assert due(after, NOW) == soon
    assert due(after, soon) == LATER


def test_free_places_for_entries_that_were_not_loaded_are_due_at_once() -> None:
    waiting = with_waitlist(build_slot(5), "ben", "cleo")
    many = replace(waiting, waitlist_length=7)
    after = expire_and_promote(many, NOW)
    assert (after.booked_count, after.waitlist_length, due(many, NOW)) == (2, 5, NOW)


def test_a_waiting_list_is_due_when_its_slot_starts() -> None:
    full, _ = book_users(build_slot(), "ada")
    waiting = with_waitlist(full, "ben", "cleo")
    assert due(waiting, NOW) == waiting.slot.start
    loaded = LoadedState({waiting.id: waiting})
    assert end_waitlists(loaded, waiting.slot.start - INSTANT) is loaded
    ended = end_waitlists(loaded, waiting.slot.start).slots[waiting.id]
    assert (ended.waitlist, ended.waitlist_length, ended.bookings) == ((), 0, full.bookings)
    assert [each.by for each in ended.change.ended_entries] == [None, None]


def test_readers_see_the_places_of_expired_holds_as_free() -> None:
    full, hold = held()
    seen = as_of(full, LATER)
    assert (seen.remaining, seen.bookings, seen.version) == (1, (), full.version)
    assert as_of(full, LATER - INSTANT).booking_by_id(hold.id) == hold


def test_reading_never_promotes() -> None:
    full, _ = held(2)
    seen = as_of(with_waitlist(full, "ben"), LATER)
    assert seen.bookings == ()
    assert [waiting.user_id for waiting in seen.waitlist] == ["ben"]
    assert seen.remaining == 1  # one of the two is as good as taken


def test_readers_see_no_more_promised_places_than_free_places() -> None:
    waiting = replace(with_waitlist(build_slot(2), "ben"), waitlist_length=50)
    assert as_of(waiting, NOW).remaining == 0


def test_a_started_slot_promises_no_places_to_the_waiting_list() -> None:
    begun = with_waitlist(build_slot(2), "ben")
    assert as_of(begun, begun.slot.start).remaining == 2


def test_every_write_increments_the_version() -> None:
    before, after = build_slot(), expire_and_promote(with_waitlist(build_slot(), "ben"), NOW)
    assert as_written(before, after, LATER) == replace(after, version=2, changed_at=LATER)
