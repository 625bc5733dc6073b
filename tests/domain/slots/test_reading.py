"""A reading has what was selected of a slot, and nothing else."""

import pytest

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.slots.reading import SlotReading
from tests.support.domain.builders import (
    book_place,
    booking_request,
    build_slot,
    minutes_from_now,
)


def read_slot_with_a_hold() -> SlotReading:
    """Return the bookings of a slot, which are one hold for five minutes, and its status."""
    state, _ = book_place(build_slot(), booking_request("ada", hold=True))
    reading = SlotReading()
    reading.bookings = state.bookings
    for name, value in (("id", state.id), ("status", SlotStatus.PUBLISHED)):
        setattr(reading, name, value)
    return reading


def test_a_reading_without_expired_holds_has_its_other_attributes() -> None:
    reading = read_slot_with_a_hold()
    later = reading.without_expired(minutes_from_now(5))
    assert (later.id, later.status, later.bookings) == (reading.id, reading.status, ())
    assert len(reading.bookings) == 1
    assert reading.without_expired(minutes_from_now(4)) is reading


def test_an_attribute_that_was_not_selected_is_missing() -> None:
    reading = read_slot_with_a_hold()
    for each in (reading, reading.without_expired(minutes_from_now(5))):
        with pytest.raises(AttributeError):
            _ = each.title
        with pytest.raises(AttributeError):
            _ = each.remaining
