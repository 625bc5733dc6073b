"""The rules of booking, read aloud and then tried in every order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.booking import Party, book, cancel
from slotlock.domain.outcomes import (
    AlreadyBooked,
    Booked,
    BookingCancelled,
    BookingNotFound,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.slots import Booking, BookingId, Slot, SlotId, SlotKind, SlotStatus

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
        taken=0,
        location=None,
        kind=SlotKind.COURSE,
        status=SlotStatus.PUBLISHED,
        version=1,
        changed_at=NOW,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def party(name: str) -> Party:
    """Somebody who asks for a place."""
    return Party(UserId(name), BookingId(f"b{next(_ids)}"))


def caller(name: str, role: Role = Role.MEMBER) -> Caller:
    """Somebody signed in."""
    return Caller(UserId(name), role, "session", NOW + timedelta(minutes=15))


def booked(before: Slot, *names: str) -> tuple[Slot, list[Booking]]:
    """The slot after these people booked, and their bookings."""
    decision = book(before, [party(name) for name in names], NOW)
    return decision.slot, list(decision.added)


def test_a_place_that_is_left_is_given() -> None:
    decision = book(slot(2), [party("ada")], NOW)
    (outcome,) = decision.outcome
    assert isinstance(outcome, Booked)
    assert outcome.slot.remaining == 1
    assert outcome.slot.version == 2
    assert decision.added == (outcome.booking,)


def test_the_last_place_goes_to_whoever_came_first() -> None:
    outcomes = book(slot(1), [party("ada"), party("ben")], NOW).outcome
    assert [type(outcome) for outcome in outcomes] == [Booked, SlotFull]


def test_two_requests_of_one_person_in_a_batch_take_one_place() -> None:
    decision = book(slot(5), [party("ada"), party("ada")], NOW)
    assert [type(outcome) for outcome in decision.outcome] == [Booked, AlreadyBooked]
    assert decision.slot.taken == 1


def test_somebody_who_has_a_place_is_told_so_even_when_the_slot_is_full() -> None:
    full, (booking,) = booked(slot(1), "ada")
    (outcome,) = book(full, [party("ada")], NOW).outcome
    assert isinstance(outcome, AlreadyBooked)
    assert outcome.booking == booking


def test_a_refusal_changes_nothing() -> None:
    full, _ = booked(slot(1), "ada")
    decision = book(full, [party("ben")], NOW)
    assert not decision.changes
    assert decision.slot == full


def test_nothing_is_booked_from_the_moment_a_slot_begins() -> None:
    tomorrow = slot()
    just_before = tomorrow.start - timedelta(milliseconds=1)
    assert isinstance(book(tomorrow, [party("ada")], just_before).outcome[0], Booked)
    assert isinstance(book(tomorrow, [party("ada")], tomorrow.start).outcome[0], SlotStarted)


def test_a_draft_is_not_there_and_a_slot_called_off_is_not_booked() -> None:
    draft, off = slot(status=SlotStatus.DRAFT), slot(status=SlotStatus.CANCELLED)
    assert isinstance(book(draft, [party("ada")], NOW).outcome[0], SlotNotFound)
    assert isinstance(book(off, [party("ada")], NOW).outcome[0], SlotCancelled)


def test_a_place_given_back_is_free_at_once() -> None:
    full, (booking,) = booked(slot(1), "ada")
    decision = cancel(full, booking.id, caller("ada"), NOW)
    assert isinstance(decision.outcome, BookingCancelled)
    assert decision.slot.remaining == 1
    assert isinstance(book(decision.slot, [party("ben")], NOW).outcome[0], Booked)


def test_only_its_owner_or_an_organiser_cancels_a_booking() -> None:
    full, (booking,) = booked(slot(1), "ada")
    refused = cancel(full, booking.id, caller("ben"), NOW)
    assert isinstance(refused.outcome, BookingNotFound)
    assert not refused.changes
    allowed = cancel(full, booking.id, caller("eve", Role.ORGANIZER), NOW)
    assert isinstance(allowed.outcome, BookingCancelled)


def test_after_the_start_only_organisers_cancel() -> None:
    full, (booking,) = booked(slot(1), "ada")
    assert isinstance(cancel(full, booking.id, caller("ada"), full.start).outcome, SlotStarted)
    organiser = caller("eve", Role.ADMIN)
    assert isinstance(cancel(full, booking.id, organiser, full.start).outcome, BookingCancelled)


people = st.sampled_from([f"p{n}" for n in range(6)])
acts = st.lists(
    st.one_of(
        st.tuples(st.just("book"), st.lists(people, min_size=1, max_size=5)),
        st.tuples(st.just("cancel"), st.lists(people, min_size=1, max_size=1)),
    ),
    max_size=40,
)


@given(capacity=st.integers(1, 5), script=acts)
def test_live_bookings_never_exceed_the_places_in_whatever_order_things_happen(
    capacity: int, script: list[tuple[str, list[str]]]
) -> None:
    now = slot(capacity)
    for act, names in script:
        version = now.version
        if act == "book":
            decision = book(now, [party(name) for name in names], NOW)
            assert len(decision.outcome) == len(names)
            winners = [o for o in decision.outcome if isinstance(o, Booked)]
            assert len(winners) == len(decision.added)
            after = decision.slot
        else:
            mine = now.booking_of(UserId(names[0]))
            wanted = mine.id if mine else BookingId("none")
            after = cancel(now, wanted, caller(names[0]), NOW).slot
        assert after.version == version + (after != now)
        now = after
        holders = [booking.user_id for booking in now.bookings]
        assert now.taken == len(holders) <= capacity
        assert len(set(holders)) == len(holders)
        assert now.remaining == capacity - len(holders)


@given(capacity=st.integers(1, 4), batches=st.lists(st.lists(people, max_size=4), max_size=8))
def test_serving_in_batches_gives_the_places_that_serving_one_by_one_gives(
    capacity: int, batches: list[list[str]]
) -> None:
    together = alone = slot(capacity)
    for batch in batches:
        together = book(together, [party(name) for name in batch], NOW).slot
        for name in batch:
            alone = book(alone, [party(name)], NOW).slot
    assert [b.user_id for b in together.bookings] == [b.user_id for b in alone.bookings]
