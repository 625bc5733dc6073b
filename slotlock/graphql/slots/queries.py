"""What clients can read."""

import asyncio
from datetime import datetime
from typing import Annotated, cast

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import Booking as DomainBooking
from slotlock.domain.booking.booking import BookingId
from slotlock.domain.booking.slot import Slot as DomainSlot
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.graphql.context import Context, Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    MAX_FIRST,
    After,
    BookingConnection,
    First,
    SlotConnection,
    require_valid_first,
)
from slotlock.graphql.core.cursors import decode_id, decode_position, encode_cursor, encode_position
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.schema.nodes import load_node
from slotlock.graphql.slots.types import Booking, Slot
from slotlock.graphql.users.types import Node, User
from slotlock.services.slots import queries

# The lists, as their cursors know them.
SLOTS_CURSOR, MY_BOOKINGS_CURSOR, MY_ENDED_BOOKINGS_CURSOR = (
    "slots",
    "myBookings",
    "myEndedBookings",
)
SLOT_ROSTER_CURSOR, SLOT_HISTORY_CURSOR = "slotRoster", "slotHistory"
MAX_SEARCH_TEXT = 200


@strawberry.input(description="Which slots; a field that is left out asks for nothing.")
class SlotsFilter:
    starts_from: datetime | None = field(default=None, description="Begins at this time or later.")
    starts_before: datetime | None = field(default=None, description="Begins before this time.")
    text: str | None = field(
        default=None,
        description="Words, or beginnings of words, that are all in the title or the location.",
    )
    kind: SlotKind | None = field(default=None, description="What it is for.")
    campaign_id: strawberry.ID | None = field(default=None, description="Those of a campaign.")
    series_id: strawberry.ID | None = field(default=None, description="Those of a series.")
    only_with_places_left: bool = field(default=False, description="Leave out what is full.")
    status: SlotStatus = field(
        default=SlotStatus.PUBLISHED, description="Drafts are for organisers only."
    )

    def to_domain(self, context: Context) -> SlotFilter:
        """The same as the desk knows it. Errors: BAD_USER_INPUT, and FORBIDDEN for drafts."""
        if self.status is SlotStatus.DRAFT:
            _ = context.require_organizer
        campaign_id = ids.parse_campaign_id(self.campaign_id or "")
        series_id = ids.parse_series_id(self.series_id or "")
        if (self.campaign_id is not None and campaign_id is None) or (
            self.series_id is not None and series_id is None
        ):
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT, "There is no such campaign or series."
            )
        viewer = context.viewer
        text = (self.text or "").strip()
        if len(text) > MAX_SEARCH_TEXT:
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT, f"`text` has at most {MAX_SEARCH_TEXT} characters."
            )
        return SlotFilter(
            status=self.status,
            starts_from=self.starts_from,
            starts_before=self.starts_before,
            text=text or None,
            kind=self.kind,
            campaign_id=campaign_id,
            series_id=series_id,
            include_unpublished_campaigns=viewer is not None and viewer.is_organizer,
            only_with_places_left=self.only_with_places_left,
        )


SlotsFilterArgument = Annotated[SlotsFilter | None, argument(description="Which slots.")]
OrderArgument = Annotated[SlotOrder, argument(description="In which order.")]
IdArgument = Annotated[strawberry.ID, argument(description="The id of any `Node`.")]
IdsArgument = Annotated[list[strawberry.ID], argument(description="Up to 100 ids.")]


