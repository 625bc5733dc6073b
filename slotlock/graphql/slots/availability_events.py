"""The source of the events of `slotAvailability`."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from slotlock.domain.booking.booking import SlotId
from slotlock.graphql.context import Context
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.slots.events import SlotAvailability
from slotlock.services.live.availability import AvailabilitySubscription
from slotlock.services.slots import queries

MAX_SLOTS = 100
# So many slots of a subscription count as a read: the state of each is read and sent at its start.
SLOTS_PER_READ = 10
# The only field of an event that depends on the viewer, and that is read from MongoDB.
SLOT_FIELD = "slot"


class AvailabilityEvents:
    """The availability of slots that the caller may see; each state is the same for every viewer.

    Iterating yields one event for each state. `open` gives access to the states before they are
    events, for subscribers who share the response to each.
    """

    def __init__(self, context: Context, global_ids: Sequence[str]) -> None:
        self._context = context
        self._global_ids = global_ids

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AvailabilitySubscription]:
        """Subscribe to the slots.

        Errors: BAD_USER_INPUT if one is unknown to the viewer, RATE_LIMITED.
        """
        # A variable of this function would keep the slots as long as the subscription.
        availability = self._context.services.availability
        async with availability.subscribe(await self._find_slot_ids()) as subscription:
            yield subscription

    async def _find_slot_ids(self) -> list[SlotId]:
        """Charge the subscription, and return its slots if the viewer may see all of them."""
        if not 1 <= len(self._global_ids) <= MAX_SLOTS:
            raise bad_input("slotIds", f"`slotIds` must have 1 to {MAX_SLOTS} items.")
        context = self._context
        if reads := len(self._global_ids) // SLOTS_PER_READ:
            await context.charge(OperationKind.READ, reads)
        parsed_ids = {global_id: ids.parse_slot_id(global_id) for global_id in self._global_ids}
        valid_ids = [slot_id for slot_id in parsed_ids.values() if slot_id]
        found = await queries.find_slots(context.services, valid_ids, context.viewer)
        for item, global_id in enumerate(self._global_ids, start=1):
            if parsed_ids[global_id] not in found:
                raise bad_input("slotIds", f"Item {item}: There is no such slot.")
        return valid_ids

    async def __aiter__(self) -> AsyncGenerator[SlotAvailability, None]:
        async with self.open() as subscription, aclosing(subscription.states()) as states:
            async for state in states:
                yield SlotAvailability.from_domain(state)
