"""Invariants of slots under any sequence of operations."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from slotlock.domain.booking.booking import BookingLimit, BookingStatus, SlotId
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.book import SlotClaim, book
from slotlock.domain.booking.rules.booking_changes import cancel, confirm
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.booking.slot import MAX_HOLD_MINUTES, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.decisions import decide, decide_all, decide_move, expire_and_promote
from tests.support.domain.invariants import assert_valid_history, assert_valid_slot
from tests.support.domain.step_sequences import (
    USER_IDS,
    Step,
    apply_step,
    as_reloaded,
    slot_strategy,
    step_sequences,
    step_strategy,
)

CANCELLED = SlotStatus.CANCELLED
often = settings(max_examples=2 * settings().max_examples)
on_stories = given(slot=slot_strategy, story=step_sequences(24))


def changes(
    before: SlotState, story: list[Step]
) -> Iterator[tuple[SlotState, SlotState, datetime]]:
    """Yield the slot before and after each step, and its time."""
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        after = apply_step(before, step, now)
        yield before, after, now
        before = as_reloaded(after)


@often
@on_stories
def test_no_place_is_booked_twice_or_stays_free_while_a_user_waits_and_each_hold_is_swept(
    slot: SlotState, story: list[Step]
) -> None:
    for before, after, now in changes(slot, story):
        assert_valid_slot(after)
        is_cancelled = after.slot.status is CANCELLED
        assert is_cancelled or not any(booking.is_expired_at(now) for booking in after.bookings)
        assert after.version == before.version + (after != before)


@often
@given(slot_before=slot_strategy, steps=step_sequences(24))
def test_the_recorded_change_makes_the_new_slot_of_the_loaded_one(
    slot_before: SlotState, steps: list[Step]
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
        assert change.is_edited or after.slot == loaded.slot
        if number % 4 == 3:  # several steps record one change, as the commands of a batch do
            loaded = after = as_reloaded(after)


@often
@on_stories
def test_no_booking_is_lost_and_no_history_altered(slot: SlotState, story: list[Step]) -> None:
    for before, after, _ in changes(slot, story):
        live = {booking.id: booking for booking in after.bookings}
        ended = {booking.id: booking for booking in after.change.ended}
        assert len(ended) == len(after.change.ended)
        assert not live.keys() & ended.keys()
        for booking in before.bookings:
            later = (live | ended)[booking.id]
            assert later.history[: len(booking.history)] == booking.history
            assert replace(later, history=booking.history) == booking
        for booking in (*after.bookings, *after.change.ended):
            assert_valid_history(booking)
            assert booking.status.is_live == (booking.id in live)


@often
@on_stories
def test_the_waiting_list_is_promoted_in_order(slot: SlotState, story: list[Step]) -> None:
    for before, after, _ in changes(slot, story):
        left = {one.entry.id for one in after.change.ended_entries}
        stayed = [waiting for waiting in before.waitlist if waiting.id not in left]
        line = list(after.waitlist)
        joined = [waiting for waiting in line if waiting not in before.waitlist]
        assert joined == line[len(line) - len(joined) :]
        served = stayed[: len(stayed) + len(joined) - len(line)]
        assert line == stayed[len(served) :] + joined
        got = {str(booking.id) for booking in (*after.bookings, *after.change.ended)}
        assert {str(waiting.id) for waiting in served} <= got


@often
@on_stories
def test_every_hold_is_short(slot: SlotState, story: list[Step]) -> None:
    for _, after, _ in changes(slot, story):
        for booking in after.bookings:
            if booking.status is not BookingStatus.HELD or after.slot.status is CANCELLED:
                continue
            assert booking.held_until is not None
            longest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
            assert booking.held_until <= longest
            once_begun = BookingLimit.SLOT_STARTED in booking.history[0].overridden_limits
            assert booking.held_until <= after.slot.start or once_begun


@often
@on_stories
def test_readers_see_the_places_a_booking_finds(slot: SlotState, story: list[Step]) -> None:
    for before, _, now in changes(slot, story):
        seen, settled = as_of(before, now), expire_and_promote(before, now)
        if not before.waitlist:
            assert seen == settled
        elif before.slot.status is SlotStatus.PUBLISHED and now < before.slot.start:
            assert seen.remaining <= settled.remaining
        assert set(seen.bookings) <= set(before.bookings)


CHOICE = tuple(SlotId(f"{number:024x}") for number in (11, 12, 13))
ACTIONS_ON_ONE_SLOT = ("book", "hold", "join", "confirm", "cancel", "wait and see")
Slots = dict[SlotId, SlotState]


def users_of(slots: Slots) -> UserContexts:
    """Return the contexts of all users, with their bookings in these slots."""
    known = UserContexts({user_id: UserContext(user_id, (), 1) for user_id in USER_IDS})
    for state in slots.values():
        known = known.with_bookings(state.slot, state.bookings)
    return known


def all_settled(slots: Slots, now: datetime) -> Slots:
    """Return the slots after expiry and promotion, one after the other."""
    for slot_id, state in slots.items():
        settled = as_reloaded(expire_and_promote(state, now, users_of(slots)))
        slots = {**slots, slot_id: settled}
    return slots


def decide_on_one_slot(
    action: str, state: SlotState, step: Step, users: UserContexts, now: datetime
) -> SlotState:
    """Return the slot after an action by a user with other bookings."""
    if action in ("book", "hold"):
        request = step.booking_request(hold=action == "hold")
        return decide(book, state, request, now, users=users)[0]
    if action == "join":
        return decide(join, state, step.waitlist_entry(state), now, users=users)[0]
    if action == "confirm":
        return decide(confirm, state, step.change_request(state), now, users=users)[0]
    if action == "cancel":
        return decide(cancel, state, step.change_request(state), now)[0]
    assert action == "wait and see"
    return state


def decide_on_slots(
    action: str, slots: Slots, step: Step, here: SlotId, there: SlotId, now: datetime
) -> Slots:
    """Return the slots after an action, which may be about two of them."""
    old, new, users = slots[here], slots[there], users_of(slots)
    if action in ACTIONS_ON_ONE_SLOT:
        return {**slots, here: decide_on_one_slot(action, old, step, users, now)}
    if action == "move":
        left, taken, _ = decide_move(
            old, new, step.change_request(old), step.booking_request(), now, users
        )
        return {**slots, here: left, there: taken}
    claims = [SlotClaim(slot_id, step.booking_request()) for slot_id in (here, there)]
    loaded = LoadedState({here: old, there: new}, users)
    return {**slots, **decide_all(loaded, claims, now)[0]}


@often
@given(
    members=st.lists(
        st.tuples(
            step_strategy.map(lambda step: replace(step, as_organizer=False)),
            st.sampled_from((*ACTIONS_ON_ONE_SLOT, "move", "move", "both")),
            st.permutations(CHOICE),
        ),
        max_size=25,
    )
)
def test_no_user_ever_has_two_bookings_of_a_choice_group(
    members: list[tuple[Step, str, list[SlotId]]],
) -> None:
    now = NOW
    slots = {slot_id: build_slot(1, id=slot_id, choice_group="week") for slot_id in CHOICE}
    for step, action, (here, there, _) in members:
        now += timedelta(minutes=step.minutes)
        slots = all_settled(slots, now)
        slots = all_settled(decide_on_slots(action, slots, step, here, there, now), now)
        have = [booking.user_id for state in slots.values() for booking in state.bookings]
        assert len(have) == len(set(have))
        assert all(state.booked_count <= state.slot.capacity for state in slots.values())
