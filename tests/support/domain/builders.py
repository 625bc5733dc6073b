"""Builders of slots, requests and bookings for tests of the domain and of its storage."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingStatus,
    HistoryEntry,
    MadeAs,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.slot import Slot, SlotKind, SlotSettings, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import (
    NO_CONTEXTS,
    OtherBooking,
    UserContext,
    UserContexts,
)
from slotlock.domain.reports.roster import PlaceCounts, Roster, RosterRow
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.slot_patch import NO_SETTINGS, SlotDraft, SlotPatch
from slotlock.domain.users.user import Caller, Role, UserId
from tests.support.domain.decisions import decide

NOW = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
INSTANT = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)
_booking_numbers = count()


def minutes_from_now(minutes: float) -> datetime:
    """Return the time this many minutes after `NOW`."""
    return NOW + timedelta(minutes=minutes)


def build_slot(capacity: int = 1, **values: object) -> SlotState:
    """Return a published, empty slot that starts one day after `NOW`.

    `values` are facts about the slot or fields of its state.
    """
    slot = Slot(
        id=SlotId("s"),
        title="Yoga",
        start=NOW + timedelta(days=1),
        end=NOW + timedelta(days=1, hours=1),
        time_zone="Europe/Berlin",
        capacity=capacity,
        location=None,
        kind=SlotKind.COURSE,
        status=SlotStatus.PUBLISHED,
    )
    facts = {name: values.pop(name) for name in SLOT_FACTS & values.keys()}
    state = SlotState(with_values(slot, **facts), version=1, changed_at=NOW)
    return replace(state, **values)  # type: ignore[arg-type]


SLOT_FACTS = {field.name for field in fields(Slot)}


def with_values(slot: Slot, **facts: object) -> Slot:
    """Return the slot with these facts replaced."""
    return replace(slot, **facts)  # type: ignore[arg-type]


def with_facts(state: SlotState, **facts: object) -> SlotState:
    """Return the state with these facts about its slot replaced."""
    return replace(state, slot=with_values(state.slot, **facts))


def build_caller(name: str, role: Role = Role.MEMBER) -> Caller:
    """Return a signed-in caller whose user id is the name."""
    return Caller(UserId(name), role, "session", NOW + timedelta(minutes=15))


def booking_request(name: str, hold: bool = False, organizer: str | None = None) -> BookingRequest:
    """Return a request of this user, or of an organizer for this user."""
    return BookingRequest(
        UserId(name),
        BookingId(f"b{next(_booking_numbers)}"),
        UserId(organizer or name),
        hold,
        made_as=None if organizer is None else MadeAs.ORGANIZER,
    )


def change_request(
    booking: Booking, name: str = "ada", role: Role = Role.MEMBER
) -> BookingChangeRequest:
    """Return a request of this user to change a booking."""
    return BookingChangeRequest(booking.slot_id, booking.id, build_caller(name, role))


def book_place(
    state: SlotState,
    request: BookingRequest,
    now: datetime = NOW,
    users: UserContexts = NO_CONTEXTS,
) -> tuple[SlotState, Booking]:
    """Return the slot after this request was granted, and the new booking."""
    after, outcome = decide(book, state, request, now, users=users)
    assert isinstance(outcome, Booked)
    assert outcome.slot_id == state.id
    return after, outcome.booking


def book_users(
    state: SlotState, *names: str, users: UserContexts = NO_CONTEXTS
) -> tuple[SlotState, list[Booking]]:
    """Return the slot after these users booked one after the other, and their bookings."""
    bookings = []
    for name in names:
        state, booking = book_place(state, booking_request(name), users=users)
        bookings.append(booking)
    return state, bookings


def with_waitlist(state: SlotState, *names: str, users: UserContexts = NO_CONTEXTS) -> SlotState:
    """Return the slot with these users at the end of its waitlist, all entries loaded."""
    entries = tuple(
        WaitlistEntry(
            WaitlistEntryId(f"w-{name}"),
            state.id,
            UserId(name),
            NOW,
            groups=users.groups_for(state.slot, UserId(name)),
        )
        for name in names
    )
    waitlist = (*state.waitlist, *entries)
    return replace(
        state, waitlist=waitlist, loaded_waitlist=len(waitlist), waitlist_length=len(waitlist)
    )


def in_choice_group(state: SlotState) -> SlotState:
    """Return the slot in the choice group `week`."""
    return with_facts(state, choice_group="week")


def users_with_bookings(name: str, *bookings: Booking) -> UserContexts:
    """Return the context of a user with these bookings in slots of the choice group `week`."""
    others = tuple(
        OtherBooking(booking, in_choice_group(build_slot(id=booking.slot_id)).slot)
        for booking in bookings
    )
    context = UserContext(UserId(name), (), len(bookings), others)
    return UserContexts({context.user_id: context})


BERLIN = "Europe/Berlin"


def hour_from(start: str) -> Meeting:
    """Return a meeting of one hour from this start in UTC."""
    start_time = datetime.fromisoformat(start).replace(tzinfo=UTC)
    return Meeting(start_time, start_time + HOUR)


def roster_of(
    title: str, names: Sequence[str], status: SlotStatus = SlotStatus.PUBLISHED
) -> Roster:
    """Return the roster of a slot that is full with confirmed bookings of these users."""
    slot = build_slot(max(len(names), 1), title=title, status=status).slot
    booking = Booking(
        BookingId("b"),
        slot.id,
        UserId("ada"),
        (HistoryEntry(NOW, None, BookingAction.BOOKED, BookingStatus.CONFIRMED),),
    )
    rows = tuple(RosterRow(slot, booking, name) for name in names)
    return Roster(slot, NOW, rows, (), PlaceCounts())


_SETTINGS = {field.name for field in fields(SlotSettings)}


def build_draft(
    title: str,
    start: datetime | None,
    end: datetime | None,
    time_zone: str = "UTC",
    capacity: int = 1,
    location: str | None = None,
    kind: SlotKind = SlotKind.COURSE,
    published: bool = True,
    **others: Any,
) -> SlotDraft:
    """Return a draft; `others` are settings of the slot or fields of the draft."""
    more = {name: others.pop(name) for name in _SETTINGS & others.keys()}
    settings = SlotSettings(title, time_zone, capacity, location, kind, **more)
    return SlotDraft(settings, start, end, published, **others)


def build_patch(**changes: Any) -> SlotPatch:
    """Return new values of settings of a slot and of other fields of the patch."""
    given = {name: changes.pop(name) for name in _SETTINGS & changes.keys()}
    return SlotPatch(replace(NO_SETTINGS, **given), frozenset(given), **changes)
