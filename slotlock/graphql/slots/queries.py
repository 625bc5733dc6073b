"""Queries that list slots and their bookings."""

from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import booking
from slotlock.domain.booking.booking import BookingId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.pagination import Position, TitlePosition
from slotlock.domain.slots.listing import SlotPosition
from slotlock.domain.slots.reading import ReadableSlot
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    Count,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import (
    decode_id,
    decode_position,
    decode_title_position,
    encode_cursor,
    encode_position,
    encode_title_position,
)
from slotlock.graphql.core.enums import SlotOrder
from slotlock.graphql.slots.filters import SlotsFilter
from slotlock.graphql.slots.selection import slot_selection
from slotlock.graphql.slots.types import Booking, Slot, SlotConnection, WaitlistEntry, load_slot
from slotlock.services import resources
from slotlock.services.slots import counts, queries

SLOTS_CURSOR = "slots"
MY_BOOKINGS_CURSOR = "myBookings"
MY_WAITLIST_ENTRIES_CURSOR = "myWaitlistEntries"
MY_ENDED_BOOKINGS_CURSOR = "myEndedBookings"
SLOT_ROSTER_CURSOR = "slotRoster"
SLOT_HISTORY_CURSOR = "slotHistory"

BookingConnection = Connection[Booking]
WaitlistEntryConnection = Connection[WaitlistEntry]


SlotsFilterArgument = Annotated[SlotsFilter | None, argument(description="The slots to find.")]
OrderArgument = Annotated[SlotOrder, argument(description="The order of the list.")]
SlotIdArgument = Annotated[strawberry.ID, argument(description="The id of the slot.")]


