"""The organisers' acts on slots: create, edit, publish, call off."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from slotlock.desk.act import locked
from slotlock.desk.desk import Desk
from slotlock.domain import keeping as rules
from slotlock.domain.outcomes import InvalidInput, KeepOutcome, SlotKept, SlotNotFound
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot, SlotId, availability
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
    """Change the named fields of a slot."""
    return await _keep(desk, slot_id, viewer, lambda slot, now: rules.edit(slot, changes, now))


async def publish(desk: Desk, slot_id: SlotId, viewer: UserId) -> KeepOutcome:
    """Open a draft to everyone."""
    return await _keep(desk, slot_id, viewer, rules.publish)


async def call_off(desk: Desk, slot_id: SlotId, viewer: UserId) -> KeepOutcome:
    """Cancel a slot for everyone."""
    return await _keep(desk, slot_id, viewer, rules.call_off)


async def _keep(
    desk: Desk,
    slot_id: SlotId,
    viewer: UserId,
    decide: Callable[[Slot, datetime], KeepOutcome],
) -> KeepOutcome:
    now = desk.now()
    for _ in range(EDIT_TRIES):
        slot = await desk.slots.look(slot_id, [viewer])
        if slot is None:
            return SlotNotFound(slot_id)
        outcome = decide(slot, now)
        if not isinstance(outcome, SlotKept) or outcome.slot == slot:
            return outcome
        if await desk.slots.replace(slot, outcome.slot):
            news = availability(outcome.slot)
            desk.board.tell(news)
            desk.announcements.publish(news)
            return outcome
    return locked(slot_id)
