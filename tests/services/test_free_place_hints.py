"""Slots that are full or have many free places are remembered for one second."""

from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.services import free_place_hints
from slotlock.services.free_place_hints import (
    MANY_PLACES,
    PLACES_PER_CALLER,
    TRUSTED_FOR,
    FreePlaceHints,
)
from tests.support.domain.builders import NOW, book_users, build_slot
from tests.support.model.service_pair import ManualClock

FREE = build_slot(1, id=SlotId("1" * 24))
FULL, _ = book_users(FREE, "ada")
LARGE = build_slot(MANY_PLACES, id=SlotId("1" * 24))
LARGE_BOOKED_ONCE, _ = book_users(LARGE, "ada")


@pytest.fixture
def clock() -> ManualClock:
    """Return the clock of the process."""
    return ManualClock(NOW)


def test_a_slot_is_remembered_as_full_until_it_is_seen_with_a_free_place(
    clock: ManualClock,
) -> None:
    remembered = FreePlaceHints(clock)
    remembered.observe([FREE])
    assert not remembered.is_full(FREE.id)
    remembered.observe([FULL])
    assert remembered.is_full(FULL.id)
    assert remembered.burst_quota(FULL.id) == 0
    remembered.observe([FREE])
    assert not remembered.is_full(FREE.id)


def test_a_batch_has_up_to_a_quarter_of_many_places_for_simultaneous_callers(
    clock: ManualClock,
) -> None:
    remembered = FreePlaceHints(clock)
    remembered.observe([LARGE])
    assert remembered.burst_quota(LARGE.id) == MANY_PLACES // PLACES_PER_CALLER
    assert not remembered.is_full(LARGE.id)


def test_a_slot_with_few_places_is_not_remembered(clock: ManualClock) -> None:
    remembered = FreePlaceHints(clock)
    remembered.observe([LARGE])
    remembered.observe([LARGE_BOOKED_ONCE])
    assert remembered.burst_quota(LARGE.id) == 0


@pytest.mark.parametrize("slot", [FULL, LARGE])
def test_what_was_seen_one_second_ago_may_have_changed(clock: ManualClock, slot: SlotState) -> None:
    remembered = FreePlaceHints(clock)
    remembered.observe([slot])
    clock.advance(TRUSTED_FOR / 2)
    remembered.observe([slot])
    clock.advance(TRUSTED_FOR - timedelta(microseconds=1))
    assert remembered.is_full(slot.id) or remembered.burst_quota(slot.id) > 0
    clock.advance(timedelta(microseconds=1))
    assert not remembered.is_full(slot.id)
    assert remembered.burst_quota(slot.id) == 0


def test_no_more_slots_are_remembered_than_fit(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_place_hints, "MAX_SLOTS", 3)
    remembered = FreePlaceHints(clock)
    slots = [book_users(build_slot(1, id=SlotId(f"{n:024x}")), "ada")[0] for n in range(5)]
    for slot in slots:
        remembered.observe([slot])
    assert [remembered.is_full(slot.id) for slot in slots] == [False, False, True, True, True]
