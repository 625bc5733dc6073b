"""The promises of a draw, on random ones."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawMember,
    DrawMethod,
    DrawSlot,
    build_entry,
    in_order,
    pseudonym_of,
    root_of,
)
from slotlock.domain.draws.drawing import DrawnEntry, WishResult, draw_places
from slotlock.domain.draws.measures import DrawMeasures, measure
from slotlock.domain.schedule.meetings import first_overlap
from slotlock.domain.users.user import UserId
from tests.support.domain.draws import build_simple_basis, plain_slot, random_draws

simple_draws = st.randoms(use_true_random=False).map(build_simple_basis)
GRANTED, FULL = WishResult.GRANTED, WishResult.FULL


def drawn_by_lot(basis: DrawBasis) -> tuple[DrawnEntry, ...]:
    """Return the result of a draw."""
    return draw_places(basis, root_of(basis), "seed")


@given(random_draws)
def test_no_place_is_given_twice_and_no_limit_exceeded(basis: DrawBasis) -> None:
    slots = {slot.id: slot for slot in basis.slots}
    new = [
        (slot_id, member)
        for each in drawn_by_lot(basis)
        for slot_id in each.granted
        for member in each.entry.members
    ]
    for slot_id, slot in slots.items():
        members = [member for given_id, member in new if given_id == slot_id]
        assert not members or len(members) + slot.booked <= slot.capacity
        counts = Counter(group for member in members for group in member.groups)
        for each in slot.groups:
            assert not counts[each.group] or counts[each.group] + each.count <= each.limit
    for member in {member for _, member in new}:
        assert_within_limits(basis, slots, member, [id_ for id_, other in new if other == member])


def assert_within_limits(
    basis: DrawBasis, slots: dict[SlotId, DrawSlot], member: DrawMember, new: list[SlotId]
) -> None:
    """Check the limits of one user with new places."""
    assert not set(new) & set(member.blocked)
    if basis.max_bookings is not None:
        assert member.had + len(new) <= basis.max_bookings
    for one, other in combinations(new, 2):
        first, second = slots[one], slots[other]
        assert first.choice_group is None or first.choice_group != second.choice_group
        if basis.forbid_overlap:
            assert first_overlap(first.meetings, second.meetings) is None


@given(simple_draws)
def test_with_one_place_each_nobody_envies_a_higher_number(basis: DrawBasis) -> None:
    drawn = drawn_by_lot(basis)
    for one, other in combinations(drawn, 2):
        assert one.number < other.number
        for slot_id in other.granted:
            if slot_id in one.entry.wishes:
                rank_of_own = min(map(one.entry.wishes.index, one.granted), default=-1)
                assert 0 <= rank_of_own <= one.entry.wishes.index(slot_id)


@given(simple_draws)
def test_with_one_place_each_rounds_are_serial_dictatorship(basis: DrawBasis) -> None:
    serial = draw_places(basis, root_of(basis), "seed", DrawMethod.SERIAL)
    assert drawn_by_lot(basis) == serial


@given(simple_draws)
def test_with_one_place_in_each_slot_nobody_envies_others_by_more_than_one_place(
    basis: DrawBasis,
) -> None:
    slots = tuple(replace(slot, capacity=1) for slot in basis.slots)
    unlimited = replace(basis, slots=slots, max_bookings=None)
    assert measure(drawn_by_lot(unlimited)).envious == 0


@given(random_draws)
def test_every_wish_has_one_outcome_and_no_open_place_is_left_to_a_full_one(
    basis: DrawBasis,
) -> None:
    drawn = drawn_by_lot(basis)
    assert [each.number for each in drawn] == list(range(1, len(drawn) + 1))
    assert sorted(each.lot for each in drawn) == [each.lot for each in drawn]
    free = {slot.id: slot.capacity - slot.booked for slot in basis.slots}
    for each in drawn:
        for slot_id in each.granted:
            free[slot_id] -= len(each.entry.members)
    for each in drawn:
        assert tuple(outcome.slot_id for outcome in each.outcomes) == each.entry.wishes
        rounds = [outcome.round for outcome in each.outcomes if outcome.result is GRANTED]
        is_serial = basis.method is DrawMethod.SERIAL
        assert rounds == [1 if is_serial else number for number in range(1, len(rounds) + 1)]
        for outcome in each.outcomes:
            if outcome.result is FULL:
                size = len(each.entry.members)
                assert free[outcome.slot_id] < size
                # A team may be too large for places that others get afterwards.
                is_given = any(outcome.slot_id in other.granted for other in drawn)
                assert size > 1 or is_given is (outcome.last_number is not None)
            if outcome.last_number is not None:
                assert outcome.slot_id in drawn[outcome.last_number - 1].granted


@given(random_draws, st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(basis: DrawBasis, random: Random) -> None:
    entries = [
        build_entry(random.sample(entry.members, len(entry.members)), entry.wishes)
        for entry in random.sample(basis.entries, len(basis.entries))
    ]
    slots = tuple(random.sample(basis.slots, len(basis.slots)))
    shuffled = replace(basis, slots=slots, entries=tuple(entries))
    assert in_order(shuffled) == basis
    assert draw_places(shuffled, root_of(basis), "seed") == drawn_by_lot(basis)


def draw_of(
    wishes: dict[str, list[str]], capacity: int = 1, max_bookings: int | None = None
) -> tuple[DrawnEntry, ...]:
    """Return the result for users with these wishes, by numbers in the order of the users.

    Names with a space between them are those of users who wish together.
    """
    ids = {slot_id: SlotId(slot_id) for row in wishes.values() for slot_id in row}
    slots = tuple(plain_slot(slot_id, capacity) for slot_id in ids.values())
    entries = [
        build_entry(
            [DrawMember(pseudonym_of("", UserId(name))) for name in names.split()],
            [ids[each] for each in row],
        )
        for names, row in wishes.items()
    ]
    basis = DrawBasis("d", "c", DrawMethod.ROUNDS, max_bookings, False, slots, tuple(entries))  # type: ignore[arg-type]
    for seed in map(str, range(1000)):
        drawn = draw_places(basis, "root", seed)
        if [each.entry for each in drawn] == entries:
            return drawn
    raise AssertionError("no seed gives this order")


def test_the_second_round_runs_in_the_reverse_order() -> None:
    drawn = draw_of({"ada": ["a", "b", "c"], "bob": ["a", "b", "c"]})
    assert [each.granted for each in drawn] == [("a",), ("b", "c")]
    assert [each.round for each in drawn[1].outcomes] == [None, 1, 2]


def test_users_who_wish_together_get_places_in_a_slot_or_none_does() -> None:
    drawn = draw_of({"ada": ["a"], "bob eve": ["a", "b"]}, capacity=2)
    assert [each.granted for each in drawn] == [("a",), ("b",)]


def test_a_full_slot_names_the_number_that_got_its_last_place() -> None:
    drawn = draw_of({"ada": ["a"], "bob": ["a"], "eve": ["a"]}, capacity=2)
    outcome = drawn[2].outcomes[0]
    assert (outcome.result, outcome.last_number) == (FULL, 2)


def test_measures_count_users_without_a_place_ranks_and_envy() -> None:
    wishes = {"ada": ["a", "b", "c"], "bob": ["a", "b", "c"]}
    assert measure(draw_of(wishes)) == DrawMeasures(2, 0, 3, 2.0, 0)
    greedy = {"ada": ["a", "b", "c"], "bob": ["c", "b", "a"]}
    assert measure(draw_of(greedy, max_bookings=1)) == DrawMeasures(2, 0, 2, 1.0, 0)


@pytest.mark.parametrize(("method", "envious"), [("rounds", 0), ("serial", 1)])
def test_giving_everything_at_once_makes_others_envious(method: str, envious: int) -> None:
    slots = tuple(plain_slot(SlotId(each), 1) for each in "abc")
    entries = tuple(
        build_entry([DrawMember(pseudonym_of("", UserId(name)))], [slot.id for slot in slots])
        for name in ("ada", "bob")
    )
    basis = DrawBasis("d", "c", DrawMethod(method), None, False, slots, entries)  # type: ignore[arg-type]
    assert measure(draw_places(basis, "root", "seed")).envious == envious
