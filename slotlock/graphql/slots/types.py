"""Slots with their bookings and waiting lists, as clients see them."""

from datetime import datetime
from functools import partial
from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.booking import booking
from slotlock.domain.booking.booking import BookingRef, SlotId, history_changes
from slotlock.domain.booking.refusals import SlotOutcome
from slotlock.domain.booking.slot import SeriesId, SlotCancellation
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.reading import ReadableSlot
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.campaigns.types import Campaign, load_campaign
from slotlock.graphql.check_in.codes import check_in_code
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import decode_position, encode_position
from slotlock.graphql.core.dataloaders import SeriesPage
from slotlock.graphql.core.enums import Attendance, BookingLimit, BookingStatus
from slotlock.graphql.core.ids import (
    booking_global_id,
    series_global_id,
    slot_global_id,
    waitlist_entry_global_id,
)
from slotlock.graphql.core.node import Node, property_field
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.facts import SlotFacts
from slotlock.graphql.slots.history import BookingChange
from slotlock.graphql.slots.selection import slot_selection
from slotlock.graphql.users.types import User, load_referenced_user
from slotlock.services.booking.eligibility import Eligibility, check_eligibility
from slotlock.services.slots import queries

SERIES_SLOTS_CURSOR = "slotSeries.slots"


@strawberry.type(description="The booking of one place in a slot by or for one user.")
class Booking(Node):
    def __init__(self, booking: booking.Booking, slot: "Slot", viewer: Caller | None) -> None:
        self.id = booking_global_id(booking.slot_id, booking.id)
        self._booking = booking
        self._slot = slot
        self._viewer = viewer

    @classmethod
    def from_domain(cls, booking: booking.Booking, slot: "Slot", viewer: Caller | None) -> Self:
        """Show a booking in its slot to a viewer."""
        if booking.status.is_live and slot.cancellation is not None:
            booking = booking.with_entry(slot.cancellation.to_history_entry())
        return cls(booking, slot, viewer)

    @property_field(description="The slot that the booking is for.")
    def slot(self) -> "Slot":
        return self._slot

    @property_field(description="Whether the booking occupies a place.")
    def status(self) -> BookingStatus:
        return self._booking.status

    @property_field(description="When the hold expires; null for a booking that is no hold.")
    def held_until(self) -> datetime | None:
        return self._booking.history[-1].held_until

    @property_field(description="When the booking was created.")
    def created_at(self) -> datetime:
        return self._booking.created_at

    @property_field(
        description="When the booking was cancelled or moved, or its slot was cancelled."
    )
    def cancelled_at(self) -> datetime | None:
        is_cancelled = self._booking.status is BookingStatus.CANCELLED
        return self._booking.ended_at if is_cancelled else None

    @property_field(
        description="When the booking ended and its place became free; null while it is active."
    )
    def ended_at(self) -> datetime | None:
        return self._booking.ended_at

    @property_field(
        description="Whether someone else made the booking. Only the user, the booker and "
        "organizers see it; false for others."
    )
    def on_behalf(self) -> bool:
        made_by = self._booking.made_by
        return self._shows_history and made_by not in (None, self._booking.user_id)

    @property_field(
        description="When the user joined the waiting list that led to the booking. Only the user, "
        "the booker and organizers see it; null for others."
    )
    def waited_since(self) -> datetime | None:
        return self._booking.waited_since if self._shows_history else None

    @property_field(
        description="The booking that was moved to this one. Only the user, the booker and "
        "organizers see it; null for others."
    )
    def moved_from(self) -> strawberry.ID | None:
        return _ref_global_id(self._booking.moved_from) if self._shows_history else None

    @property_field(
        description="The booking that this one was moved to. Only the user, the booker and "
        "organizers see it; null for others."
    )
    def moved_to(self) -> strawberry.ID | None:
        return _ref_global_id(self._booking.moved_to) if self._shows_history else None

    @property_field(
        description="The limits that the last change overrode. Only the user, the booker and "
        "organizers see them; empty for others."
    )
    def overridden_limits(self) -> list[BookingLimit]:
        return list(self._booking.history[-1].overridden_limits) if self._shows_history else []

    @property_field(
        description="Whether the user came. Only the user, the booker and organizers see it; "
        "`NOT_RECORDED` for others."
    )
    def attendance(self) -> Attendance:
        return self._booking.attendance if self._shows_history else Attendance.NOT_RECORDED

    @property_field(
        description="When the user was checked in. Only the user, the booker and organizers see "
        "it; null for others and without a check-in."
    )
    def checked_in_at(self) -> datetime | None:
        entry = self._booking.check_in if self._shows_history else None
        return entry.at if entry else None

    @field(
        description="The organizer who checked the user in. Only the user, the booker and "
        "organizers see them; null for others and without a check-in."
    )
    async def checked_in_by(self, info: Info) -> User | None:
        entry = self._booking.check_in if self._shows_history else None
        return await load_referenced_user(info, entry.by) if entry and entry.by else None

    @field(
        description="The code of a confirmed booking, which `checkIn` accepts. Only the user and "
        "organizers see it; null for others and for other bookings."
    )
    def check_in_code(self, info: Info) -> str | None:
        return self._check_in_code(info)

    @field(
        description="The `checkInCode` as a QR code: an SVG image of 296 x 296 pixels. Its title, "
        "for screen readers, names the slot."
    )
    async def check_in_qr(self, info: Info) -> str | None:
        code = self._check_in_code(info)
        if code is None:
            return None
        title = f"Check-in code for {self._slot.title}"
        return await info.context.qr_codes.load((code, title))

    @field(description="The user who has the place.")
    async def user(self, info: Info) -> User | None:
        return await load_referenced_user(info, self._booking.user_id)

    @field(
        description="The booker: the user who made the booking. Only the user, the booker and "
        "organizers see them; null for others and for the waiting list."
    )
    async def made_by(self, info: Info) -> User | None:
        made_by = self._booking.made_by if self._shows_history else None
        return await load_referenced_user(info, made_by) if made_by else None

    @field(
        description="All changes to the booking, oldest first. Only the user, the booker and "
        "organizers see them; empty for others."
    )
    def history(self) -> list[BookingChange]:
        entries = self._booking.history if self._shows_history else ()
        return [BookingChange.from_domain(change) for change in history_changes(entries)]

    def _check_in_code(self, info: Info) -> str | None:
        booking, viewer = self._booking, self._viewer
        if viewer is None or booking.status is not BookingStatus.CONFIRMED:
            return None
        if not viewer.is_organizer and viewer.user_id != booking.user_id:
            return None
        return check_in_code(info.context.auth.tokens, booking.slot_id, booking.id)

    @property
    def _shows_history(self) -> bool:
        viewer, booking = self._viewer, self._booking
        if viewer is None:
            return False
        return viewer.is_organizer or viewer.user_id in (booking.user_id, booking.made_by)


