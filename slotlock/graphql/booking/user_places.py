"""What a user has booked and waits for, for organizers who are asked about the user."""

from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    FilterByTime,
    First,
    OrderByTime,
    TimeList,
)
from slotlock.graphql.core.enums import TimeOrder
from slotlock.graphql.slots.facts import slot_selection
from slotlock.graphql.slots.slot_queries import BookingConnection, WaitlistEntryConnection
from slotlock.graphql.slots.slot_types import Booking, Slot, WaitlistEntry, times_of
from slotlock.services.slots import viewer_queries

USER_BOOKINGS = TimeList("userBookings", times_of)
USER_WAITLIST_ENTRIES = TimeList("userWaitlistEntries", times_of)
UserIdArgument = Annotated[strawberry.ID, argument(description="The id of the user.")]


@strawberry.type
class UserPlaceQueries:
    @field(
        description="The active bookings of a user, and those that were cancelled with their slot, "
        "by the time of the slot. Null if there is no such user. Organizers only."
    )
    async def user_bookings(
        self,
        info: Info,
        user_id: UserIdArgument,
        filter: FilterByTime = None,
        order_by: OrderByTime = TimeOrder.UPCOMING_FIRST,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organizer, services = info.context.require_organizer(), info.context.services
        page, cursors = USER_BOOKINGS.page(filter, order_by, first, after, services.now())
        parsed_id = await _find_user_id(info, user_id)
        if parsed_id is None:
            return None
        found, slots = await viewer_queries.list_bookings_of(
            services, parsed_id, page, organizer, slot_selection(info)
        )

        def show(row: ReadableSlot) -> Booking | None:
            booking, slot = row.booking_of(parsed_id), slots.get(row.id)
            if booking is None or slot is None:
                return None
            return Booking.from_domain(booking, Slot(slot, organizer), organizer)

        count = partial(services.slots.count_of_user, parsed_id, page.wanted, page.as_of)
        return BookingConnection.of_page(found, show, cursors, after, count)

    @field(
        description="The waiting list entries of a user, by the time of the slot. Null if there is "
        "no such user. Organizers only."
    )
    async def user_waitlist_entries(
        self,
        info: Info,
        user_id: UserIdArgument,
        filter: FilterByTime = None,
        order_by: OrderByTime = TimeOrder.UPCOMING_FIRST,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> WaitlistEntryConnection | None:
        organizer, services = info.context.require_organizer(), info.context.services
        page, cursors = USER_WAITLIST_ENTRIES.page(filter, order_by, first, after, services.now())
        parsed_id = await _find_user_id(info, user_id)
        if parsed_id is None:
            return None
        found, slots = await viewer_queries.list_waitlist_entries_of(
            services, parsed_id, page, organizer, slot_selection(info)
        )

        def show(row: ReadableSlot) -> WaitlistEntry | None:
            entry, slot = row.waitlist_entry_of(parsed_id), slots.get(row.id)
            return WaitlistEntry(entry, Slot(slot, organizer)) if entry and slot else None

        count = partial(services.slots.count_of_waiting_user, parsed_id, page.wanted, page.as_of)
        return WaitlistEntryConnection.of_page(found, show, cursors, after, count)


async def _find_user_id(info: Info, user_id: str) -> UserId | None:
    """Return the id of a user if there is one."""
    parsed_id = ids.parse_user_id(user_id)
    return parsed_id if parsed_id and await info.context.loaders.user(parsed_id) else None
