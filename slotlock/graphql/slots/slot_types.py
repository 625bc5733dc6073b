"""Slots with their bookings and waiting lists, as clients see them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Self

import strawberry
from strawberry import Parent, field

from slotlock.domain.booking import booking
from slotlock.domain.booking.booking import LIVE_STATUSES, BookingRef, SlotId, history_changes
from slotlock.domain.booking.slot import SeriesId, SlotCancellation
from slotlock.domain.schedule.meetings import MAX_MEETINGS
from slotlock.domain.shared.facts import Attribute
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.selected_slot import ReadableSlot, SelectedSlot
from slotlock.domain.users import user
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.campaigns.campaign_queries import Campaign, load_campaign
from slotlock.graphql.check_in_codes import booking_code, calendar_path
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    FilterByTime,
    First,
    OrderByTime,
    TimeList,
)
from slotlock.graphql.core.dataloaders import SeriesPage
from slotlock.graphql.core.enums import Attendance, BookingLimit, BookingStatus, MadeAs, TimeOrder
from slotlock.graphql.core.ids import (
    booking_global_id,
    series_global_id,
    waitlist_entry_global_id,
)
from slotlock.graphql.core.node import Node, attribute_field, property_field, selected_names
from slotlock.graphql.core.outcomes import type_above
from slotlock.graphql.core.refusals import USE_OVERRIDDEN_REFUSALS, RefusalCode, refusal_codes
from slotlock.graphql.core.shared_types import Meeting
from slotlock.graphql.slots.booking_history import BookingChange
from slotlock.graphql.slots.facts import (
    FAMILY,
    FirstMeetings,
    MeetingsFrom,
    MeetingsUntil,
    SlotFacts,
    select_meetings,
    select_parts,
    slot_selection,
)
from slotlock.graphql.users.user_queries import USER_FIELDS, User, load_referenced_user, load_user
from slotlock.services.booking.eligibility import Eligibility, check_eligibility
from slotlock.services.slots import viewer_queries
from slotlock.services.slots.family_places import ReadPlace, find_family_places


def position_by_start(found: ReadableSlot) -> Position:
    """Return the position of a slot in a list by start."""
    return Position(found.slot.start, found.id)


def times_of(found: ReadableSlot) -> tuple[datetime, datetime, str]:
    """Return what decides the position of a slot in a list by time."""
    return found.slot.start, found.slot.end, found.id


LED_SEE_IT = "Only the user, the booker, organizers and leaders of the slot see it"
SERIES_SLOTS = TimeList("slotSeries.slots", times_of)


@strawberry.type(description="Whether the user of a booking came to one meeting of the slot.")
class MeetingAttendance:
    meeting: Meeting = field(description="The meeting of the slot that the attendance is for.")
    attendance: Attendance = field(description="Whether the user came.")

    @field(description="When the user was checked in; null without a check-in.")
    def checked_in_at(attended: Parent[booking.MeetingAttendance]) -> datetime | None:
        return attended.check_in.at if attended.check_in else None

    @field(description="Who checked the user in; null without a check-in.")
    async def checked_in_by(attended: Parent[booking.MeetingAttendance], info: Info) -> User | None:
        by = attended.check_in and attended.check_in.by
        return await load_referenced_user(info, by) if by else None


def _shown_field(attribute: Attribute) -> object:
    """Return the field for what only those see who manage the booking; null for others."""
    is_ref = attribute.value_type is BookingRef
    shown_as: Any = strawberry.ID if is_ref else attribute.value_type

    def read(shown: "Booking") -> Any:
        value = getattr(shown._booking, attribute.name) if shown._shows_history else None
        return booking_global_id(value.slot_id, value.booking_id) if value and is_ref else value

    read.__annotations__["return"] = shown_as | None
    only = "Only the user, the booker and organizers see it; null for others."
    return property_field(description=f"{attribute.shown} {only}")(read)


@strawberry.type(
    description="The booking of one place in a slot by or for one user. Guardians see of it what "
    "the user sees."
)
class Booking(Node):
    def __init__(self, booking: booking.Booking, slot: "Slot", viewer: Caller | None) -> None:
        self.id = booking_global_id(booking.slot_id, booking.id)
        self._booking = booking
        self._slot = slot
        self._viewer = viewer

    @classmethod
    def from_domain(cls, booking: booking.Booking, slot: "Slot", viewer: Caller | None) -> Self:
        if booking.history[-1].status in LIVE_STATUSES and slot.cancellation is not None:
            booking = booking.with_entry(slot.cancellation.to_history_entry())
        return cls(booking, slot, viewer)

    @property_field(description="The slot that the booking is for.")
    def slot(self) -> "Slot":
        return self._slot

    status = attribute_field(
        "_booking.status", BookingStatus, "Whether the booking occupies a place."
    )

    @property_field(description="When the hold expires; null for a booking that is no hold.")
    def held_until(self) -> datetime | None:
        return self._booking.history[-1].held_until

    created_at = attribute_field("_booking.created_at", datetime, "When the booking was created.")

    @property_field(
        description="When the booking was cancelled or moved, or its slot was cancelled."
    )
    def cancelled_at(self) -> datetime | None:
        is_cancelled = self._booking.status is BookingStatus.CANCELLED
        return self._booking.ended_at if is_cancelled else None

    ended_at = attribute_field(
        "_booking.ended_at",
        datetime | None,
        "When the booking ended and its place became free; null while it is active.",
    )

    @property_field(
        description="Whether someone else made the booking. Only the user, the booker and "
        "organizers see it; false for others."
    )
    def on_behalf(self) -> bool:
        made_by = self._booking.made_by
        return self._shows_history and made_by not in (None, self._booking.user_id)

    # What the declaration of a booking shows, such as `waitedSince`.
    vars().update((each.name, _shown_field(each)) for each in booking.BOOKING_FIELDS if each.shown)

    @property_field(
        description="As what somebody made the booking for its user; null if it was the user, a "
        f"teammate or the waiting list. {LED_SEE_IT}; null for others."
    )
    def made_as(self) -> MadeAs | None:
        return self._booking.made_as if self._shows_attendance else None

    @property_field(
        description="The limits that the last change overrode. Only the user, the booker and "
        "organizers see them; empty for others.",
        deprecation_reason=USE_OVERRIDDEN_REFUSALS,
    )
    def overridden_limits(self) -> list[BookingLimit]:
        return list(self._booking.history[-1].overridden_limits) if self._shows_history else []

    @property_field(
        description="The codes of the refusals that the last change overrode. "
        f"{LED_SEE_IT}; empty for others."
    )
    def overridden_refusals(self) -> list[RefusalCode]:
        last = self._booking.history[-1]
        return refusal_codes(last.overridden_limits) if self._shows_attendance else []

    @property_field(
        description="Whether the user came, of several meetings to at least one. "
        f"{LED_SEE_IT}; `NOT_RECORDED` for others."
    )
    def attendance(self) -> Attendance:
        return self._booking.attendance if self._shows_attendance else Attendance.NOT_RECORDED

    @property_field(
        description="When the user was checked in, of several meetings for the last time. "
        f"{LED_SEE_IT}; null for others and without a check-in."
    )
    def checked_in_at(self) -> datetime | None:
        entry = self._booking.check_in if self._shows_attendance else None
        return entry.at if entry else None

    @field(
        description="The organizer or leader who checked the user in. "
        f"{LED_SEE_IT}; null for others and without a check-in."
    )
    async def checked_in_by(self, info: Info) -> User | None:
        entry = self._booking.check_in if self._shows_attendance else None
        return await load_referenced_user(info, entry.by) if entry and entry.by else None

    @field(
        description="Whether the user came to each meeting of the slot, by default to all of them. "
        f"{LED_SEE_IT}; empty for others.",
        graphql_type=list[MeetingAttendance],
    )
    def attendance_by_meeting(
        self,
        from_: MeetingsFrom = None,
        until: MeetingsUntil = None,
        first: FirstMeetings = MAX_MEETINGS,
    ) -> object:
        meetings = select_meetings(self._slot._slot, from_, until, first)
        return self._booking.attendance_at(meetings) if self._shows_attendance else ()

    @field(
        description="The code of a confirmed booking, which `checkIn` accepts. Only the user, "
        "organizers and leaders of the slot see it; null for others and for other bookings."
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
        title = f"Check-in code for {self._slot._slot.title}"
        return await info.context.qr_codes.load((code, title))

    @field(
        description="The address of an iCalendar file with the meetings of the booking, which a "
        "phone adds to its calendar: absolute if the server knows its public address, else a path "
        "on this server. It works without signing in, until the user is banned. Only the user sees "
        "it, and each guardian another one, which ends with the relation; null for others."
    )
    def calendar_url(self, info: Info) -> str | None:
        booking, viewer = self._booking, self._viewer
        if viewer is None or not _is_own(booking.user_id, viewer):
            return None
        reader_id = viewer.actor_id or viewer.user_id
        guardian_id = None if reader_id == booking.user_id else reader_id
        tokens = info.context.auth.tokens
        path = calendar_path(tokens, booking.slot_id, booking.id, guardian_id)
        return info.context.to_url(path)

    @field(
        description="The user who has the place. In what a leader of the slot reads, they have "
        "their groups as well."
    )
    async def user(self, info: Info) -> User | None:
        return await _load_placed_user(info, self._booking, self._viewer)

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
        if not booking.is_led_by(viewer) and not _is_own(booking.user_id, viewer):
            return None
        return booking_code(info.context.auth.tokens, booking.slot_id, booking.id)

    @property
    def _shows_history(self) -> bool:
        return self._viewer is not None and self._booking.is_managed_by(self._viewer)

    @property
    def _shows_attendance(self) -> bool:
        viewer = self._viewer
        return self._shows_history or (viewer is not None and self._booking.is_led_by(viewer))


def _is_own(user_id: UserId, viewer: Caller) -> bool:
    """Return whether a place of this user is the viewer's own, or that of a dependent."""
    return viewer.user_id == user_id or user_id in viewer.acts_for


