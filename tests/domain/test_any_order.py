"""What holds of a slot whatever happens to it in whatever order."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from slotlock.domain.booked import move
from slotlock.domain.booking import MAX_HOLD_MINUTES, Claim, book_all
from slotlock.domain.bookings import Booking, Known, SlotId, Waiting
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Limit
from slotlock.domain.settling import seen_at, settle
from slotlock.domain.slots import Slot, SlotStatus
from tests.domain.story import ACTS, PEOPLE, Step, looked_at, slots, steps, stories, told
from tests.domain.test_booking import NOW, slot

often = settings(max_examples=200, deadline=None)


def users(of: Iterable[Booking | Waiting]) -> list[UserId]:
    """Whose they are."""
    return [each.user_id for each in of]


def gives_places(now: Slot, at: datetime) -> bool:
    """Whether who waits in front is given what is free."""
    return now.status is SlotStatus.PUBLISHED and at < now.start


@often
@given(before=slots, story=stories(24))
def test_no_place_is_given_twice_and_none_lies_idle_while_somebody_waits(
    before: Slot, story: list[Step]
) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = told(before, step, now)
        assert after.taken == len(after.bookings) <= after.capacity
        assert len(set(users(after.bookings))) == after.taken
        assert after.waiting_count == len(after.waiting)
        people = [*users(after.bookings), *users(after.waiting)]
        assert len(people) == len(set(people))
        if gives_places(after, now):
            assert after.remaining == 0 or not after.waiting
        off = after.status is SlotStatus.CANCELLED
        assert off or not any(booking.ran_out(now) for booking in after.bookings)
        assert after.version == before.version + (after != before)
        before = looked_at(after)


@often
@given(before=slots, story=stories(24))
def test_no_booking_is_lost_and_no_record_is_rewritten(before: Slot, story: list[Step]) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = told(before, step, now)
        live = {booking.id: booking for booking in after.bookings}
        ended = {booking.id: booking for booking in after.ended}
        assert len(ended) == len(after.ended)
        assert not live.keys() & ended.keys()
        for booking in before.bookings:
            later = (live | ended)[booking.id]
            assert later.log[: len(booking.log)] == booking.log
            assert replace(later, log=booking.log) == booking
        for booking in (*after.bookings, *after.ended):
            times = [entry.at for entry in booking.log]
            assert times == sorted(times)
            assert booking.status.takes_a_place == (booking.id in live)
        before = looked_at(after)


@often
@given(before=slots, story=stories(24))
def test_the_line_is_served_from_its_front_and_nobody_overtakes(
    before: Slot, story: list[Step]
) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = told(before, step, now)
        left = {one.waiting.id for one in after.left}
        stayed = [waiting for waiting in before.waiting if waiting.id not in left]
        line = list(after.waiting)
        joined = [waiting for waiting in line if waiting not in before.waiting]
        assert joined == line[len(line) - len(joined) :]
        served = stayed[: len(stayed) + len(joined) - len(line)]
        assert line == stayed[len(served) :] + joined
        got = {str(booking.id) for booking in (*after.bookings, *after.ended)}
        assert {str(waiting.id) for waiting in served} <= got
        before = looked_at(after)


@often
@given(before=slots, story=stories(24))
def test_every_hold_is_short_and_known_to_whoever_sweeps(before: Slot, story: list[Step]) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        before = looked_at(told(before, step, now))
        for booking in before.bookings:
            if booking.status is not BookingStatus.HELD or before.status is SlotStatus.CANCELLED:
                continue
            assert booking.held_until is not None
            longest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
            assert booking.held_until <= longest
            once_begun = Limit.SLOT_STARTED in booking.log[0].overrode
            assert booking.held_until <= before.start or once_begun
            assert before.due is not None
            assert before.due <= booking.held_until


@often
@given(before=slots, story=stories(24))
def test_who_looks_sees_the_places_that_a_booking_would_find(
    before: Slot, story: list[Step]
) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        seen, settled = seen_at(before, now), settle(before, now)
        if not before.waiting:
            assert seen == settled
        elif gives_places(before, now):
            assert seen.remaining <= settled.remaining
        assert set(seen.bookings) <= set(before.bookings)
        before = looked_at(told(before, step, now))


CHOICE = tuple(SlotId(f"{number:024x}") for number in (11, 12, 13))
ALONE = ("book", "hold", "join", "confirm", "cancel", "wait and see")
Slots = dict[SlotId, Slot]


def read(of: Slots, slot_id: SlotId) -> Slot:
    """The slot with everybody's places in the others of its choice."""
    others = [s.place_of(b) for s in of.values() if s.id != slot_id for b in s.bookings]
    known = (Known(p, (), 1, tuple(o for o in others if o.booking.user_id == p)) for p in PEOPLE)
    return looked_at(replace(of[slot_id], known={one.user_id: one for one in known}))


def all_settled(of: Slots, now: datetime) -> Slots:
    """The slots settled one after the other."""
    for slot_id in of:
        of = {**of, slot_id: looked_at(settle(read(of, slot_id), now))}
    return of


def chosen(of: Slots, step: Step, act: str, here: SlotId, there: SlotId, now: datetime) -> Slots:
    """The slots after somebody chose."""
    old, new = read(of, here), read(of, there)
    if act in ALONE:
        return {**of, here: ACTS[act](old, step, now)[0]}
    if act == "move":
        left, taken, _ = move(old, new, step.ask(old), step.party(), now)
        return {**of, here: left, there: taken}
    claims = [Claim(slot_id, step.party()) for slot_id in (here, there)]
    return {**of, **book_all({here: old, there: new}, claims, now)[0]}


@often
@given(
    members=st.lists(
        st.tuples(
            steps.map(lambda step: replace(step, organised=False)),
            st.sampled_from((*ALONE, "move", "move", "both")),
            st.permutations(CHOICE),
        ),
        max_size=25,
    )
)
def test_nobody_has_two_of_a_choice_however_they_book_move_and_wait(
    members: list[tuple[Step, str, list[SlotId]]],
) -> None:
    now = NOW
    of = {slot_id: slot(1, id=slot_id, choice="week") for slot_id in CHOICE}
    for step, act, (here, there, _) in members:
        now += timedelta(minutes=step.minutes)
        of = all_settled(of, now)
        of = all_settled(chosen(of, step, act, here, there, now), now)
        have = [booking.user_id for each in of.values() for booking in each.bookings]
        assert len(have) == len(set(have))
        assert all(each.taken <= each.capacity for each in of.values())
