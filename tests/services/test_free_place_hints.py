"""Slots that are full or have many free places are remembered for one second."""

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.services import free_place_hints
from slotlock.services.free_place_hints import (
    MANY_PLACES,
    PLACES_PER_CALLER,
    TRUSTED_FOR_S,
    FreePlaceHints,
)
from tests.support.domain.builders import book_users, build_slot

FREE = build_slot(1, id=SlotId("1" * 24))
FULL, _ = book_users(FREE, "ada")
LARGE = build_slot(MANY_PLACES, id=SlotId("1" * 24))
LARGE_BOOKED_ONCE, _ = book_users(LARGE, "ada")


def test_a_slot_is_remembered_as_full_until_it_is_seen_with_a_free_place() -> None:
    remembered = FreePlaceHints()
    remembered.observe([FREE])
    assert remembered.remaining(FREE.id) is None
    remembered.observe([FULL])
    assert remembered.remaining(FULL.id) == 0
    assert remembered.burst_quota(FULL.id) == 0
    remembered.observe([FREE])
    assert remembered.remaining(FREE.id) is None


def test_a_batch_has_up_to_a_quarter_of_many_places_for_simultaneous_callers() -> None:
    remembered = FreePlaceHints()
    remembered.observe([LARGE])
    assert remembered.burst_quota(LARGE.id) == MANY_PLACES // PLACES_PER_CALLER
    assert remembered.remaining(LARGE.id)


def test_a_slot_with_few_places_is_not_remembered() -> None:
    remembered = FreePlaceHints()
    remembered.observe([LARGE])
    remembered.observe([LARGE_BOOKED_ONCE])
    assert remembered.burst_quota(LARGE.id) == 0


@pytest.mark.parametrize("slot", [FULL, LARGE])
def test_what_was_seen_one_second_ago_may_have_changed(slot: SlotState) -> None:
    seconds = 0.0
    remembered = FreePlaceHints(lambda: seconds)
    remembered.observe([slot])
    seconds = TRUSTED_FOR_S / 2
    remembered.observe([slot])
    seconds += TRUSTED_FOR_S * 0.99
    assert remembered.remaining(slot.id) == 0 or remembered.burst_quota(slot.id) > 0
    seconds += TRUSTED_FOR_S * 0.01
    assert remembered.remaining(slot.id) is None
    assert remembered.burst_quota(slot.id) == 0


def test_no_more_slots_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_place_hints, "MAX_SLOTS", 3)
    remembered = FreePlaceHints()
    slots = [book_users(build_slot(1, id=SlotId(f"{n:024x}")), "ada")[0] for n in range(5)]
    for slot in slots:
        remembered.observe([slot])
    assert [remembered.remaining(slot.id) == 0 for slot in slots] == [
        False,
        False,
        True,
        True,
        True,
    ]