async def _load_placed_user(
    info: Info, place: booking.Booking | booking.WaitlistEntry, viewer: Caller | None
) -> User | None:
    """Load the user of a place; those who lead its slot see their groups, too."""
    shows_groups = viewer is not None and place.slot_id in viewer.leads
    return await load_referenced_user(info, place.user_id, shows_groups=shows_groups)


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

    @property_field(description="The slot that the user waits for.")
    def slot(self) -> "Slot":
        return self._slot

    @property_field(description="When the user joined the waiting list.")
    def since(self) -> datetime:
        return self._entry.since

    @field(
        description="The user who waits. In what a leader of the slot reads, they have their "
        "groups as well."
    )
    async def user(self, info: Info) -> User | None:
        return await _load_placed_user(info, self._entry, self._slot._viewer)

    @field(
        description="The guardian or organizer who put the user on the waiting list; null if the "
        "user joined. Only the user, their guardians and organizers see them; null for others."
    )
    async def waitlisted_by(self, info: Info) -> User | None:
        actor_id, viewer = self._entry.waitlisted_by, self._slot._viewer
        if viewer is None or not (viewer.is_organizer or _is_own(self._entry.user_id, viewer)):
            return None
        return await load_referenced_user(info, actor_id) if actor_id else None

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
        self._state = state
        self._slot = slot = state if isinstance(state, SelectedSlot) else state.slot
        self._viewer = viewer
        # Those of the viewer, if the state has their bookings, too.
        self._dependents: Sequence[user.User] | None = None
        self.id = strawberry.ID("slot_" + slot.id)

    @classmethod
    def show_all(
        cls,
        states: Iterable[ReadableSlot],
        viewer: Caller | None,
        dependents: Sequence[user.User] | None = None,
    ) -> "list[Slot]":
        """Return the views of the slots of a list, without a call for each."""
        views = []
        for state in states:
            view = cls.__new__(cls)
            view._state = state
            view._slot = slot = state if isinstance(state, SelectedSlot) else state.slot
            view._viewer = viewer
            view._dependents = dependents
            view.id = strawberry.ID("slot_" + slot.id)
            views.append(view)
        return views

    @property
    def cancellation(self) -> SlotCancellation | None:
        """When the slot was cancelled, which ended its bookings."""
        return self._slot.cancellation

    remaining = attribute_field("_state.remaining", int, "The number of free places.")
    is_booked = attribute_field("_state.is_booked", bool, "Whether no place is free.")
    version = attribute_field(
        "_state.version",
        int,
        "A number that grows with every change. Of two states, the one with the higher "
        "version is newer.",
    )

    @property_field(
        description="The caller's active booking of the slot, or the one that was cancelled with "
        "the slot."
    )
    def my_booking(self) -> Booking | None:
        viewer = self._viewer
        own_booking = self._state.booking_of(viewer.user_id) if viewer else None
        return Booking.from_domain(own_booking, self, viewer) if own_booking else None

    @field(
        description="Whether the cancellation of the slot took a place from the caller, or a "
        "position on the waiting list."
    )
    async def cancelled_for_me(self, info: Info) -> bool:
        return self._viewer is not None and await _is_cancelled(info, self._state, self._viewer)

    @field(
        description="Whether the caller leads the slot, as the `leader` of one of its resources: "
        "they read its roster and record the attendance until 90 days after its end. Slots that "
        "are not published have no leader."
    )
    async def is_led_by_me(self, info: Info) -> bool:
        if self._viewer is None or self._viewer.actor_id is not None:
            return False
        return bool(await info.context.loaders.led_slots.load(self._slot.id))

    @property_field(description="The series that the slot belongs to.")
    def series(self) -> "SlotSeries | None":
        series_id = self._slot.series_id
        return SlotSeries(series_id, self._viewer) if series_id else None

    waitlist_length = attribute_field(
        "_state.waitlist_length", int, "How many users are on the waiting list."
    )

    @property_field(description="The caller's entry on the waiting list.")
    def my_waitlist_entry(self) -> WaitlistEntry | None:
        viewer = self._viewer
        own_entry = self._state.waitlist_entry_of(viewer.user_id) if viewer else None
        return WaitlistEntry(own_entry, self) if own_entry else None

    @field(
        graphql_type=type_above(Eligibility) | None,
        description="Whether the caller may book a place now, and if not, why; null for an "
        "anonymous client.",
    )
    async def my_eligibility(self, info: Info) -> Eligibility | None:
        viewer = self._viewer
        if viewer is None:
            return None
        return await check_eligibility(info.context.services, viewer, self._slot.id)

    @field(
        description="What the caller and each of their dependents, by name, have of the slot; "
        "empty for an anonymous client."
    )
    async def family_places(self, info: Info) -> list["FamilyPlace"]:
        context, caller, slot_id = info.context, info.context.viewer, self._slot.id
        found: ReadableSlot | None = self._state
        if caller is None:
            return []
        names, dependents = selected_names(info), self._dependents
        if dependents is None:
            dependents = await context.loaders.dependents.load(caller.user_id) or ()
            ids = [each.id for each in dependents]
            selection = select_parts(names | {FAMILY})
            found = await viewer_queries.find_slot(
                context.services, slot_id, caller, selection, ids
            )
        places = await find_family_places(
            context.services,
            caller,
            dependents,
            slot_id,
            found,
            checks_eligibility="eligibility" in names,
        )
        users: list[User | None]
        if names.isdisjoint(USER_FIELDS):
            users = [User.for_reference(each.reader.user_id) for each in places]
        else:
            own = await load_user(info, caller.user_id)
            users = [own, *(User.from_domain(each, caller) for each in dependents)]
        # Nearly always there is nothing to wait for.
        is_off = "cancelled" in names and self._slot.cancellation is not None
        cancelled = [
            is_off and await _is_cancelled(info, each.slot, each.reader) for each in places
        ]
        return list(map(FamilyPlace.from_domain, places, users, cancelled))

    @field(
        description="A text in Markdown, as the organizer entered it; null without a description. "
        "A client that shows it as HTML has to remove scripts."
    )
    async def description(self, info: Info) -> str | None:
        return await info.context.loaders.slot_descriptions.load(self._slot.id)

    @property_field(
        description="The address at which a meeting on the net takes place. Only organizers see "
        "it, and users with a confirmed booking of the slot; null for others."
    )
    def meeting_url(self) -> str | None:
        viewer, slot = self._viewer, self._slot
        if viewer is None:
            return None
        if viewer.is_organizer:
            return slot.meeting_url
        return slot.meeting_url_for(self._state.booking_of(viewer.user_id))

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


