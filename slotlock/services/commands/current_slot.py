"""The current slot for a refusal of the admission queue, which is recorded without its slot."""

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.booking_refusals import SlotNotFound, SlotOutcome
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services


async def with_current_slot(
    services: Services, result: CommandResult[object], user_id: UserId
) -> CommandResult[object]:
    """Return the result with the present slot, if its outcome is about one that is not recorded.

    Such an outcome is SlotNotFound while the user may not see the slot, and after its deletion.
    """
    outcome = result.outcome
    if not isinstance(outcome, SlotOutcome) or outcome.slot_id in result.slots:
        return result
    now = services.now()
    state = await services.slots.find(SlotQuery(outcome.slot_id, now, [user_id]))
    if state is None or not await _is_visible_to(services, state, user_id):
        return CommandResult(SlotNotFound(outcome.slot_id))
    return CommandResult(outcome, {state.id: as_of(state, now)})


async def _is_visible_to(services: Services, state: SlotState, user_id: UserId) -> bool:
    if is_visible(state.slot, None) or state.booking_of(user_id):
        return True
    # The slot was unpublished meanwhile. A ticket names its user only by id, so load the role.
    user = (await services.users.find_many([user_id])).get(user_id)
    return user is not None and user.role.is_organizer
