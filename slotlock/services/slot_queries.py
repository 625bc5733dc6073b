"""What commands need to know of their slots."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.slot_command import SlotCommand

# Waitlist entries to load besides those that can be promoted: some users have booked elsewhere.
EXTRA_WAITLIST_DEPTH = 4


def slot_query(
    slot_id: SlotId, commands: Sequence[SlotCommand[object]], now: datetime
) -> SlotQuery:
    """Return the query for what the commands need of a slot."""
    return SlotQuery(
        slot_id,
        now,
        user_ids=tuple({user_id for command in commands for user_id in command.user_ids}),
        booking_ids=tuple({id_ for command in commands for id_ in command.booking_ids}),
        waitlist_depth=sum(command.waitlist_depth for command in commands) + EXTRA_WAITLIST_DEPTH,
    )


def slot_ids_of(commands: Iterable[SlotCommand[object]]) -> list[SlotId]:
    """Return the slots of the commands, in the order in which locks are acquired."""
    return sorted({slot_id for command in commands for slot_id in command.slot_ids})