@strawberry.type(
    description="What the caller, or a dependent of theirs, has of a slot. It is as that user "
    "reads it, with codes and links."
)
class FamilyPlace:
    user: User | None = field(description="The caller, or the dependent.")
    booking: Booking | None = field(
        description="The user's active booking, or the one that was cancelled with the slot."
    )
    waitlist_entry: WaitlistEntry | None = field(
        description="The user's entry on the waiting list."
    )
    eligibility: type_above(Eligibility) = field(  # type: ignore[valid-type]
        description="Whether the caller may book a place for the user now, and if not, why."
    )
    cancelled: bool = field(
        description="Whether the cancellation of the slot took a place from the user, or a "
        "position on the waiting list."
    )

    @classmethod
    def from_domain(cls, place: ReadPlace, user: User | None, cancelled: bool) -> Self:
        slot, shown = place.slot, None
        if slot is not None and (slot.bookings or slot.waitlist):
            shown = Slot(slot, place.reader)
        return cls(
            user=user,
            booking=shown.my_booking if shown else None,
            waitlist_entry=shown.my_waitlist_entry if shown else None,
            eligibility=place.eligibility,
            cancelled=cancelled,
        )


async def _is_cancelled(info: Info, state: ReadableSlot | None, reader: Caller) -> bool:
    """Return whether the cancellation of a slot ended a booking or waiting list entry of a user."""
    if state is None:
        return False
    slot = state if isinstance(state, SelectedSlot) else state.slot
    if slot.cancellation is None:
        return False
    if state.booking_of(reader.user_id):
        return True
    wait = reader.user_id, slot.id
    return await info.context.loaders.waits_ended.load(wait) == slot.cancellation.at


