"""Compares what clients read of slots with the model, whichever parts they select."""

from collections.abc import Mapping

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotSelection
from slotlock.domain.users.user import Caller
from slotlock.services.container import Services
from slotlock.services.slots import queries
from tests.support.domain.selections import SELECTIONS
from tests.support.model.booking_model import BookingModel
from tests.support.model.state import ModelSlot


async def check_reads(
    services: Services,
    viewer: Caller,
    model: BookingModel,
    tokens_by_id: Mapping[str, str],
    step: int,
) -> None:
    """Assert that slots, read by id and in a list, are those of the model.

    Each step selects everything, and another combination of parts.
    """
    ids = [SlotId(slot_id) for slot_id in model.slots]
    published = {SlotId(id_) for id_, slot in model.slots.items() if not slot.is_cancelled}
    for selection in (SELECTIONS[-1], SELECTIONS[step % len(SELECTIONS)]):
        found = await queries.find_slots(services, ids, viewer, selection)
        assert set(found) == set(ids)
        page = await queries.list_slots(
            services, SlotFilter(), SlotOrder.START_ASC, 100, None, viewer, selection
        )
        assert {slot.id for slot in page.items} == published
        for slot in (*found.values(), *page.items):
            expected = model.slots[slot.id]
            assert _shown_parts(slot, viewer, selection, tokens_by_id) == _expected_parts(
                expected, viewer, selection, services
            ), (selection, slot, expected)


def _shown_parts(
    slot: SlotState, viewer: Caller, selection: SlotSelection, tokens_by_id: Mapping[str, str]
) -> dict[str, object]:
    booking = slot.booking_of(viewer.user_id)
    entry = slot.waitlist_entry_of(viewer.user_id)
    parts: dict[str, object] = {
        "remaining": slot.remaining,
        "my_booking": tokens_by_id[booking.id] if booking else None,
        "my_waitlist_entry": tokens_by_id[entry.id] if entry else None,
        "waitlist_length": slot.waitlist_length,
        "booked_by": [tokens_by_id[each.id] for each in slot.bookings],
    }
    return _selected(parts, selection, viewer, slot.slot.capacity)


def _expected_parts(
    slot: ModelSlot, viewer: Caller, selection: SlotSelection, services: Services
) -> dict[str, object]:
    live = slot.live_bookings(services.now())
    entry = slot.waitlist_entry_of(viewer.user_id)
    parts: dict[str, object] = {
        "remaining": slot.remaining(services.now()),
        "my_booking": next((each.token for each in live if each.user == viewer.user_id), None),
        "my_waitlist_entry": entry.token if entry else None,
        "waitlist_length": len(slot.waitlist),
        "booked_by": [each.token for each in live],
    }
    return _selected(parts, selection, viewer, slot.capacity)


def _selected(
    parts: dict[str, object], selection: SlotSelection, viewer: Caller, capacity: int
) -> dict[str, object]:
    """Return the selected parts. Only organizers see who booked, and only of one place."""
    shows_booker = viewer.is_organizer and capacity == 1
    return {
        name: value
        for name, value in parts.items()
        if getattr(selection, name) and (name != "booked_by" or shows_booker)
    }