def _ref_global_id(ref: booking.BookingRef | None) -> strawberry.ID | None:
    return booking_global_id(ref.slot_id, ref.booking_id) if ref else None


@strawberry.type(
    description="The entry of one user on the waiting list of a slot. The booking that follows "
    "from it has another id."
)
class WaitlistEntry(Node):
    def __init__(
        self, entry: booking.WaitlistEntry, slot: "Slot", position: int | None = None
    ) -> None:
        self.id = waitlist_entry_global_id(entry)
        self._entry = entry
        self._slot = slot
        self._position = position

    @classmethod
    def from_domain(
        cls, entry: booking.WaitlistEntry, slot: "Slot", position: int | None = None
    ) -> Self:
        """Show an entry to its user or to an organizer, with its position if that is known."""
        return cls(entry, slot, position)

    @property_field(description="The slot that the user waits for.")
    def slot(self) -> "Slot":
        return self._slot

    @property_field(description="When the user joined the waiting list.")
    def since(self) -> datetime:
        return self._entry.since

    @field(description="The user who waits.")
    async def user(self, info: Info) -> User | None:
        return await load_referenced_user(info, self._entry.user_id)

    @field(
        description="The organizer who put the user on the waiting list; null if the user joined."
    )
    async def waitlisted_by(self, info: Info) -> User | None:
        organizer_id = self._entry.waitlisted_by
        return await load_referenced_user(info, organizer_id) if organizer_id else None

    @field(
        description="The position on the waiting list, starting at 1; null if the user no longer "
        "waits."
    )
    async def position(self, info: Info) -> int | None:
        if self._position is not None:
            return self._position
        entry_ids = await info.context.loaders.waitlists.load(self._entry.slot_id)
        return entry_ids.index(self._entry.id) + 1 if self._entry.id in entry_ids else None


