"""What clients can read."""

import asyncio
from datetime import datetime
from typing import Annotated, cast

import strawberry
from strawberry import argument, field

from slotlock.desk import reading
from slotlock.domain.bookings import Booking as DomainBooking
from slotlock.domain.bookings import BookingId
from slotlock.domain.listing import Page, Position, SlotFilter, SlotOrder
from slotlock.domain.slots import Slot as DomainSlot
from slotlock.domain.slots import SlotKind, SlotStatus
from slotlock.graphql import ids
from slotlock.graphql.context import Context, Info
from slotlock.graphql.cursors import id_of, position_cursor, position_of, sealed
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.nodes import load_node
from slotlock.graphql.types.connections import (
    DEFAULT_FIRST,
    MAX_FIRST,
    After,
    BookingConnection,
    First,
    SlotConnection,
    checked_first,
)
from slotlock.graphql.types.people import Node, User
from slotlock.graphql.types.slots import Booking, Slot

# The lists, as their cursors know them.
SLOTS, MINE, MINE_ENDED = "slots", "myBookings", "myEndedBookings"
ROSTER, HISTORY = "slotRoster", "slotHistory"
MAX_TEXT = 200


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

    def as_domain(self, context: Context) -> SlotFilter:
        """The same as the desk knows it. Errors: BAD_USER_INPUT, and FORBIDDEN for drafts."""
        if self.status is SlotStatus.DRAFT:
            _ = context.organiser
        campaign_id = ids.campaign_id_of(self.campaign_id or "")
        series_id = ids.series_id_of(self.series_id or "")
        if (self.campaign_id is not None and campaign_id is None) or (
            self.series_id is not None and series_id is None
        ):
            raise RefusedError(Code.BAD_USER_INPUT, "There is no such campaign or series.")
        viewer = context.reader
        text = (self.text or "").strip()
        if len(text) > MAX_TEXT:
            raise RefusedError(Code.BAD_USER_INPUT, f"`text` has at most {MAX_TEXT} characters.")
        return SlotFilter(
            status=self.status,
            starts_from=self.starts_from,
            starts_before=self.starts_before,
            text=text or None,
            kind=self.kind,
            campaign_id=campaign_id,
            series_id=series_id,
            unpublished_campaigns=viewer is not None and viewer.organises,
            with_places_left=self.only_with_places_left,
        )


FilterArgument = Annotated[SlotsFilter | None, argument(description="Which slots.")]
OrderArgument = Annotated[SlotOrder, argument(description="In which order.")]
IdArgument = Annotated[strawberry.ID, argument(description="The id of any `Node`.")]
IdsArgument = Annotated[list[strawberry.ID], argument(description="Up to 100 ids.")]


@strawberry.type(description="What can be read.")
class Query:
    @field(description="The caller, or null without identity.")
    async def me(self, info: Info) -> User | None:
        caller = info.context.known_caller
        user = await info.context.users.load(caller.user_id) if caller else None
        return User.in_full(user) if user else None

    @field(description="A slot by its id.")
    async def slot(self, info: Info, id: IdArgument) -> Slot | None:  # noqa: A002
        found = await load_node(info.context, id)
        return found if isinstance(found, Slot) else None

    @field(description="Slots that match a filter; published ones unless it says otherwise.")
    async def slots(
        self,
        info: Info,
        filter: FilterArgument = None,  # noqa: A002
        order_by: OrderArgument = SlotOrder.START_ASC,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> SlotConnection:
        context = info.context
        viewer = context.reader
        wanted = (filter or SlotsFilter()).as_domain(context)
        position = position_of(SLOTS, after)
        page = await reading.list_slots(
            context.desk, wanted, order_by, checked_first(first), position, viewer
        )
        items = [(_cursor(SLOTS, slot), Slot.of(slot, viewer)) for slot in page.items]
        return SlotConnection.of(items, more=page.more, after=after)

    @field(
        description="The caller's bookings that take a place, and those in slots that were called "
        "off, by the start of their slots."
    )
    async def my_bookings(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> BookingConnection:
        caller = info.context.caller
        page: Page[DomainSlot] = await reading.list_bookings(
            info.context.desk, caller, checked_first(first), position_of(MINE, after)
        )
        mirrored = [(_cursor(MINE, slot), Slot.of(slot, caller).my_booking) for slot in page.items]
        items = [(cursor, booking) for cursor, booking in mirrored if booking is not None]
        return BookingConnection.of(items, more=page.more, after=after)

    @field(
        description="The caller's bookings that were cancelled, moved or ran out, the latest first."
    )
    async def my_ended_bookings(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> BookingConnection:
        caller = info.context.caller
        page, slots = await reading.list_ended(
            info.context.desk, caller, checked_first(first), position_of(MINE_ENDED, after)
        )
        mirrored = {slot_id: Slot.of(slot, caller) for slot_id, slot in slots.items()}
        items = [
            (_ended_cursor(MINE_ENDED, b), Booking.of(b, mirrored[b.slot_id], caller))
            for b in page.items
            if b.slot_id in mirrored
        ]
        return BookingConnection.of(items, more=page.more, after=after)

    @field(description="Who has a place in a slot, in the order they booked. Organisers only.")
    async def slot_roster(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot.")],
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organiser = info.context.organiser
        many, last = checked_first(first), id_of(ROSTER, after)
        found = ids.slot_id_of(slot_id)
        seen = found and await reading.roster(
            info.context.desk, found, many, BookingId(last) if last else None
        )
        if not seen:
            return None
        slot = Slot.of(seen[0], organiser)
        items = [(sealed(ROSTER, b.id), Booking.of(b, slot, organiser)) for b in seen[1].items]
        return BookingConnection.of(items, more=seen[1].more, after=after)

    @field(description="Bookings of a slot that ended, in the order they did. Organisers only.")
    async def slot_history(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot.")],
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> BookingConnection | None:
        organiser = info.context.organiser
        many, position = checked_first(first), position_of(HISTORY, after)
        found = ids.slot_id_of(slot_id)
        seen = found and await reading.ended_bookings(info.context.desk, found, many, position)
        if not seen:
            return None
        slot = Slot.of(seen[0], organiser)
        items = [(_ended_cursor(HISTORY, b), Booking.of(b, slot, organiser)) for b in seen[1].items]
        return BookingConnection.of(items, more=seen[1].more, after=after)

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
            raise RefusedError(Code.BAD_USER_INPUT, f"At most {MAX_FIRST} ids at once.")
        found = await asyncio.gather(*(_node_or_refusal(info.context, gid) for gid in ids))
        refused = next((each for each in found if isinstance(each, RefusedError)), None)
        shown = [None if isinstance(n, RefusedError) and n is not refused else n for n in found]
        # The executor makes null and an error of an exception in a list.
        return cast("list[Node | None]", shown)


async def _node_or_refusal(context: Context, gid: str) -> Node | RefusedError | None:
    try:
        return await load_node(context, gid)
    except RefusedError as refusal:
        return refusal


def _cursor(of: str, slot: DomainSlot) -> str:
    return position_cursor(of, Position(slot.start, slot.id))


def _ended_cursor(of: str, booking: DomainBooking) -> str:
    return position_cursor(of, Position(booking.ended_at or booking.created_at, booking.id))
