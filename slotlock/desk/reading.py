"""Looking things up for somebody: what they may not see is not there."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from slotlock.desk.desk import Desk
from slotlock.domain.listing import Page, Position, SlotFilter, SlotOrder
from slotlock.domain.people import Caller, UserId
from slotlock.domain.slots import Booking, BookingId, Slot, SlotId, visible


async def find_slots(
    desk: Desk, slot_ids: Iterable[SlotId], viewer: Caller | None
) -> dict[SlotId, Slot]:
    """Those of the slots that exist for this viewer."""
    # Single looks, because those of concurrent requests travel together.
    people = _people(viewer)
    found = await asyncio.gather(*(desk.slots.look(slot_id, people) for slot_id in slot_ids))
    return {slot.id: slot for slot in found if slot and visible(slot, viewer)}


async def list_slots(
    desk: Desk,
    wanted: SlotFilter,
    order: SlotOrder,
    first: int,
    after: Position | None,
    viewer: Caller | None,
) -> Page[Slot]:
    """The next slots that a viewer looks for."""
    return await desk.slots.page(wanted, order, first, after, _people(viewer))


async def list_bookings(
    desk: Desk, person: Caller, first: int, after: Position | None
) -> Page[Slot]:
    """The next slots in which a person has a live booking; each slot brings that booking."""
    return await desk.slots.page_of(person.user_id, first, after)


async def roster(
    desk: Desk, slot_id: SlotId, first: int, after: BookingId | None
) -> tuple[Slot, Page[Booking]] | None:
    """The next live bookings of a slot in the order they were made; None if there is no slot."""
    slot = await desk.slots.look_at_roster(slot_id)
    if slot is None:
        return None
    # Ids of bookings grow with time only within a process, so the place in the list is what counts;
    # when the booking at the cursor was cancelled meanwhile, what was made after it follows.
    ids = [booking.id for booking in slot.bookings]
    begin = 0
    if after is not None:
        begin = ids.index(after) + 1 if after in ids else sum(id_ <= after for id_ in ids)
    items = slot.bookings[begin : begin + first]
    return replace(slot, bookings=()), Page(items, len(slot.bookings) > begin + first)


async def find_booking(
    desk: Desk, slot_id: SlotId, booking_id: BookingId, viewer: Caller
) -> tuple[Booking, Slot] | None:
    """A booking, live or cancelled, with its slot, for its owner or an organiser."""
    slot = await desk.slots.look(slot_id, [viewer.user_id], [booking_id])
    if slot is None:
        return None
    live = next((b for b in slot.bookings if b.id == booking_id), None)
    booking = live or await desk.slots.ended(booking_id)
    if booking is None or booking.slot_id != slot_id:
        return None
    return (booking, slot) if viewer.organises or booking.user_id == viewer.user_id else None


def _people(viewer: Caller | None) -> Sequence[UserId]:
    return [viewer.user_id] if viewer else []
