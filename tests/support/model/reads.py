"""Compares what clients read of slots with the model, whichever parts they select."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotSelection
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.user import Caller
from slotlock.services.container import Services
from slotlock.services.slots import viewer_queries
from tests.support.domain.selections import PARTS, SELECTIONS
from tests.support.model.oracle import SAME, Oracle


async def check_reads(
    services: Services,
    viewer: Caller,
    model: Oracle,
    tokens_by_id: Mapping[str, str],
    step: int,
) -> None:
    """Assert that slots, read by id and in a list, are those of the model.

    Each step selects everything, and another combination of parts without any fact.
    """
    ids = list(model.slots)
    published = {id_ for id_, state in model.slots.items() if state.slot.cancellation is None}
    parts_only = replace(SELECTIONS[step % len(SELECTIONS)], facts=frozenset())
    for selection in (SELECTIONS[-1], parts_only):
        found = await viewer_queries.find_slots(services, ids, viewer, selection)
        assert set(found) == set(ids)
        page = await viewer_queries.list_slots(
            services,
            SlotFilter(include_past=True),
            SlotOrder.START_ASC,
            100,
            None,
            viewer,
            selection,
        )
        assert {slot.id for slot in page.items} == published
        for slot in (*found.values(), *page.items):
            expected = as_of(model.slots[slot.id], services.now())
            names = _selected_parts(selection, viewer, expected.slot.capacity)
            shown = _shown_parts(slot, viewer, names, tokens_by_id)
            assert shown == _shown_parts(expected, viewer, names, SAME), (selection, slot)


def _selected_parts(selection: SlotSelection, viewer: Caller, capacity: int) -> list[str]:
    """Return the selected parts. Only organizers see who booked, and only of one place."""
    shows_booker = viewer.is_organizer and capacity == 1
    return [
        name for name in PARTS if getattr(selection, name) and (name != "booked_by" or shows_booker)
    ]


def _shown_parts(
    slot: ReadableSlot | SlotState,
    viewer: Caller,
    names: Sequence[str],
    tokens_by_id: Mapping[str, str],
) -> dict[str, object]:
    parts: dict[str, object] = {}
    for name in names:
        match name:
            case "my_booking":
                booking = slot.booking_of(viewer.user_id)
                parts[name] = tokens_by_id[booking.id] if booking else None
            case "my_waitlist_entry":
                entry = slot.waitlist_entry_of(viewer.user_id)
                parts[name] = tokens_by_id[entry.id] if entry else None
            case "booked_by":
                parts[name] = [tokens_by_id[each.id] for each in slot.bookings]
            case _:
                parts[name] = getattr(slot, name)
    return parts
