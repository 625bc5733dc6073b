"""Replaying refusals that the admission queue stored without their slots."""

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.promotion import as_of
from slotlock.domain.booking.refusals import SlotNotFound
from slotlock.domain.booking.slot import Slot
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.idempotency_codec import RefusalWithoutSlot
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services


async def add_current_slot(services: Services, outcome: object, user_id: UserId) -> object:
    """Add the present slot to a refusal that was stored without it.

    Returns SlotNotFound if the user may not see the slot any more.
    """
    if not isinstance(outcome, RefusalWithoutSlot):
        return outcome
    now = services.now()
    slot = await services.slots.find(SlotQuery(outcome.slot_id, now, [user_id]))
    if slot is None or not await _is_visible_to(services, slot, user_id):
        return SlotNotFound(outcome.slot_id)
    return outcome.with_slot(as_of(slot, now))


async def _is_visible_to(services: Services, slot: Slot, user_id: UserId) -> bool:
    if is_visible(slot, None) or slot.booking_of(user_id):
        return True
    # The slot was unpublished meanwhile. A ticket names its user only by id, so load the role.
    user = (await services.users.find_many([user_id])).get(user_id)
    return user is not None and user.role.is_organizer