@strawberry.type(description="What can be read.")
class SlotQueries:
    @field(description="The caller, or null without identity.")
    async def me(self, info: Info) -> User | None:
        caller = info.context.optional_caller
        user = await info.context.users.load(caller.user_id) if caller else None
        return User.for_self(user) if user else None

    @field(description="A slot by its id.")
    async def slot(self, info: Info, id: IdArgument) -> Slot | None:  # noqa: A002
        found = await load_node(info.context, id)
        return found if isinstance(found, Slot) else None

    @field(description="Slots that match a filter; published ones unless it says otherwise.")
    async def slots(
        self,
        info: Info,
        filter: SlotsFilterArgument = None,  # noqa: A002
        order_by: OrderArgument = SlotOrder.START_ASC,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> SlotConnection:
        context = info.context
        viewer = context.viewer
        wanted = (filter or SlotsFilter()).to_domain(context)
        position = decode_position(SLOTS_CURSOR, after)
        page = await queries.list_slots(
            context.services, wanted, order_by, require_valid_first(first), position, viewer
        )
        items = [
            (_slot_cursor(SLOTS_CURSOR, slot), Slot.from_domain(slot, viewer))
            for slot in page.items
        ]
        return SlotConnection.from_items(items, has_more=page.has_more, after=after)

    @field(
        description="The caller's bookings that take a place, and those in slots that were called "
        "off, by the start of their slots."
    )
    async def my_bookings(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> BookingConnection:
        caller = info.context.caller
        page: Page[DomainSlot] = await queries.list_bookings(
            info.context.services,
            caller,
            require_valid_first(first),
            decode_position(MY_BOOKINGS_CURSOR, after),
        )
        mirrored = [
            (_slot_cursor(MY_BOOKINGS_CURSOR, slot), Slot.from_domain(slot, caller).my_booking)
            for slot in page.items
        ]
        items = [(cursor, booking) for cursor, booking in mirrored if booking is not None]
        return BookingConnection.from_items(items, has_more=page.has_more, after=after)

    @field(
        description="The caller's bookings that were cancelled, moved or ran out, the latest first."
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
        )
        mirrored = {slot_id: Slot.from_domain(slot, caller) for slot_id, slot in slots.items()}
        items = [
            (
                _ended_booking_cursor(MY_ENDED_BOOKINGS_CURSOR, b),
                Booking.from_domain(b, mirrored[b.slot_id], caller),
            )
            for b in page.items
            if b.slot_id in mirrored
        ]
        return BookingConnection.from_items(items, has_more=page.has_more, after=after)

    @field(description="Who has a place in a slot, in the order they booked. Organisers only.")
    async def slot_roster(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot.")],
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organiser = info.context.require_organizer
        many, last = require_valid_first(first), decode_id(SLOT_ROSTER_CURSOR, after)
        found = ids.parse_slot_id(slot_id)
        seen = found and await queries.slot_roster(
            info.context.services, found, many, BookingId(last) if last else None
        )
        if not seen:
            return None
        slot = Slot.from_domain(seen[0], organiser)
        items = [
            (encode_cursor(SLOT_ROSTER_CURSOR, b.id), Booking.from_domain(b, slot, organiser))
            for b in seen[1].items
        ]
        return BookingConnection.from_items(items, has_more=seen[1].has_more, after=after)

    @field(description="Bookings of a slot that ended, in the order they did. Organisers only.")
    async def slot_history(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot.")],
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organiser = info.context.require_organizer
        many, position = require_valid_first(first), decode_position(SLOT_HISTORY_CURSOR, after)
        found = ids.parse_slot_id(slot_id)
        seen = found and await queries.slot_history(info.context.services, found, many, position)
        if not seen:
            return None
        slot = Slot.from_domain(seen[0], organiser)
        items = [
            (_ended_booking_cursor(SLOT_HISTORY_CURSOR, b), Booking.from_domain(b, slot, organiser))
            for b in seen[1].items
        ]
        return BookingConnection.from_items(items, has_more=seen[1].has_more, after=after)

    @field(
        description="Anything by its id; null when there is none that the caller may see. What "
        "nobody sees without identity is UNAUTHENTICATED for who has none."
    )
    async def node(self, info: Info, id: IdArgument) -> Node | None:  # noqa: A002
        return await load_node(info.context, id)

    @field(
        description="Several things by their ids, each as `node` answers it; those that are "
        "refused are null, the first of them with an error, and the others are answered."
    )
    async def nodes(self, info: Info, ids: IdsArgument) -> list[Node | None]:
        if len(ids) > MAX_FIRST:
            raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, f"At most {MAX_FIRST} ids at once.")
        found = await asyncio.gather(*(_load_node_or_error(info.context, gid) for gid in ids))
        refused = next((each for each in found if isinstance(each, GraphQLRequestError)), None)
        shown = [
            None if isinstance(n, GraphQLRequestError) and n is not refused else n for n in found
        ]
        # The executor makes null and an error of an exception in a list.
        return cast("list[Node | None]", shown)


async def _load_node_or_error(
    context: Context, global_id: str
) -> Node | GraphQLRequestError | None:
    try:
        return await load_node(context, global_id)
    except GraphQLRequestError as refusal:
        return refusal


def _slot_cursor(list_name: str, slot: DomainSlot) -> str:
    return encode_position(list_name, Position(slot.start, slot.id))


def _ended_booking_cursor(list_name: str, booking: DomainBooking) -> str:
    return encode_position(list_name, Position(booking.ended_at or booking.created_at, booking.id))
