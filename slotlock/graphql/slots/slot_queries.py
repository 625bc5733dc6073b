"""Queries that list slots and their bookings."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Annotated, Any

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import booking
from slotlock.domain.booking.booking import BookingId
from slotlock.domain.shared.pagination import Page, Position, TitlePosition
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.user import User
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import ReadForArgument
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    Count,
    FilterByTime,
    First,
    OrderByTime,
    TimeList,
    page_start,
)
from slotlock.graphql.core.cursors import BY_ID, BY_TIME, BY_TITLE, ListCursors
from slotlock.graphql.core.enums import SlotOrder, TimeOrder
from slotlock.graphql.core.node import selected_names
from slotlock.graphql.slots.facts import FAMILY, select_parts, slot_selection
from slotlock.graphql.slots.filters import SlotsFilter
from slotlock.graphql.slots.slot_types import (
    Booking,
    Slot,
    SlotConnection,
    WaitlistEntry,
    load_slot,
    position_by_start,
    times_of,
)
from slotlock.services import resources
from slotlock.services.slots import viewer_queries


def _end_of(ended: booking.Booking) -> Position:
    return Position(ended.ended_at or ended.created_at, ended.id)


SLOTS_BY_START = ListCursors("slots", BY_TIME, position_by_start)
SLOTS_BY_TITLE = ListCursors(
    "slots", BY_TITLE, lambda found: TitlePosition(sort_key(found.slot.title), found.id)
)
MY_BOOKINGS = TimeList("myBookings", times_of)
MY_WAITLIST_ENTRIES = TimeList("myWaitlistEntries", times_of)
MY_ENDED_BOOKINGS = ListCursors("myEndedBookings", BY_TIME, _end_of)
SLOT_ROSTER = ListCursors("slotRoster", BY_ID, lambda active: active.id)
SLOT_HISTORY = ListCursors("slotHistory", BY_TIME, _end_of)

BookingConnection = Connection[Booking]
WaitlistEntryConnection = Connection[WaitlistEntry]


SlotsFilterArgument = Annotated[SlotsFilter | None, argument(description="The slots to find.")]
OrderArgument = Annotated[SlotOrder, argument(description="The order of the list.")]
SlotIdArgument = Annotated[strawberry.ID, argument(description="The id of the slot.")]


@strawberry.type
class SlotQueries:
    @field(
        description="A slot by id, or null if the caller cannot see such a slot.",
        graphql_type=Slot | None,
    )
    def slot(self, info: Info, id: SlotIdArgument) -> Awaitable[Slot | None] | None:
        slot_id = ids.parse_slot_id(id)
        return load_slot(info, slot_id) if slot_id else None

    @field(
        description="The slots that match a filter, by default all published slots that are not "
        "over."
    )
    async def slots(
        self,
        info: Info,
        filter: SlotsFilterArgument = None,
        order_by: OrderArgument = SlotOrder.START_ASC,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> SlotConnection:
        context, wanted = info.context, filter or SlotsFilter()
        services, viewer, slot_filter = context.services, context.viewer, wanted.to_domain(context)
        cursors: ListCursors[Any] = SLOTS_BY_TITLE if order_by.is_by_title else SLOTS_BY_START
        page_size, position = page_start(cursors, first, after)
        slot_filter = await resources.filter_with_resource(services, slot_filter)
        names = selected_names(info)
        selection = select_parts(names)
        page: Page[ReadableSlot]
        count: Count | None = None
        dependents: Sequence[User] | None = None
        if wanted.bookable_by_me:
            page = await viewer_queries.list_bookable_slots(
                services, slot_filter, order_by, page_size, position, context.caller, selection
            )
        else:
            # An organizer sees more slots than their dependents.
            if FAMILY in names and viewer is not None and not viewer.is_organizer:
                dependents = await context.loaders.dependents.load(viewer.user_id) or ()
            users = [each.id for each in dependents] if dependents else ()
            page = await viewer_queries.list_slots(
                services, slot_filter, order_by, page_size, position, viewer, selection, users
            )
            count = partial(services.slots.count, slot_filter, services.now())
        shown = Slot.show_all(page.items, viewer, dependents)
        return SlotConnection(page, shown, cursors, after, count)

    @field(
        description="The active bookings of the caller, and those that were cancelled with their "
        "slot, by the time of the slot."
    )
    async def my_bookings(
        self,
        info: Info,
        filter: FilterByTime = None,
        order_by: OrderByTime = TimeOrder.UPCOMING_FIRST,
        first: First = DEFAULT_FIRST,
        after: After = None,
        user_id: ReadForArgument = None,
    ) -> BookingConnection:
        caller = info.context.caller if user_id is None else await info.context.caller_for(user_id)
        services = info.context.services
        page, cursors = MY_BOOKINGS.page(filter, order_by, first, after, services.now())
        found = await viewer_queries.list_bookings(services, caller, page, slot_selection(info))
        return BookingConnection.of_page(
            found,
            lambda slot: Slot(slot, caller).my_booking,
            cursors,
            after,
            partial(services.slots.count_of_user, caller.user_id, page.wanted, page.as_of),
        )

    @field(description="The waiting list entries of the caller, by the time of the slot.")
    async def my_waitlist_entries(
        self,
        info: Info,
        filter: FilterByTime = None,
        order_by: OrderByTime = TimeOrder.UPCOMING_FIRST,
        first: First = DEFAULT_FIRST,
        after: After = None,
        user_id: ReadForArgument = None,
    ) -> WaitlistEntryConnection:
        caller = info.context.caller if user_id is None else await info.context.caller_for(user_id)
        services = info.context.services
        page, cursors = MY_WAITLIST_ENTRIES.page(filter, order_by, first, after, services.now())
        selection = slot_selection(info)
        found = await viewer_queries.list_waitlist_entries(services, caller, page, selection)
        return WaitlistEntryConnection.of_page(
            found,
            lambda slot: Slot(slot, caller).my_waitlist_entry,
            cursors,
            after,
            partial(services.slots.count_of_waiting_user, caller.user_id, page.wanted, page.as_of),
        )

    @field(
        description="The bookings of the caller that were cancelled, moved or expired, latest "
        "first."
    )
    async def my_ended_bookings(
        self,
        info: Info,
        first: First = DEFAULT_FIRST,
        after: After = None,
        user_id: ReadForArgument = None,
    ) -> BookingConnection:
        caller = info.context.caller if user_id is None else await info.context.caller_for(user_id)
        page, slots = await viewer_queries.list_ended_bookings(
            info.context.services,
            caller,
            *page_start(MY_ENDED_BOOKINGS, first, after),
            slot_selection(info),
        )
        shown_slots = {slot_id: Slot(found, caller) for slot_id, found in slots.items()}

        def show_ended(ended: booking.Booking) -> Booking | None:
            slot = shown_slots.get(ended.slot_id)
            return Booking.from_domain(ended, slot, caller) if slot else None

        return BookingConnection.of_page(
            page,
            show_ended,
            MY_ENDED_BOOKINGS,
            after,
            partial(info.context.services.ended_bookings.count_of_user, caller.user_id),
        )

    @field(
        description="The active bookings of a slot in the order in which they were made. Only "
        "organizers and leaders of the slot can read them."
    )
    async def slot_roster(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        services, parsed_id = info.context.services, ids.parse_slot_id(slot_id)
        leader = await info.context.require_leader(parsed_id)
        page_size, last_id = page_start(SLOT_ROSTER, first, after)
        roster = parsed_id and await viewer_queries.slot_roster(
            services, parsed_id, page_size, BookingId(last_id) if last_id else None
        )
        if not roster:
            return None
        found, page = roster
        shown_slot = Slot(found, leader)
        return BookingConnection.of_page(
            page,
            lambda active: Booking.from_domain(active, shown_slot, leader),
            SLOT_ROSTER,
            after,
            partial(viewer_queries.count_roster, services, found.id),
        )

    @field(
        description="The cancelled, moved and expired bookings of a slot in the order in which "
        "they ended. Organizers only."
    )
    async def slot_history(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organizer, services = info.context.require_organizer(), info.context.services
        start = page_start(SLOT_HISTORY, first, after)
        parsed_id = ids.parse_slot_id(slot_id)
        history = parsed_id and await viewer_queries.slot_history(services, parsed_id, *start)
        if not history:
            return None
        found, page = history
        shown_slot = Slot(found, organizer)
        return BookingConnection.of_page(
            page,
            lambda ended: Booking.from_domain(ended, shown_slot, organizer),
            SLOT_HISTORY,
            after,
            partial(services.ended_bookings.count_of_slot, found.id),
        )
