"""Invariants of slots under any sequence of operations."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from slotlock.domain.booking.book import MAX_HOLD_MINUTES, SlotClaim
from slotlock.domain.booking.booking import Booking, SlotId, UserContext, WaitlistEntry
from slotlock.domain.booking.history import BookingLimit, BookingStatus
from slotlock.domain.booking.promotion import as_of, expire_and_promote
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.decisions import decide_all, decide_move
from tests.support.domain.step_sequences import (
    ACTIONS,
    USER_IDS,
    Step,
    apply_step,
    as_reloaded,
    slot_strategy,
    step_sequences,
    step_strategy,
)

often = settings(max_examples=200, deadline=None)


def users(of: Iterable[Booking | WaitlistEntry]) -> list[UserId]:
    """Whose they are."""
    return [each.user_id for each in of]


def gives_places(now: Slot, at: datetime) -> bool:
    """Whether who waits in front is given what is free."""
    return now.status is SlotStatus.PUBLISHED and at < now.start


@often
@given(before=slot_strategy, story=step_sequences(24))
def test_no_place_is_booked_twice_or_stays_free_while_a_user_waits(
    before: Slot, story: list[Step]
) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = apply_step(before, step, now)
        assert after.booked_count == len(after.bookings) <= after.capacity
        assert len(set(users(after.bookings))) == after.booked_count
        assert after.waitlist_length == len(after.waitlist)
        clients = [*users(after.bookings), *users(after.waitlist)]
        assert len(clients) == len(set(clients))
        if gives_places(after, now):
            assert after.remaining == 0 or not after.waitlist
        off = after.status is SlotStatus.CANCELLED
        assert off or not any(booking.is_expired_at(now) for booking in after.bookings)
        assert after.version == before.version + (after != before)
        before = as_reloaded(after)


@often
@given(slot_before=slot_strategy, steps=step_sequences(24))
def test_the_recorded_change_turns_the_loaded_slot_into_the_new_one(
    slot_before: Slot, steps: list[Step]
) -> None:
    now, loaded, after = NOW, slot_before, slot_before
    for number, step in enumerate(steps):
        now += timedelta(minutes=step.minutes)
        after = apply_step(after, step, now)
        change = after.change
        ended_ids = {booking.id for booking in change.ended}
        changed = {booking.id: booking for booking in change.changed}
        live = (changed.get(b.id, b) for b in loaded.bookings if b.id not in ended_ids)
        assert after.bookings == (*live, *change.added)
        waiting = (entry for entry in loaded.waitlist if entry.id not in change.removed_entries)
        assert after.waitlist == (*waiting, *change.joined)
        assert change.is_edited or edited_fields(after) == edited_fields(loaded)
        if number % 4 == 3:  # several steps record one change, as the commands of a batch do
            loaded = after = as_reloaded(after)


def edited_fields(of: Slot) -> tuple[object, ...]:
    """Return the fields that steps edit."""
    return of.title, of.start, of.capacity, of.status, of.cancellation, of.revision


@often
@given(before=slot_strategy, story=step_sequences(24))
def test_no_booking_is_lost_and_no_history_is_rewritten(before: Slot, story: list[Step]) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = apply_step(before, step, now)
        live = {booking.id: booking for booking in after.bookings}
        ended = {booking.id: booking for booking in after.change.ended}
        assert len(ended) == len(after.change.ended)
        assert not live.keys() & ended.keys()
        for booking in before.bookings:
            later = (live | ended)[booking.id]
            assert later.history[: len(booking.history)] == booking.history
            assert replace(later, history=booking.history) == booking
        for booking in (*after.bookings, *after.change.ended):
            times = [entry.at for entry in booking.history]
            assert times == sorted(times)
            assert booking.status.is_live == (booking.id in live)
        before = as_reloaded(after)


@often
@given(before=slot_strategy, story=step_sequences(24))
def test_the_waiting_list_is_promoted_in_order(before: Slot, story: list[Step]) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = apply_step(before, step, now)
        left = {one.entry.id for one in after.change.ended_entries}
        stayed = [waiting for waiting in before.waitlist if waiting.id not in left]
        line = list(after.waitlist)
        joined = [waiting for waiting in line if waiting not in before.waitlist]
        assert joined == line[len(line) - len(joined) :]
        served = stayed[: len(stayed) + len(joined) - len(line)]
        assert line == stayed[len(served) :] + joined
        got = {str(booking.id) for booking in (*after.bookings, *after.change.ended)}
        assert {str(waiting.id) for waiting in served} <= got
        before = as_reloaded(after)


@often
@given(before=slot_strategy, story=step_sequences(24))
def test_every_hold_is_short_and_has_a_deadline_for_the_sweeper(
    before: Slot, story: list[Step]
) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        before = as_reloaded(apply_step(before, step, now))
        for booking in before.bookings:
            if booking.status is not BookingStatus.HELD or before.status is SlotStatus.CANCELLED:
                continue
            assert booking.held_until is not None
            longest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
            assert booking.held_until <= longest
            once_begun = BookingLimit.SLOT_STARTED in booking.history[0].overridden_limits
            assert booking.held_until <= before.start or once_begun
            assert before.next_deadline is not None
            assert before.next_deadline <= booking.held_until


@often
@given(before=slot_strategy, story=step_sequences(24))
def test_readers_see_the_places_that_a_booking_would_find(before: Slot, story: list[Step]) -> None:
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        seen, settled = as_of(before, now), expire_and_promote(before, now)
        if not before.waitlist:
            assert seen == settled
        elif gives_places(before, now):
            assert seen.remaining <= settled.remaining
        assert set(seen.bookings) <= set(before.bookings)
        before = as_reloaded(apply_step(before, step, now))


CHOICE = tuple(SlotId(f"{number:024x}") for number in (11, 12, 13))
ALONE = ("book", "hold", "join", "confirm", "cancel", "wait and see")
Slots = dict[SlotId, Slot]


def read(of: Slots, slot_id: SlotId) -> Slot:
    """The slot with everybody's places in the others of its choice."""
    others = [s.as_other_booking(b) for s in of.values() if s.id != slot_id for b in s.bookings]
    known = (
        UserContext(p, (), 1, tuple(o for o in others if o.booking.user_id == p)) for p in USER_IDS
    )
    return as_reloaded(replace(of[slot_id], user_contexts={one.user_id: one for one in known}))


