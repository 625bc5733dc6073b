"""Live updates: the availability of slots, the caller's bookings and waiting list positions."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.audit.audit_log import FieldEdit
from slotlock.domain.audit.staff_edits import resource_names, with_staff_apart
from slotlock.domain.booking.availability import Availability, sees_hidden
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import Context, Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import BookingAction, SlotStatus
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.shared_events import SharedEvents
from slotlock.graphql.slots.slot_types import Booking, Slot, load_slot
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.services.campaigns import campaigns
from slotlock.services.live.availability_hub import AvailabilitySubscription
from slotlock.services.live.booking_subscription import LiveBookingEvent
from slotlock.services.live.waitlist_hub import WaitlistPosition
from slotlock.services.slots import viewer_queries


@strawberry.type(description="The public state of a slot at one point in time.")
class SlotAvailability:
    slot_id: strawberry.ID = field(description="The id of the slot.")
    version: int = field(description="A number that grows with every change of the slot.")
    capacity: int = field(description="The number of places.")
    remaining: int = field(description="The number of free places.")
    is_booked: bool = field(description="Whether no place is free.")
    status: SlotStatus = field(description="Whether the slot is visible and can be booked.")
    at: datetime = field(description="When the slot reached this state.")
    is_hidden: bool = field(
        description="Whether only organizers see the slot. For all others, no later state of the "
        "slot follows while it is hidden, and the subscription completes once all its slots are."
    )
    state: strawberry.Private[Availability]

    @field(
        description="The slot, read after this state was published: its `version` is the same or "
        "higher. Null while the slot is hidden from the caller."
    )
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.state.slot_id)

    @classmethod
    def from_domain(cls, state: Availability) -> Self:
        return cls(
            slot_id=slot_global_id(state.slot_id),
            version=state.version,
            capacity=state.capacity,
            remaining=state.remaining,
            is_booked=state.remaining <= 0,
            status=state.status,
            at=state.at,
            is_hidden=state.is_hidden,
            state=state,
        )


@strawberry.type(description="The change of one field of a slot.")
class SlotFieldEdit:
    field: str = strawberry.field(
        description="The name of the field, as in the input that changes it. Of all resources, "
        "`staff` are those of the kind STAFF, and `resources` the others."
    )
    before: str | None = strawberry.field(
        description="The previous value as text; null for no value."
    )
    after: str | None = strawberry.field(description="The new value as text; null for no value.")


@strawberry.type(description="A change to a booking of the caller; `by` says who made it.")
class BookingEvent:
    action: BookingAction = field(description="The action on the booking.")
    at: datetime = field(description="When the change happened.")
    booking: Booking = field(
        description="The booking after the change. For WAITLIST_LEFT it stands for the waiting "
        "list entry that ended; `node` does not return it."
    )
    by_id: strawberry.Private[UserId | None]
    slot_edits: strawberry.Private[Sequence[FieldEdit]]

    @field(
        description="The changes of the slot's time, place and staff; empty unless `action` is "
        "SLOT_EDITED.",
        graphql_type=list[SlotFieldEdit],
    )
    async def edits(self, info: Info) -> object:
        names = resource_names(self.slot_edits)
        found = await info.context.loaders.resources.load_many(names)
        resources = {name: each for name, each in zip(names, found, strict=True) if each}
        return list(with_staff_apart(self.slot_edits, resources))

    @field(
        description="The user who made the change; null for the waiting list, for expired holds "
        "and for edited slots."
    )
    async def by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, event: LiveBookingEvent, viewer: Caller) -> Self:
        slot = Slot(event.slot, viewer)
        return cls(
            action=event.entry.action,
            at=event.entry.at,
            booking=Booking.from_domain(event.booking, slot, viewer),
            by_id=event.entry.by,
            slot_edits=event.edits,
        )


@strawberry.type(description="The position of the caller on the waiting list of a slot.")
class WaitlistEntryEvent:
    slot_id: strawberry.ID = field(description="The id of the slot.")
    position: int | None = field(
        description="The position, starting at 1; null once the caller has a place or an offer, or "
        "is no longer on the list."
    )
    waiting_slot_id: strawberry.Private[SlotId]
    viewer: strawberry.Private[Caller]

    @field(description="The slot as it is now.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.waiting_slot_id, self.viewer)

    @classmethod
    def from_domain(cls, event: WaitlistPosition, viewer: Caller) -> Self:
        return cls(
            slot_id=slot_global_id(event.slot_id),
            position=event.position,
            waiting_slot_id=event.slot_id,
            viewer=viewer,
        )


MAX_SLOTS = 100
# So many slots of a subscription count as a read: the state of each is read and sent at its start.
SLOTS_PER_READ = 10
# The only field of an event that depends on the viewer, and that is read from MongoDB.
SLOT_FIELD = "slot"


class AvailabilityEvents(SharedEvents[Availability]):
    """The availability of slots that the viewer may see; each state is the same for all viewers."""

    @staticmethod
    def to_event(state: Availability) -> SlotAvailability:
        """Return the state as clients see it."""
        return SlotAvailability.from_domain(state)


class SlotsAvailability(AvailabilityEvents):
    """The availability of slots by their ids."""

    def __init__(self, context: Context, global_ids: Sequence[str]) -> None:
        self._context = context
        self._global_ids = global_ids

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AvailabilitySubscription]:
        """Subscribe to the slots.

        Errors: BAD_USER_INPUT if one is unknown to the viewer, RATE_LIMITED.
        """
        # A variable of this function would keep the slots as long as the subscription.
        availability = self._context.services.availability
        hidden = sees_hidden(self._context.viewer)
        async with availability.subscribe(
            await self._find_slot_ids(), sees_hidden=hidden
        ) as subscription:
            yield subscription

    async def _find_slot_ids(self) -> list[SlotId]:
        """Charge the subscription, and return its slots if the viewer may see all of them."""
        if not 1 <= len(self._global_ids) <= MAX_SLOTS:
            raise bad_input("slotIds", f"`slotIds` must have 1 to {MAX_SLOTS} items.")
        context = self._context
        if reads := len(self._global_ids) // SLOTS_PER_READ:
            await context.charge(OperationKind.READ, reads)
        parsed_ids = {global_id: ids.parse_slot_id(global_id) for global_id in self._global_ids}
        valid_ids = [slot_id for slot_id in parsed_ids.values() if slot_id]
        found = await viewer_queries.find_slots(context.services, valid_ids, context.viewer)
        for item, global_id in enumerate(self._global_ids, start=1):
            if parsed_ids[global_id] not in found:
                raise bad_input("slotIds", f"Item {item}: There is no such slot.")
        return valid_ids


class CampaignAvailability(AvailabilityEvents):
    """The availability of the slots of a campaign, also of those that appear in it later."""

    def __init__(self, context: Context, global_id: str) -> None:
        self._context = context
        self._global_id = global_id

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AvailabilitySubscription]:
        """Subscribe to the campaign.

        Errors: BAD_USER_INPUT if the viewer sees no such campaign, RATE_LIMITED.
        """
        context, campaign_id = self._context, ids.parse_campaign_id(self._global_id)
        viewer, services = context.viewer, context.services
        if not campaign_id or not await campaigns.find(services, campaign_id, viewer):
            raise bad_input("campaignId", "There is no such campaign.")
        is_organizer = viewer is not None and viewer.is_organizer
        slots = services.campaign_slots
        async with slots.subscribe(campaign_id, include_hidden=is_organizer) as subscription:
            if reads := len(subscription.slot_ids) // SLOTS_PER_READ:
                await context.charge(OperationKind.READ, reads)
            yield subscription
