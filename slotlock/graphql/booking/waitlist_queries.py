"""The waiting list of a slot, for organizers."""

from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.shared.pagination import Position
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, First, require_valid_first
from slotlock.graphql.core.cursors import decode_position, encode_position
from slotlock.graphql.slots.queries import WaitlistEntryConnection
from slotlock.graphql.slots.types import Slot, WaitlistEntry
from slotlock.services.booking import waitlist

SLOT_WAITLIST_CURSOR = "slotWaitlist"

SlotIdArgument = Annotated[strawberry.ID, argument(description="The id of the slot.")]


@strawberry.type
class WaitlistQueries:
    @field(
        description="The waiting list of a slot in the order in which places are given out. Users "
        "with an offer are not on it: `slotRoster` has their holds. Organizers only."
    )
    async def slot_waitlist(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> WaitlistEntryConnection | None:
        organizer = info.context.require_organizer()
        page_size = require_valid_first(first)
        position = decode_position(SLOT_WAITLIST_CURSOR, after)
        parsed_id = ids.parse_slot_id(slot_id)
        page = parsed_id and await waitlist.page(
            info.context.services,
            parsed_id,
            page_size,
            position,
        )
        if not page:
            return None
        slot = Slot.from_domain(page.slot, organizer)
        items = [
            (
                encode_position(SLOT_WAITLIST_CURSOR, Position(entry.since, entry.id)),
                WaitlistEntry.from_domain(entry, slot, index),
            )
            for index, entry in enumerate(page.entries, page.first_position)
        ]
        return WaitlistEntryConnection.from_items(
            items, has_more=page.has_more, after=after, count=partial(_count, page.length)
        )


async def _count(length: int) -> int:
    return length
