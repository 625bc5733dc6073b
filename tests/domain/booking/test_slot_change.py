"""A change knows whether it is empty, and whether it only adds bookings."""

from dataclasses import fields, replace

import pytest

from slotlock.domain.booking.slot_change import EMPTY_CHANGE, SlotChange

OTHER_FIELDS = [field.name for field in fields(SlotChange) if field.name != "added"]
SOMETHING = {"is_edited": True}


def test_a_change_without_anything_is_empty_and_adds_nothing() -> None:
    for change in (EMPTY_CHANGE, SlotChange()):
        assert change.is_empty
        assert not change.only_adds_bookings


@pytest.mark.parametrize("name", OTHER_FIELDS)
def test_each_field_makes_a_change_more_than_added_bookings(name: str) -> None:
    value = SOMETHING.get(name, ("something",))
    only_adding = SlotChange(added=("a booking",))  # type: ignore[arg-type]
    assert only_adding.only_adds_bookings
    assert not only_adding.is_empty
    for change in (only_adding, EMPTY_CHANGE):
        changed = replace(change, **{name: value})  # type: ignore[arg-type]
        assert not changed.is_empty
        assert not changed.only_adds_bookings