def all_settled(of: Slots, now: datetime) -> Slots:
    """The slots settled one after the other."""
    for slot_id in of:
        of = {**of, slot_id: as_reloaded(expire_and_promote(read(of, slot_id), now))}
    return of


def chosen(of: Slots, step: Step, act: str, here: SlotId, there: SlotId, now: datetime) -> Slots:
    """The slots after somebody chose."""
    old, new = read(of, here), read(of, there)
    if act in ALONE:
        return {**of, here: ACTIONS[act](old, step, now)[0]}
    if act == "move":
        left, taken, _ = decide_move(
            old, new, step.booking_command(old), step.booking_request(), now
        )
        return {**of, here: left, there: taken}
    claims = [SlotClaim(slot_id, step.booking_request()) for slot_id in (here, there)]
    return {**of, **decide_all({here: old, there: new}, claims, now)[0]}


@often
@given(
    members=st.lists(
        st.tuples(
            step_strategy.map(lambda step: replace(step, as_organizer=False)),
            st.sampled_from((*ALONE, "move", "move", "both")),
            st.permutations(CHOICE),
        ),
        max_size=25,
    )
)
def test_no_user_ever_has_two_bookings_of_a_choice_group(
    members: list[tuple[Step, str, list[SlotId]]],
) -> None:
    now = NOW
    of = {slot_id: build_slot(1, id=slot_id, choice_group="week") for slot_id in CHOICE}
    for step, act, (here, there, _) in members:
        now += timedelta(minutes=step.minutes)
        of = all_settled(of, now)
        of = all_settled(chosen(of, step, act, here, there, now), now)
        have = [booking.user_id for each in of.values() for booking in each.bookings]
        assert len(have) == len(set(have))
        assert all(each.booked_count <= each.capacity for each in of.values())