@strawberry.type
class SlotQueries:
    @field(description="A slot by id, or null if the caller cannot see such a slot.")
    async def slot(self, info: Info, id: SlotIdArgument) -> Slot | None:  # noqa: A002
        slot_id = ids.parse_slot_id(id)
        return await load_slot(info, slot_id) if slot_id else None

    @field(
        description="The slots that match a filter, by default all published slots that are not "
        "over."
    )
    async def slots(
        self,
        info: Info,
        filter: SlotsFilterArgument = None,  # noqa: A002
        order_by: OrderArgument = SlotOrder.START_ASC,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> SlotConnection:
        context, wanted = info.context, filter or SlotsFilter()
        services, viewer, slot_filter = context.services, context.viewer, wanted.to_domain(context)
        page_size = require_valid_first(first)
        position = _decode_list_position(order_by, after)
        slot_filter = await resources.filter_with_resource(services, slot_filter)
        selection = slot_selection(info)
        if wanted.bookable_by_me:
            searched = await queries.list_bookable_slots(
                services, slot_filter, order_by, page_size, position, context.caller, selection
            )
            end = searched.searched_until
            return SlotConnection(
                [Slot(found, viewer) for found in searched.items],
                lambda index: _list_cursor(order_by, searched.items[index]),
                has_more=searched.has_more,
                after=after,
                end_cursor=None if end is None else _encode_list_position(end),
            )
        page = await queries.list_slots(
            services, slot_filter, order_by, page_size, position, viewer, selection
        )
        return SlotConnection(
            [Slot(found, viewer) for found in page.items],
            lambda index: _list_cursor(order_by, page.items[index]),
            has_more=page.has_more,
            after=after,
            count=partial(counts.count_slots, services, slot_filter),
        )

    @field(
        description="The active bookings of the caller, and those that were cancelled with their "
        "slot, by the start of the slot."
    )
    async def my_bookings(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> BookingConnection:
        caller = info.context.caller
        page = await queries.list_bookings(
            info.context.services,
            caller,
            require_valid_first(first),
            decode_position(MY_BOOKINGS_CURSOR, after),
            slot_selection(info),
        )
        items = [
            (_start_cursor(MY_BOOKINGS_CURSOR, found), own_booking)
            for found in page.items
            if (own_booking := Slot.from_domain(found, caller).my_booking) is not None
        ]
        return BookingConnection.from_items(
            items,
            has_more=page.has_more,
            after=after,
            count=partial(counts.count_bookings, info.context.services, caller),
        )

    @field(description="The waiting list entries of the caller, by the start of the slot.")
    async def my_waitlist_entries(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> WaitlistEntryConnection:
        caller = info.context.caller
        page = await queries.list_waitlist_entries(
            info.context.services,
            caller,
            require_valid_first(first),
            decode_position(MY_WAITLIST_ENTRIES_CURSOR, after),
            slot_selection(info),
        )
        items = [
            (_start_cursor(MY_WAITLIST_ENTRIES_CURSOR, found), own_entry)
            for found in page.items
            if (own_entry := Slot.from_domain(found, caller).my_waitlist_entry) is not None
        ]
        return WaitlistEntryConnection.from_items(
            items,
            has_more=page.has_more,
            after=after,
            count=partial(counts.count_waitlist_entries, info.context.services, caller),
        )

    @field(
        description="The bookings of the caller that were cancelled, moved or expired, latest "
        "first."
    )
    async def my_ended_bookings(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> BookingConnection:
        caller = info.context.caller
        page, slots = await queries.list_ended_bookings(
            info.context.services,
            caller,
            require_valid_first(first),
            decode_position(MY_ENDED_BOOKINGS_CURSOR, after),
            slot_selection(info),
        )
        shown_slots = {slot_id: Slot.from_domain(found, caller) for slot_id, found in slots.items()}
        items = [
            (
                _ended_booking_cursor(MY_ENDED_BOOKINGS_CURSOR, ended),
                Booking.from_domain(ended, shown_slots[ended.slot_id], caller),
            )
            for ended in page.items
            if ended.slot_id in shown_slots
        ]
        return BookingConnection.from_items(
            items,
            has_more=page.has_more,
            after=after,
            count=partial(counts.count_ended_bookings, info.context.services, caller),
        )

    @field(
        description="The active bookings of a slot in the order in which they were made. "
        "Organizers only."
    )
    async def slot_roster(
        self,
        info: Info,
        slot_id: SlotIdArgument,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organizer, services = info.context.require_organizer(), info.context.services
        page_size, last_id = require_valid_first(first), decode_id(SLOT_ROSTER_CURSOR, after)
        parsed_id = ids.parse_slot_id(slot_id)
        roster = parsed_id and await queries.slot_roster(
            services, parsed_id, page_size, BookingId(last_id) if last_id else None
        )
        if not roster:
            return None
        found, page = roster
        items = [(encode_cursor(SLOT_ROSTER_CURSOR, active.id), active) for active in page.items]
        count = partial(counts.count_roster, services, found.id)
        return _bookings_of_slot(found, items, organizer, page.has_more, after, count)

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
        page_size = require_valid_first(first)
        position = decode_position(SLOT_HISTORY_CURSOR, after)
        parsed_id = ids.parse_slot_id(slot_id)
        history = parsed_id and await queries.slot_history(services, parsed_id, page_size, position)
        if not history:
            return None
        found, page = history
        items = [(_ended_booking_cursor(SLOT_HISTORY_CURSOR, ended), ended) for ended in page.items]
        count = partial(counts.count_history, services, found.id)
        return _bookings_of_slot(found, items, organizer, page.has_more, after, count)


def _bookings_of_slot(
    found: SlotState,
    items: list[tuple[str, booking.Booking]],
    viewer: Caller,
    has_more: bool,
    after: str | None,
    count: Count,
) -> BookingConnection:
    shown_slot = Slot.from_domain(found, viewer)
    return BookingConnection.from_items(
        [(cursor, Booking.from_domain(item, shown_slot, viewer)) for cursor, item in items],
        has_more=has_more,
        after=after,
        count=count,
    )


def _list_cursor(order: SlotOrder, found: ReadableSlot) -> str:
    return _encode_list_position(order.position_of(found.slot))


def _encode_list_position(position: SlotPosition) -> str:
    if isinstance(position, TitlePosition):
        return encode_title_position(SLOTS_CURSOR, position)
    return encode_position(SLOTS_CURSOR, position)


def _decode_list_position(order: SlotOrder, after: str | None) -> SlotPosition | None:
    if order.is_by_title:
        return decode_title_position(SLOTS_CURSOR, after)
    return decode_position(SLOTS_CURSOR, after)


def _start_cursor(list_name: str, found: ReadableSlot) -> str:
    return encode_position(list_name, Position(found.slot.start, found.id))


def _ended_booking_cursor(list_name: str, ended: booking.Booking) -> str:
    return encode_position(list_name, Position(ended.ended_at or ended.created_at, ended.id))
