"""Slots, bookings and people as clients see them; each mirrors a value of the domain."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.booking import booking as bookings
from slotlock.domain.booking import slot as domain
from slotlock.domain.booking.history import (
    BookingAction,
    BookingLimit,
    BookingStatus,
    HistoryChange,
    HistoryEntry,
    history_changes,
)
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.schedule import meetings
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import (
    booking_global_id,
    series_global_id,
    slot_global_id,
    waitlist_entry_global_id,
)
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.users.types import Node, User, load_user
from slotlock.services.campaigns import campaigns


@strawberry.type(description="One thing that happened to a booking.")
class BookingChange:
    at: datetime = field(description="When.")
    action: BookingAction = field(description="What was done to it.")
    before: BookingStatus | None = field(description="The status before; null when it was made.")
    after: BookingStatus = field(description="The status after.")
    held_until: datetime | None = field(description="Of a hold, when it runs out after this.")
    overridden_limits: list[BookingLimit] = field(
        description="Limits that an organizer overrode with it."
    )
    by_id: strawberry.Private[UserId | None]

    @field(description="Who did it; null for the waiting list and the clock.")
    async def by(self, info: Info) -> User | None:
        return await load_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, change: HistoryChange) -> Self:
        entry = change.entry
        return cls(
            at=entry.at,
            action=entry.action,
            before=change.before.status if change.before else None,
            after=entry.status,
            held_until=entry.held_until,
            overridden_limits=list(entry.overridden_limits),
            by_id=entry.by,
        )


if TYPE_CHECKING:
    from slotlock.graphql.campaigns.types import Campaign


async def load_campaign(info: Info, campaign_id: CampaignId) -> "Campaign | None":
    """A campaign as the reader may see it."""
    from slotlock.graphql.campaigns.types import Campaign  # which shows slots

    found = await campaigns.find(info.context.services, campaign_id, info.context.viewer)
    return Campaign.from_domain(found) if found else None


@strawberry.type(description="One person's place in one slot.")
class Booking(Node):
    slot: "Slot" = field(description="The slot it is a place in.")
    status: BookingStatus = field(description="Whether it takes a place.")
    held_until: datetime | None = field(description="Of a hold, when it runs out.")
    created_at: datetime = field(description="When it was made.")
    cancelled_at: datetime | None = field(description="When it was cancelled by a person.")
    ended_at: datetime | None = field(description="When it gave its place back.")
    on_behalf: bool = field(description="Whether somebody else made it for them.")
    waited_since: datetime | None = field(
        description="Of a place from the waiting list, since when they waited."
    )
    moved_from: strawberry.ID | None = field(
        description="The booking that moved here; its past, like all of it, is shown to its owner, "
        "to who made it and to organisers."
    )
    moved_to: strawberry.ID | None = field(description="The booking that this one moved to.")
    overridden_limits: list[BookingLimit] = field(
        description="Limits that were overridden by what happened last."
    )
    user_id: strawberry.Private[UserId]
    history_entries: strawberry.Private[tuple[HistoryEntry, ...]]

    @field(description="Whose place it is.")
    async def user(self, info: Info) -> User | None:
        return await load_user(info, self.user_id)

    @field(
        description="Who made it, shown to them, to its owner and to organisers; null for the "
        "waiting list."
    )
    async def made_by(self, info: Info) -> User | None:
        by = self.history_entries[0].by if self.history_entries else None
        return await load_user(info, by) if by else None

    @field(
        description="Everything that happened to it, the oldest first; shown to its owner, to who "
        "made it and to organisers, else empty."
    )
    def history(self) -> list[BookingChange]:
        return [
            BookingChange.from_domain(change) for change in history_changes(self.history_entries)
        ]

    @classmethod
    def from_domain(cls, booking: bookings.Booking, slot: "Slot", viewer: Caller | None) -> Self:
        if slot.cancellation_entry is not None and booking.status.is_live:
            booking = booking.with_entry(slot.cancellation_entry)
        last = booking.history[-1]
        theirs = _may_see_history(booking, viewer)
        return cls(
            id=booking_global_id(booking.slot_id, booking.id),
            slot=slot,
            status=last.status,
            held_until=last.held_until,
            created_at=booking.created_at,
            cancelled_at=booking.ended_at if last.status is BookingStatus.CANCELLED else None,
            ended_at=booking.ended_at,
            on_behalf=theirs and booking.made_by not in (None, booking.user_id),
            waited_since=booking.waited_since if theirs else None,
            moved_from=_ref_global_id(booking.moved_from) if theirs else None,
            moved_to=_ref_global_id(booking.moved_to) if theirs else None,
            overridden_limits=list(last.overridden_limits) if theirs else [],
            user_id=booking.user_id,
            history_entries=booking.history if theirs else (),
        )


def _may_see_history(booking: bookings.Booking, viewer: Caller | None) -> bool:
    """Whether its past is shown: to its owner, to who made it and to organisers."""
    if viewer is None:
        return False
    return viewer.is_organizer or viewer.user_id in (booking.user_id, booking.made_by)


def _ref_global_id(ref: bookings.BookingRef | None) -> strawberry.ID | None:
    return booking_global_id(ref.slot_id, ref.booking_id) if ref else None


@strawberry.type(description="A person's turn in the waiting list of a slot.")
class WaitlistEntry:
    id: strawberry.ID = field(description="Opaque; the booking it becomes has another.")
    slot: "Slot" = field(description="The slot they wait for.")
    since: datetime = field(description="Since when they wait.")
    entry: strawberry.Private[bookings.WaitlistEntry]

    @field(description="Their place in line, from 1; null when they wait no longer.")
    async def position(self, info: Info) -> int | None:
        line = await info.context.waitlists.load(self.entry.slot_id)
        return line.index(self.entry.id) + 1 if self.entry.id in line else None

    @classmethod
    def from_domain(cls, entry: bookings.WaitlistEntry, slot: "Slot") -> Self:
        return cls(id=waitlist_entry_global_id(entry), slot=slot, since=entry.since, entry=entry)


@strawberry.type(description="One time at which people meet.")
class Meeting:
    start_time: datetime = field(description="When it begins.")
    end_time: datetime = field(description="When it ends.")

    @classmethod
    def from_domain(cls, meeting: meetings.Meeting) -> Self:
        return cls(start_time=meeting.start, end_time=meeting.end)


@strawberry.type(description="At most so many people of one group in one slot.")
class GroupLimit:
    group: str = field(
        description="The group; a name that ends in a star stands for each group that begins so."
    )
    limit: int = field(description="How many of it may have a place.")


@strawberry.type(description="A time with a number of places that people book.")
class Slot(Node):
    title: str = field(description="What it is.")
    start_time: datetime = field(description="When it begins; of a course, its first meeting.")
    end_time: datetime = field(description="When it ends; of a course, its last meeting.")
    meetings: list[Meeting] = field(description="When people meet, in order; mostly once.")
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
    hold_minutes: int = field(description="How long a hold lasts, 1 to 60 minutes.")
    cancel_cutoff_minutes: int = field(
        description="How long before the start members can no longer give a place back."
    )
    choice_group: str | None = field(
        description="A name that alternatives share, such as the beds of a dormitory: a person "
        "has a place in at most one slot of a choice."
    )
    group_limits: list[GroupLimit] = field(
        description="How many of which groups may have a place, besides what its campaign says."
    )
    resource: str | None = field(
        description="What it needs for itself, such as a room: no two published slots of one "
        "resource overlap."
    )
    series_id: strawberry.ID | None = field(description="The series it was created in, if any.")
    waitlist_capacity: int = field(description="How many may wait; 0 for no waiting list.")
    waitlist_offer_minutes: int | None = field(
        description="How long a freed place is offered to the next in line before it passes on; "
        "null when it is booked for them outright."
    )
    waitlist_length: int = field(description="How many wait.")
    my_waitlist_entry: WaitlistEntry | None = field(description="The caller's turn, if they wait.")
    booker_id: strawberry.Private[UserId | None]
    cancellation_entry: strawberry.Private[HistoryEntry | None]
    campaign_id: strawberry.Private[CampaignId | None]

    @field(description="The campaign it belongs to, if any.")
    async def campaign(
        self, info: Info
    ) -> Annotated["Campaign", strawberry.lazy("slotlock.graphql.campaigns.types")] | None:
        return await load_campaign(info, self.campaign_id) if self.campaign_id else None

    @field(description="Who booked a one-place slot; shown to them and to organisers, else null.")
    async def booked_by(self, info: Info) -> User | None:
        return await load_user(info, self.booker_id) if self.booker_id else None

    @classmethod
    def from_domain(cls, slot: domain.Slot, viewer: Caller | None) -> Self:
        mirrored = cls(
            id=slot_global_id(slot.id),
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
            hold_minutes=slot.hold_minutes,
            cancel_cutoff_minutes=slot.cancel_cutoff_minutes,
            choice_group=slot.choice_group,
            meetings=[Meeting.from_domain(meeting) for meeting in slot.all_meetings],
            group_limits=[GroupLimit(group=g.group, limit=g.limit) for g in slot.group_limits],
            resource=slot.resource,
            series_id=series_global_id(slot.series_id) if slot.series_id else None,
            waitlist_capacity=slot.waitlist_capacity,
            waitlist_offer_minutes=slot.waitlist_offer_minutes,
            waitlist_length=slot.waitlist_length,
            my_waitlist_entry=None,
            booker_id=_visible_booker_id(slot, viewer),
            campaign_id=slot.terms.campaign_id if slot.terms else None,
            cancellation_entry=domain.cancellation_entry(slot) if slot.cancellation else None,
        )
        if viewer is not None and (mine := slot.booking_of(viewer.user_id)):
            mirrored.my_booking = Booking.from_domain(mine, mirrored, viewer)
        if viewer is not None and (waiting := slot.waitlist_entry_of(viewer.user_id)):
            mirrored.my_waitlist_entry = WaitlistEntry.from_domain(waiting, mirrored)
        return mirrored


def _visible_booker_id(slot: domain.Slot, viewer: Caller | None) -> UserId | None:
    if viewer is None or slot.capacity != 1 or not slot.bookings:
        return None
    booker = slot.bookings[0].user_id
    return booker if viewer.is_organizer or viewer.user_id == booker else None
