"""The rules of getting a place, read aloud: one place, several, all or none."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from slotlock.domain.booking.book import MAX_HOLD_MINUTES, BookingRequest, SlotClaim, book
from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    OtherBooking,
    SlotId,
    UserContext,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus
from slotlock.domain.booking.outcomes import AllBooked, Booked, NoneBooked
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    LimitReached,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.users.user import Caller, Role, UserId
from tests.support.decisions import decide, decide_all

NOW = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
_ids = count()


def slot(capacity: int = 1, **fields: object) -> Slot:
    """A published slot of tomorrow."""
    made = Slot(
        id=SlotId("s"),
        title="Yoga",
        start=NOW + timedelta(days=1),
        end=NOW + timedelta(days=1, hours=1),
        time_zone="Europe/Berlin",
        capacity=capacity,
        booked_count=0,
        location=None,
        kind=SlotKind.COURSE,
        status=SlotStatus.PUBLISHED,
        version=1,
        changed_at=NOW,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def party(name: str, hold: bool = False, by: str | None = None) -> BookingRequest:
    """Somebody who is to have a place; `by` an organiser, if it is not they who ask."""
    asking = UserId(by or name)
    return BookingRequest(UserId(name), BookingId(f"b{next(_ids)}"), asking, hold, by is not None)


def caller(name: str, role: Role = Role.MEMBER) -> Caller:
    """Somebody signed in."""
    return Caller(UserId(name), role, "session", NOW + timedelta(minutes=15))


def place(before: Slot, wanted: BookingRequest, now: datetime = NOW) -> tuple[Slot, Booking]:
    """The slot after this party got a place, and their booking."""
    after, outcome = decide(book, before, wanted, now)
    assert isinstance(outcome, Booked)
    assert outcome.slot == after
    return after, outcome.booking


def booked(before: Slot, *names: str) -> tuple[Slot, list[Booking]]:
    """The slot after these people booked, and their bookings."""
    bookings = []
    for name in names:
        before, booking = place(before, party(name))
        bookings.append(booking)
    return before, bookings


def lined_up(before: Slot, *names: str) -> Slot:
    """The slot with these people in line, all of them at hand."""
    turns = [
        WaitlistEntry(WaitlistEntryId(f"w-{name}"), before.id, UserId(name), NOW) for name in names
    ]
    line = (*before.waitlist, *turns)
    return replace(before, waitlist=line, loaded_waitlist=len(line), waitlist_length=len(line))


def chosen(before: Slot, name: str, *elsewhere: Booking) -> Slot:
    """The slot as one of a choice, and what this person has booked in the others."""
    places = tuple(
        OtherBooking(booking, "week", None, before.all_meetings) for booking in elsewhere
    )
    known = UserContext(UserId(name), (), len(elsewhere), places)
    return replace(
        before, choice_group="week", user_contexts={**before.user_contexts, known.user_id: known}
    )


def test_a_place_that_is_left_is_given() -> None:
    after, booking = place(slot(2), party("ada"))
    assert after.remaining == 1
    assert after.bookings == (booking,)
    assert booking.status is BookingStatus.CONFIRMED
    assert booking.held_until is None
    assert booking.ended_at is None


def test_the_last_place_goes_to_whoever_came_first() -> None:
    full, _ = booked(slot(2), "ada", "ben")
    assert full.is_booked
    assert decide(book, full, party("cleo"), NOW) == (full, SlotFull(full))


def test_two_requests_of_one_person_take_one_place() -> None:
    one, (booking,) = booked(slot(5), "ada")
    assert decide(book, one, party("ada"), NOW) == (one, AlreadyBooked(booking, one))


def test_somebody_who_has_a_place_is_told_so_even_when_the_slot_is_full() -> None:
    full, (booking,) = booked(slot(1), "ada")
    assert decide(book, full, party("ada"), NOW)[1] == AlreadyBooked(booking, full)


def test_nothing_is_booked_from_the_moment_a_slot_begins() -> None:
    tomorrow = slot()
    place(tomorrow, party("ada"), tomorrow.start - timedelta(milliseconds=1))
    assert decide(book, tomorrow, party("ada"), tomorrow.start)[1] == SlotStarted(tomorrow)


def test_organisers_book_for_others_after_the_start_and_the_limit_is_named() -> None:
    tomorrow = slot()
    _, booking = place(tomorrow, party("ada", by="eve"), tomorrow.start)
    assert booking.made_by == UserId("eve")
    assert booking.history[0].overridden_limits == (BookingLimit.SLOT_STARTED,)


def test_before_the_start_an_organiser_overrides_nothing() -> None:
    _, booking = place(slot(), party("ada", by="eve"))
    assert (booking.user_id, booking.made_by) == (UserId("ada"), UserId("eve"))
    assert booking.history[0].overridden_limits == ()


def test_a_draft_is_not_there_and_a_slot_called_off_is_not_booked_not_even_by_organisers() -> None:
    draft, off = slot(status=SlotStatus.DRAFT), slot(status=SlotStatus.CANCELLED)
    for wanted in (party("ada"), party("ada", by="eve")):
        assert decide(book, draft, wanted, NOW)[1] == SlotNotFound(draft.id)
        assert decide(book, off, wanted, NOW)[1] == SlotCancelled(off)


def test_a_hold_takes_a_place_for_as_long_as_the_slot_says() -> None:
    after, booking = place(slot(hold_minutes=7), party("ada", hold=True))
    assert after.is_booked
    assert booking.status is BookingStatus.HELD
    assert booking.history[0].action is BookingAction.HELD
    assert booking.held_until == NOW + timedelta(minutes=7)


def test_a_hold_never_outlasts_the_beginning_of_its_slot() -> None:
    tomorrow = slot(hold_minutes=MAX_HOLD_MINUTES)
    late = tomorrow.start - timedelta(minutes=1)
    assert place(tomorrow, party("ada", hold=True), late)[1].held_until == tomorrow.start


def test_an_organisers_hold_in_a_slot_that_began_lasts_as_long_as_any() -> None:
    tomorrow = slot(hold_minutes=5)
    _, booking = place(tomorrow, party("ada", hold=True, by="eve"), tomorrow.start)
    assert booking.held_until == tomorrow.start + timedelta(minutes=5)


@pytest.mark.parametrize("by", [None, "eve"])
def test_nobody_walks_in_before_those_who_wait(by: str | None) -> None:
    # A place is free and nobody was given it yet: it is the next one's in line all the same.
    promised = lined_up(slot(1), "ben")
    assert decide(book, promised, party("ada", by=by), NOW) == (promised, SlotFull(promised))


def test_once_a_slot_began_its_line_is_over_and_organisers_fill_its_places() -> None:
    begun = lined_up(slot(1), "ben")
    assert place(begun, party("ada", by="eve"), begun.start)[0].is_booked


def test_of_a_choice_a_person_has_one() -> None:
    _, (other,) = booked(slot(id=SlotId("other")), "ada")
    here = chosen(slot(), "ada", other)
    assert decide(book, here, party("ada"), NOW) == (here, LimitReached(1, other, here))
    place(here, party("ben"))


def test_a_hold_elsewhere_counts_until_the_instant_it_runs_out() -> None:
    _, other = place(slot(id=SlotId("other"), hold_minutes=5), party("ada", hold=True))
    here = chosen(slot(), "ada", other)
    assert other.held_until is not None
    just_before = other.held_until - timedelta(milliseconds=1)
    assert isinstance(decide(book, here, party("ada"), just_before)[1], LimitReached)
    place(here, party("ada"), other.held_until)


def test_organisers_give_a_second_of_a_choice_and_the_limit_is_named() -> None:
    _, (other,) = booked(slot(id=SlotId("other")), "ada")
    _, booking = place(chosen(slot(), "ada", other), party("ada", by="eve"))
    assert booking.history[0].overridden_limits == (BookingLimit.ONE_OF_CHOICE,)


def two() -> dict[SlotId, Slot]:
    """Two slots."""
    return {id_: slot(id=id_) for id_ in (SlotId("one"), SlotId("two"))}


def claims(*wanted: tuple[str, str]) -> list[SlotClaim]:
    """A place in each of these slots for each of these people."""
    return [SlotClaim(SlotId(slot_id), party(name)) for slot_id, name in wanted]


def test_several_places_are_given_together() -> None:
    wanted = claims(("one", "ada"), ("two", "ada"))
    after, outcome = decide_all(two(), wanted, NOW)
    assert isinstance(outcome, AllBooked)
    assert [each.booking.id for each in outcome.booked] == [c.request.booking_id for c in wanted]
    assert [each.booked_count for each in after.values()] == [1, 1]


def test_all_are_given_or_none_and_each_refusal_is_told() -> None:
    before = two()
    before[SlotId("two")], _ = booked(before[SlotId("two")], "ben")
    wanted = claims(("one", "ada"), ("two", "ada"), ("gone", "ada"))
    after, outcome = decide_all(before, wanted, NOW)
    assert after == before
    full = SlotFull(before[SlotId("two")])
    assert outcome == NoneBooked((None, full, SlotNotFound(SlotId("gone"))))


def test_the_places_of_one_request_are_counted_together() -> None:
    _, outcome = decide_all(two(), claims(("one", "ada"), ("one", "ben")), NOW)
    assert isinstance(outcome, NoneBooked)
    assert [type(each) for each in outcome.refusals] == [type(None), SlotFull]


def test_one_of_a_choice_holds_within_one_request_too() -> None:
    before = {id_: chosen(each, "ada") for id_, each in two().items()}
    after, outcome = decide_all(before, claims(("one", "ada"), ("two", "ada")), NOW)
    assert after == before
    assert isinstance(outcome, NoneBooked)
    assert [type(each) for each in outcome.refusals] == [type(None), LimitReached]


def test_slots_of_different_choices_are_booked_together() -> None:
    one, other = (chosen(each, "ada") for each in two().values())
    other = replace(other, choice_group="another week")
    wanted = claims(("one", "ada"), ("two", "ada"))
    assert isinstance(decide_all({one.id: one, other.id: other}, wanted, NOW)[1], AllBooked)
