"""Live updates: the availability of slots, the caller's bookings and waiting list positions."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.audit.log import FieldEdit
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import BookingAction, SlotStatus
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.slots.types import Booking, Slot, load_slot
from slotlock.graphql.users.types import User, load_referenced_user
from slotlock.services.live.booking_subscription import LiveBookingEvent
from slotlock.services.live.waitlist_positions import WaitlistPosition


@strawberry.type(description="The public state of a slot at one point in time.")
class SlotAvailability:
    slot_id: strawberry.ID = field(description="The id of the slot.")
    version: int = field(description="A number that grows with every change of the slot.")
    capacity: int = field(description="The number of places.")
    remaining: int = field(description="The number of free places.")
    is_booked: bool = field(description="Whether no place is free.")
    status: SlotStatus = field(description="Whether the slot is visible and can be booked.")
    at: datetime = field(description="When the slot reached this state.")
    state: strawberry.Private[Availability]

    @field(
        description="The slot, read after this state was published: its `version` is the same or "
        "higher. Null while the slot is hidden from the caller."
    )
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.state.slot_id)

    @classmethod
    def from_domain(cls, state: Availability) -> Self:
        """Show the availability of a slot."""
        return cls(
            slot_id=slot_global_id(state.slot_id),
            version=state.version,
            capacity=state.capacity,
            remaining=state.remaining,
            is_booked=state.remaining <= 0,
            status=state.status,
            at=state.at,
            state=state,
        )


@strawberry.type(description="The change of one field of a slot.")
class SlotFieldEdit:
    field_: str = field(
        name="field", description="The name of the field, as in the input that changes it."
    )
    before: str | None = field(description="The previous value as text; null for no value.")
    after: str | None = field(description="The new value as text; null for no value.")

    @classmethod
    def from_domain(cls, edit: FieldEdit) -> Self:
        """Show the change of a field."""
        return cls(field_=edit.field, before=edit.before, after=edit.after)


@strawberry.type(
    description="A change to a booking of the caller that the caller did not make themselves."
)
class BookingEvent:
    action: BookingAction = field(description="The action on the booking.")
    at: datetime = field(description="When the change happened.")
    booking: Booking = field(
        description="The booking after the change. For WAITLIST_LEFT it stands for the waiting "
        "list entry that ended; `node` does not return it."
    )
    edits: list[SlotFieldEdit] = field(
        description="The changes of the slot's time and place; empty unless `action` is "
        "SLOT_EDITED."
    )
    by_id: strawberry.Private[UserId | None]

    @field(
        description="The user who made the change; null for the waiting list, for expired holds "
        "and for edited slots."
    )
    async def by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, event: LiveBookingEvent, viewer: Caller) -> Self:
        """Show an event to the user of the booking."""
        slot = Slot.from_domain(event.slot, viewer)
        return cls(
            action=event.entry.action,
            at=event.entry.at,
            booking=Booking.from_domain(event.booking, slot, viewer),
            edits=[SlotFieldEdit.from_domain(edit) for edit in event.edits],
            by_id=event.entry.by,
        )


@strawberry.type(description="The position of the caller on the waiting list of a slot.")
class WaitlistEntryEvent:
    slot_id: strawberry.ID = field(description="The id of the slot.")
    position: int | None = field(
        description="The position, starting at 1; null once the caller has a place or an offer, or "
        "is no longer on the list."
    )
    waiting_slot_id: strawberry.Private[SlotId]

    @field(description="The slot as it is now.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.waiting_slot_id)

    @classmethod
    def from_domain(cls, event: WaitlistPosition) -> Self:
        """Show a position to the user who waits."""
        return cls(
            slot_id=slot_global_id(event.slot_id),
            position=event.position,
            waiting_slot_id=event.slot_id,
        )