@strawberry.type(description="A time slot with a number of places that users can book.")
class Slot(SlotFacts):
    def __init__(self, state: ReadableSlot, viewer: Caller | None) -> None:
        slot = state.slot
        self.id = slot_global_id(slot.id)
        self._state = state
        self._slot = slot
        self._viewer = viewer

    @classmethod
    def for_outcome(cls, outcome: SlotOutcome, view: ResultView) -> Self:
        """Show the slot that an outcome is about."""
        return cls.from_domain(view.slots[outcome.slot_id], view.viewer)

    @classmethod
    def from_domain(cls, state: ReadableSlot, viewer: Caller | None) -> Self:
        """Show a slot to a viewer, with the viewer's own booking and waiting list entry."""
        return cls(state, viewer)

    @property
    def cancellation(self) -> SlotCancellation | None:
        """When the slot was cancelled, which ended its bookings."""
        return self._slot.cancellation

    @property_field(description="The number of free places.")
    def remaining(self) -> int:
        return self._state.remaining

    @property_field(description="Whether no place is free.")
    def is_booked(self) -> bool:
        return self._state.is_booked

    @property_field(
        description="A number that grows with every change. Of two states, the one with the higher "
        "version is newer."
    )
    def version(self) -> int:
        return self._state.version

    @property_field(
        description="The caller's active booking of the slot, or the one that was cancelled with "
        "the slot."
    )
    def my_booking(self) -> Booking | None:
        viewer = self._viewer
        own_booking = self._state.booking_of(viewer.user_id) if viewer else None
        return Booking.from_domain(own_booking, self, viewer) if own_booking else None

    @property_field(description="The series that the slot belongs to.")
    def series(self) -> "SlotSeries | None":
        series_id = self._slot.series_id
        return SlotSeries(series_id) if series_id else None

    @property_field(description="How many users are on the waiting list.")
    def waitlist_length(self) -> int:
        return self._state.waitlist_length

    @property_field(description="The caller's entry on the waiting list.")
    def my_waitlist_entry(self) -> WaitlistEntry | None:
        viewer = self._viewer
        own_entry = self._state.waitlist_entry_of(viewer.user_id) if viewer else None
        return WaitlistEntry.from_domain(own_entry, self) if own_entry else None

    @field(
        # The type is in the layer above, where refusals show slots.
        graphql_type=Annotated[
            "BookingEligibility",  # noqa: F821
            strawberry.lazy("slotlock.graphql.booking.eligibility"),
        ]
        | None,
        description="Whether the caller may book a place now, and if not, why; null for an "
        "anonymous client.",
    )
    async def my_eligibility(self, info: Info) -> Eligibility | None:
        viewer = self._viewer
        if viewer is None:
            return None
        return await check_eligibility(info.context.services, viewer, self._slot.id)

    @field(
        description="A text in Markdown, as the organizer entered it; null without a description. "
        "A client that shows it as HTML has to remove scripts."
    )
    async def description(self, info: Info) -> str | None:
        return await info.context.loaders.slot_descriptions.load(self._slot.id)

    @field(description="The campaign that the slot belongs to.")
    async def campaign(self, info: Info) -> Campaign | None:
        terms = self._slot.terms
        return await load_campaign(info, terms.campaign_id) if terms else None

    @field(
        description="The user who has the only place of a slot with one place. Only that user and "
        "organizers see them; null for others."
    )
    async def booked_by(self, info: Info) -> User | None:
        booker_id = _visible_booker_id(self._state, self._viewer)
        return await load_referenced_user(info, booker_id) if booker_id else None


SlotConnection = Connection[Slot]


@strawberry.type(
    description="Slots that one recurrence rule created. Each of them changes on its own."
)
class SlotSeries(Node):
    def __init__(self, series_id: SeriesId) -> None:
        self.id = series_global_id(series_id)
        self._series_id = series_id

    @field(
        description="The slots of the series by start: published and cancelled ones, and for "
        "organizers drafts and those of unpublished campaigns."
    )
    async def slots(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> SlotConnection:
        position, loaders = decode_position(SERIES_SLOTS_CURSOR, after), info.context.loaders
        page = await loaders.series_pages.load(
            SeriesPage(self._series_id, require_valid_first(first), position, slot_selection(info))
        )
        items = [
            (
                encode_position(SERIES_SLOTS_CURSOR, Position(found.slot.start, found.id)),
                Slot.from_domain(found, info.context.viewer),
            )
            for found in page.items
        ]
        return SlotConnection.from_items(
            items,
            has_more=page.has_more,
            after=after,
            count=partial(loaders.series_counts.load, self._series_id),
        )


def _visible_booker_id(state: ReadableSlot, viewer: Caller | None) -> UserId | None:
    if viewer is None or state.slot.capacity != 1 or not state.bookings:
        return None
    booker_id = state.bookings[0].user_id
    return booker_id if viewer.is_organizer or viewer.user_id == booker_id else None


async def load_slot(info: Info, slot_id: SlotId) -> Slot | None:
    """Load a slot if the viewer may see it."""
    context = info.context
    viewer = context.viewer
    found = await queries.find_slot(context.services, slot_id, viewer, slot_selection(info))
    return Slot.from_domain(found, viewer) if found else None


async def load_booking(info: Info, ref: BookingRef) -> Booking | None:
    """Load a booking of the caller, or any for an organizer. Errors: UNAUTHENTICATED."""
    caller = info.context.caller
    found = await info.context.loaders.bookings.load(ref)
    if found is None:
        return None
    own_or_any, slot = found
    return Booking.from_domain(own_or_any, Slot.from_domain(slot, caller), caller)
