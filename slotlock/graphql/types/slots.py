"""Slots, bookings and people as clients see them; each mirrors a value of the domain."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain import slots as domain
from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.people import User as Person
from slotlock.domain.slots import BookingStatus, SlotKind, SlotStatus
from slotlock.graphql.context import Info
from slotlock.graphql.ids import booking_gid, slot_gid, user_gid
from slotlock.graphql.scalars import EmailAddress, TimeZone


@strawberry.interface(description="Anything that can be fetched again by its id.")
class Node:
    id: strawberry.ID = field(description="Opaque, unique among all types.")


@strawberry.type(description="A person with an account.")
class User(Node):
    name: str = field(description="The name they gave.")
    email: EmailAddress | None = field(
        description="Their address; shown to themselves and to organisers, else null."
    )
    role: Role | None = field(
        description="What they may do; shown to themselves and to organisers, else null."
    )

    @classmethod
    def of(cls, user: Person, viewer: Caller | None) -> Self:
        shown = viewer is not None and (viewer.organises or viewer.user_id == user.id)
        return cls(
            id=user_gid(user.id),
            name=user.name,
            email=EmailAddress(user.email) if shown else None,
            role=user.role if shown else None,
        )

    @classmethod
    def in_full(cls, user: Person) -> Self:
        """As the person sees themselves."""
        email = EmailAddress(user.email)
        return cls(id=user_gid(user.id), name=user.name, email=email, role=user.role)


async def _load_user(info: Info, user_id: UserId) -> User | None:
    user = await info.context.users.load(user_id)
    return User.of(user, info.context.reader) if user else None


@strawberry.type(description="One person's place in one slot.")
class Booking(Node):
    slot: "Slot" = field(description="The slot it is a place in.")
    status: BookingStatus = field(description="Whether it takes a place.")
    created_at: datetime = field(description="When it was made.")
    cancelled_at: datetime | None = field(description="When it was cancelled by a person.")
    user_id: strawberry.Private[UserId]

    @field(description="Whose place it is.")
    async def user(self, info: Info) -> User | None:
        return await _load_user(info, self.user_id)

    @classmethod
    def of(cls, booking: domain.Booking, slot: "Slot") -> Self:
        called_off = slot.status is SlotStatus.CANCELLED
        return cls(
            id=booking_gid(booking),
            slot=slot,
            status=BookingStatus.CANCELLED if called_off else booking.status,
            created_at=booking.created_at,
            cancelled_at=booking.cancelled_at,
            user_id=booking.user_id,
        )


@strawberry.type(description="A time with a number of places that people book.")
class Slot(Node):
    title: str = field(description="What it is.")
    start_time: datetime = field(description="When it begins.")
    end_time: datetime = field(description="When it ends.")
    time_zone: TimeZone = field(description="The zone its times are meant in.")
    location: str | None = field(description="Where it is.")
    kind: SlotKind = field(description="What it is for.")
    status: SlotStatus = field(description="Where it is in its life.")
    capacity: int = field(description="Places in all, 1 to 1000.")
    remaining: int = field(description="Places left.")
    is_booked: bool = field(description="Whether no place is left.")
    version: int = field(description="Grows with every change; the higher one is the newer state.")
    my_booking: Booking | None = field(
        description="The caller's own booking, if any; cancelled if the slot was called off."
    )
    booker_id: strawberry.Private[UserId | None]

    @field(description="Who booked a one-place slot; shown to them and to organisers, else null.")
    async def booked_by(self, info: Info) -> User | None:
        return await _load_user(info, self.booker_id) if self.booker_id else None

    @classmethod
    def of(cls, slot: domain.Slot, viewer: Caller | None) -> Self:
        mirrored = cls(
            id=slot_gid(slot.id),
            title=slot.title,
            start_time=slot.start,
            end_time=slot.end,
            time_zone=TimeZone(slot.time_zone),
            location=slot.location,
            kind=slot.kind,
            status=slot.status,
            capacity=slot.capacity,
            remaining=slot.remaining,
            is_booked=slot.is_booked,
            version=slot.version,
            my_booking=None,
            booker_id=_booker(slot, viewer),
        )
        if viewer is not None and (mine := slot.booking_of(viewer.user_id)):
            mirrored.my_booking = Booking.of(mine, mirrored)
        return mirrored


def _booker(slot: domain.Slot, viewer: Caller | None) -> UserId | None:
    if viewer is None or slot.capacity != 1 or not slot.bookings:
        return None
    booker = slot.bookings[0].user_id
    return booker if viewer.organises or viewer.user_id == booker else None


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
    def of(cls, state: domain.Availability) -> Self:
        return cls(
            slot_id=slot_gid(state.slot_id),
            version=state.version,
            capacity=state.capacity,
            remaining=state.remaining,
            is_booked=state.remaining <= 0,
            status=state.status,
            at=state.at,
        )
