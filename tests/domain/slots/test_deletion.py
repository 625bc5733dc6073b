"""Which slots can be deleted: those that nobody has booked or waited for."""

import pytest

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.slots.deletion import delete_slots
from slotlock.domain.slots.outcomes import SlotHasBookings, SlotsDeleted
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    with_waitlist,
)


@pytest.mark.parametrize("status", list(SlotStatus))
def test_a_slot_without_bookings_is_deleted_whatever_its_status(status: SlotStatus) -> None:
    slot = build_slot(status=status)
    assert delete_slots([slot], ()) == SlotsDeleted((slot.id,))


def test_a_slot_with_a_booking_a_hold_or_a_waiting_user_is_not_deleted() -> None:
    booked, _ = book_users(build_slot(), "ada")
    held, _ = book_place(build_slot(), booking_request("ada", hold=True), NOW)
    waited_for = with_waitlist(build_slot(), "ben")
    for slot in (booked, held, waited_for):
        assert delete_slots([slot], ()) == SlotHasBookings(slot.id)


def test_a_slot_whose_bookings_have_ended_is_not_deleted() -> None:
    slot = build_slot()
    assert delete_slots([slot], {slot.id}) == SlotHasBookings(slot.id)


def test_of_several_slots_all_are_deleted_or_none() -> None:
    first, second = build_slot(id="one"), build_slot(id="two")
    assert delete_slots([first, second], ()) == SlotsDeleted((first.id, second.id))
    assert delete_slots([first, second], {second.id}) == SlotHasBookings(second.id)
