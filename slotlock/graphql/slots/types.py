"""Slots with their bookings and waiting lists, as clients see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.booking import booking
from slotlock.domain.booking.booking import HistoryEntry, SlotId, history_changes
from slotlock.domain.booking.refusals import SlotOutcome
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.campaigns.types import Campaign, load_campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import BookingLimit, BookingStatus, SlotKind, SlotStatus
from slotlock.graphql.core.ids import (
    booking_global_id,
    series_global_id,
    slot_global_id,
    waitlist_entry_global_id,
)
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.core.values import GroupLimit, Meeting
from slotlock.graphql.slots.history import BookingChange
from slotlock.graphql.users.types import User, load_user


@strawberry.type(description="The booking of one place in a slot by or for one user.")
class Booking(Node):
    slot: "Slot" = field(description="The slot that the booking is for.")
    status: BookingStatus = field(description="Whether the booking occupies a place.")
    held_until: datetime | None = field(
        description="When the hold expires; null for a booking that is no hold."
    )
    created_at: datetime = field(description="When the booking was created.")
    cancelled_at: datetime | None = field(
        description="When the booking was cancelled or moved, or its slot was cancelled."
    )
    ended_at: datetime | None = field(
        description="When the booking ended and its place became free; null while it is active."
    )
    on_behalf: bool = field(
        description="Whether someone else made the booking. Only the user, the booker and "
        "organizers see it; false for others."
    )
    waited_since: datetime | None = field(
        description="When the user joined the waiting list that led to the booking. Only the user, "
        "the booker and organizers see it; null for others."
    )
    moved_from: strawberry.ID | None = field(
        description="The booking that was moved to this one. Only the user, the booker and "
        "organizers see it; null for others."
    )
    moved_to: strawberry.ID | None = field(
        description="The booking that this one was moved to. Only the user, the booker and "
        "organizers see it; null for others."
    )
    overridden_limits: list[BookingLimit] = field(
        description="The limits that the last change overrode. Only the user, the booker and "
        "organizers see them; empty for others."
    )
    user_id: strawberry.Private[UserId]
    history_entries: strawberry.Private[tuple[HistoryEntry, ...]]

    @field(description="The user who has the place.")
    async def user(self, info: Info) -> User | None:
        return await load_user(info, self.user_id)

    @field(
        description="The booker: the user who made the booking. Only the user, the booker and "
        "organizers see them; null for others and for the waiting list."
    )
    async def made_by(self, info: Info) -> User | None:
        made_by = self.history_entries[0].by if self.history_entries else None
        return await load_user(info, made_by) if made_by else None

    @field(
        description="All changes to the booking, oldest first. Only the user, the booker and "
        "organizers see them; empty for others."
    )
    def history(self) -> list[BookingChange]:
        return [
            BookingChange.from_domain(change) for change in history_changes(self.history_entries)
        ]

    @classmethod
    def from_domain(cls, booking: booking.Booking, slot: "Slot", viewer: Caller | None) -> Self:
        """Show a booking in its slot to a viewer."""
        if slot.cancellation_entry is not None and booking.status.is_live:
            booking = booking.with_entry(slot.cancellation_entry)
        last = booking.history[-1]
        sees_history = _may_see_history(booking, viewer)
        return cls(
            id=booking_global_id(booking.slot_id, booking.id),
            slot=slot,
            status=last.status,
            held_until=last.held_until,
            created_at=booking.created_at,
            cancelled_at=booking.ended_at if last.status is BookingStatus.CANCELLED else None,
            ended_at=booking.ended_at,
            on_behalf=sees_history and booking.made_by not in (None, booking.user_id),
            waited_since=booking.waited_since if sees_history else None,
            moved_from=_ref_global_id(booking.moved_from) if sees_history else None,
            moved_to=_ref_global_id(booking.moved_to) if sees_history else None,
            overridden_limits=list(last.overridden_limits) if sees_history else [],
            user_id=booking.user_id,
            history_entries=booking.history if sees_history else (),
        )


def _may_see_history(booking: booking.Booking, viewer: Caller | None) -> bool:
    if viewer is None:
        return False
    return viewer.is_organizer or viewer.user_id in (booking.user_id, booking.made_by)


def _ref_global_id(ref: booking.BookingRef | None) -> strawberry.ID | None:
    return booking_global_id(ref.slot_id, ref.booking_id) if ref else None


@strawberry.type(description="The entry of one user on the waiting list of a slot.")
class WaitlistEntry:
    id: strawberry.ID = field(
        description="An opaque id. The booking that follows from the entry has another one."
    )
    slot: "Slot" = field(description="The slot that the user waits for.")
    since: datetime = field(description="When the user joined the waiting list.")
    entry: strawberry.Private[booking.WaitlistEntry]

    @field(
        description="The position on the waiting list, starting at 1; null if the user no longer "
        "waits."
    )
    async def position(self, info: Info) -> int | None:
        entry_ids = await info.context.loaders.waitlists.load(self.entry.slot_id)
        return entry_ids.index(self.entry.id) + 1 if self.entry.id in entry_ids else None

    @classmethod
    def from_domain(cls, entry: booking.WaitlistEntry, slot: "Slot") -> Self:
        """Show a waiting list entry of a slot."""
        return cls(id=waitlist_entry_global_id(entry), slot=slot, since=entry.since, entry=entry)


@strawberry.type(description="A time slot with a number of places that users can book.")
class Slot(Node):
    title: str = field(description="The title of the slot.")
    start_time: datetime = field(
        description="When the slot starts; for a course, when its first meeting starts."
    )
    end_time: datetime = field(
        description="When the slot ends; for a course, when its last meeting ends."
    )
    meetings: list[Meeting] = field(
        description="All meetings of the slot in order. Most slots have exactly one."
    )
    time_zone: TimeZone = field(description="The time zone in which the slot takes place.")
    location: str | None = field(description="Where the slot takes place.")
    kind: SlotKind = field(description="The kind of event that the slot is for.")
    status: SlotStatus = field(description="Whether the slot is visible and can be booked.")
    capacity: int = field(description="The number of places, 1 to 1000.")
    remaining: int = field(description="The number of free places.")
    is_booked: bool = field(description="Whether no place is free.")
    version: int = field(
        description="A number that grows with every change. Of two states, the one with the higher "
        "version is newer."
    )
    my_booking: Booking | None = field(
        description="The caller's active booking of the slot, or the one that was cancelled with "
        "the slot."
    )
    hold_minutes: int = field(description="How long a hold lasts, 1 to 60 minutes.")
    cancel_cutoff_minutes: int = field(
        description="How many minutes before the start members can no longer cancel a booking."
    )
    choice_group: str | None = field(
        description="A name that alternative slots share, such as the beds of a dormitory. Each "
        "user can have at most one booking in a choice group."
    )
    group_limits: list[GroupLimit] = field(
        description="How many places a group may have in the slot, in addition to the limits of "
        "the campaign."
    )
    resource: str | None = field(
        description="A resource that the slot occupies, such as a room. Published slots with the "
        "same resource cannot overlap."
    )
    series_id: strawberry.ID | None = field(description="The series that the slot belongs to.")
    waitlist_capacity: int = field(
        description="How many users can be on the waiting list; 0 if there is no waiting list."
    )
    waitlist_offer_minutes: int | None = field(
        description="How many minutes a free place is held for the first user on the waiting list; "
        "null if the place is booked for them immediately."
    )
    waitlist_length: int = field(description="How many users are on the waiting list.")
    my_waitlist_entry: WaitlistEntry | None = field(
        description="The caller's entry on the waiting list."
    )
    booker_id: strawberry.Private[UserId | None]
    cancellation_entry: strawberry.Private[HistoryEntry | None]
    campaign_id: strawberry.Private[CampaignId | None]

    @field(description="The campaign that the slot belongs to.")
    async def campaign(self, info: Info) -> Campaign | None:
        return await load_campaign(info, self.campaign_id) if self.campaign_id else None

    @field(
        description="The user who has the only place of a slot with one place. Only that user and "
        "organizers see them; null for others."
    )
    async def booked_by(self, info: Info) -> User | None:
        return await load_user(info, self.booker_id) if self.booker_id else None

    @classmethod
    def for_outcome(cls, outcome: SlotOutcome, view: ResultView) -> Self:
        """Show the slot that an outcome is about."""
        return cls.from_domain(view.slots[outcome.slot_id], view.viewer)

    @classmethod
    def from_domain(cls, state: SlotState, viewer: Caller | None) -> Self:
        """Show a slot to a viewer, with the viewer's own booking and waiting list entry."""
        slot = state.slot
        shown = cls(
            id=slot_global_id(slot.id),
            title=slot.title,
            start_time=slot.start,
            end_time=slot.end,
            time_zone=TimeZone(slot.time_zone),
            location=slot.location,
            kind=slot.kind,
            status=slot.status,
            capacity=slot.capacity,
            remaining=state.remaining,
            is_booked=state.is_booked,
            version=state.version,
            my_booking=None,
            hold_minutes=slot.hold_minutes,
            cancel_cutoff_minutes=slot.cancel_cutoff_minutes,
            choice_group=slot.choice_group,
            meetings=[Meeting.from_domain(meeting) for meeting in slot.all_meetings],
            group_limits=[GroupLimit.from_domain(limit) for limit in slot.group_limits],
            resource=slot.resource,
            series_id=series_global_id(slot.series_id) if slot.series_id else None,
            waitlist_capacity=slot.waitlist_capacity,
            waitlist_offer_minutes=slot.waitlist_offer_minutes,
            waitlist_length=state.waitlist_length,
            my_waitlist_entry=None,
            booker_id=_visible_booker_id(state, viewer),
            campaign_id=slot.terms.campaign_id if slot.terms else None,
            cancellation_entry=slot.cancellation.to_history_entry() if slot.cancellation else None,
        )
        if viewer is not None and (own_booking := state.booking_of(viewer.user_id)):
            shown.my_booking = Booking.from_domain(own_booking, shown, viewer)
        if viewer is not None and (own_entry := state.waitlist_entry_of(viewer.user_id)):
            shown.my_waitlist_entry = WaitlistEntry.from_domain(own_entry, shown)
        return shown


def _visible_booker_id(state: SlotState, viewer: Caller | None) -> UserId | None:
    if viewer is None or state.slot.capacity != 1 or not state.bookings:
        return None
    booker_id = state.bookings[0].user_id
    return booker_id if viewer.is_organizer or viewer.user_id == booker_id else None


async def load_slot(info: Info, slot_id: SlotId) -> Slot | None:
    """Load a slot if the viewer may see it."""
    found = await info.context.loaders.slots.load(slot_id)
    return Slot.from_domain(found, info.context.viewer) if found else None
