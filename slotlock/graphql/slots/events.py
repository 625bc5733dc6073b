"""What is told live of a slot's places and of a person's bookings."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.booking import availability
from slotlock.domain.booking.history import BookingAction
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.slots.types import Booking, Slot
from slotlock.graphql.users.types import User, load_user
from slotlock.services.live.booking_events import LiveBookingEvent


@strawberry.type(description="What everyone may see of a slot's places at one moment.")
class SlotAvailability:
    slot_id: strawberry.ID = field(description="The slot.")
    version: int = field(description="Grows with every change of the slot.")
    capacity: int = field(description="Places in all.")
    remaining: int = field(description="Places left.")
    is_booked: bool = field(description="Whether no place is left.")
    status: SlotStatus = field(description="Where the slot is in its life.")
    at: datetime = field(description="When the slot became so.")

    @classmethod
    def from_domain(cls, state: availability.Availability) -> Self:
        return cls(
            slot_id=slot_global_id(state.slot_id),
            version=state.version,
            capacity=state.capacity,
            remaining=state.remaining,
            is_booked=state.remaining <= 0,
            status=state.status,
            at=state.at,
        )


@strawberry.type(description="Something that somebody else, or the clock, did to a booking.")
class BookingEvent:
    action: BookingAction = field(description="What was done.")
    at: datetime = field(description="When.")
    booking: Booking = field(description="The booking as it is now.")
    by_id: strawberry.Private[UserId | None]

    @field(description="Who did it; null for the waiting list, the clock and a slot called off.")
    async def by(self, info: Info) -> User | None:
        return await load_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, event: LiveBookingEvent, viewer: Caller) -> Self:
        booking = Booking.from_domain(event.booking, Slot.from_domain(event.slot, viewer), viewer)
        return cls(
            action=event.entry.action, at=event.entry.at, booking=booking, by_id=event.entry.by
        )
