"""The organisers' acts on slots: create, edit, publish, call off."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from slotlock.desk.act import serve
from slotlock.desk.deciding import Request, at
from slotlock.desk.desk import Desk
from slotlock.domain import keeping as rules
from slotlock.domain.bookings import SlotId
from slotlock.domain.outcomes import KeepOutcome, SlotKept
from slotlock.domain.people import UserId
from slotlock.domain.refusals import InvalidInput, SlotNotFound
from slotlock.domain.slots import Availability, Slot
from slotlock.stores.slots import new_slot_id

# An edit takes no lock, so that a rush cannot keep its organiser out; each try is guarded by
# version, and between two bookings of one slot lies more time than a try takes.
EDIT_TRIES = 20


async def create(desk: Desk, draft: rules.SlotDraft) -> SlotKept | InvalidInput:
    """Create a slot, published at once or as a draft."""
    outcome = rules.create(new_slot_id(), draft, desk.now())
    if isinstance(outcome, SlotKept):
        await desk.slots.add(outcome.slot)
    return outcome


async def edit(
    desk: Desk, slot_id: SlotId, changes: Mapping[str, Any], viewer: UserId
) -> KeepOutcome:
    """Change the named fields of a slot. Places that are added go to those who wait."""
    heads = rules.MAX_CAPACITY if "capacity" in changes else 1
    return await _keep(desk, slot_id, viewer, lambda slot, _: rules.edit(slot, changes), heads)


async def publish(desk: Desk, slot_id: SlotId, viewer: UserId) -> KeepOutcome:
    """Open a draft to everyone."""
    return await _keep(desk, slot_id, viewer, lambda slot, _: rules.publish(slot))


async def call_off(desk: Desk, slot_id: SlotId, viewer: UserId) -> KeepOutcome:
    """Cancel a slot for everyone."""
    outcome = await _keep(
        desk,
        slot_id,
        viewer,
        lambda slot, now: rules.call_off(slot, viewer, now),
        heads=rules.MAX_WAITLIST,
    )
    roster = await desk.slots.look_at_roster(slot_id) if isinstance(outcome, SlotKept) else None
    if roster is not None:
        desk.announcements.poke(roster.bookings)
    return outcome


async def _keep(
    desk: Desk,
    slot_id: SlotId,
    viewer: UserId,
    rule: Callable[[Slot, datetime], tuple[Slot, KeepOutcome]],
    heads: int = 1,
) -> KeepOutcome:
    otherwise: KeepOutcome = SlotNotFound(slot_id)
    request = Request(at(slot_id, rule, otherwise), people=(viewer,), heads=heads)
    news: list[Availability] = []
    (outcome,) = await serve(desk, [slot_id], [request], news, EDIT_TRIES)
    for state in news:
        desk.announcements.publish(state)
    kept: KeepOutcome = outcome
    return kept