SlotConnection = Connection[Slot]


@strawberry.type(
    description="Slots that a recurrence rule created, and those that were added. Each of them can "
    "change on its own."
)
class SlotSeries(Node):
    def __init__(self, series_id: SeriesId, viewer: Caller | None = None) -> None:
        self.id = series_global_id(series_id)
        self._series_id = series_id
        self._viewer = viewer

    @field(
        description="The slots of the series, by default all by start: published and cancelled "
        "ones, and for organizers drafts and those of unpublished campaigns."
    )
    async def slots(
        self,
        info: Info,
        filter: FilterByTime = None,
        order_by: OrderByTime = TimeOrder.START_ASC,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> SlotConnection:
        loaders, viewer = info.context.loaders, self._viewer or info.context.viewer
        page, cursors = SERIES_SLOTS.page(filter, order_by, first, after, loaders.now)
        found = await loaders.series_pages.load(
            SeriesPage(self._series_id, page, slot_selection(info), viewer)
        )
        return SlotConnection.of_page(
            found,
            lambda slot: Slot(slot, viewer),
            cursors,
            after,
            partial(loaders.series_counts.load, (self._series_id, page.wanted, page.as_of)),
        )


def _visible_booker_id(state: ReadableSlot, viewer: Caller | None) -> UserId | None:
    if viewer is None or state.slot.capacity != 1 or not state.bookings:
        return None
    booker_id = state.bookings[0].user_id
    return booker_id if viewer.is_organizer or viewer.user_id == booker_id else None


async def load_slot(info: Info, slot_id: SlotId, viewer: Caller | None = None) -> Slot | None:
    """Load a slot if the viewer, by default the caller, may see it."""
    context = info.context
    viewer = viewer or context.viewer
    found = await viewer_queries.find_slot(context.services, slot_id, viewer, slot_selection(info))
    return Slot(found, viewer) if found else None


async def load_booking(info: Info, ref: BookingRef) -> Booking | None:
    """Load a booking that the caller manages. Errors: UNAUTHENTICATED."""
    context = info.context
    found = await context.loaders.bookings.load(ref) if context.caller else None
    if found is None:
        return None
    own_or_any, slot, reader = found
    return Booking.from_domain(own_or_any, Slot(slot, reader), reader)
