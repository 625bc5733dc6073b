"""Full slots are remembered for one second."""

from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.services import full_slots
from slotlock.services.full_slots import TRUSTED_FOR, FullSlots
from tests.support.domain.builders import NOW, book_users, build_slot
from tests.support.model.service_pair import ManualClock

FREE = build_slot(1, id=SlotId("1" * 24))
FULL, _ = book_users(FREE, "ada")


@pytest.fixture
def clock() -> ManualClock:
    """Return the clock of the process."""
    return ManualClock(NOW)


def test_a_slot_is_remembered_as_full_until_it_is_seen_with_a_free_place(
    clock: ManualClock,
) -> None:
    remembered = FullSlots(clock)
    remembered.observe([FREE])
    assert FREE.id not in remembered
    remembered.observe([FULL])
    assert FULL.id in remembered
    remembered.observe([FREE])
    assert FREE.id not in remembered


def test_a_slot_that_was_full_one_second_ago_may_have_a_free_place(clock: ManualClock) -> None:
    remembered = FullSlots(clock)
    remembered.observe([FULL])
    clock.advance(TRUSTED_FOR / 2)
    remembered.observe([FULL])
    clock.advance(TRUSTED_FOR - timedelta(microseconds=1))
    assert FULL.id in remembered
    clock.advance(timedelta(microseconds=1))
    assert FULL.id not in remembered


def test_no_more_slots_are_remembered_than_fit(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_slots, "MAX_FULL_SLOTS", 3)
    remembered = FullSlots(clock)
    slots = [book_users(build_slot(1, id=SlotId(f"{n:024x}")), "ada")[0] for n in range(5)]
    for slot in slots:
        remembered.observe([slot])
    assert [slot.id in remembered for slot in slots] == [False, False, True, True, True]
