"""Builders of slots, requests and bookings for tests of the domain and of its storage."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

from slotlock.domain.booking.book import BookingRequest, book
from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    OtherBooking,
    SlotId,
    UserContext,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.changes import BookingCommand
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.users.user import Caller, Role, UserId
from tests.support.domain.decisions import decide

NOW = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
INSTANT = timedelta(milliseconds=1)
HOUR = timedelta(hours=1)
_booking_numbers = count()


def minutes_from_now(minutes: float) -> datetime:
    """Return the time this many minutes after `NOW`."""
    return NOW + timedelta(minutes=minutes)


def build_slot(capacity: int = 1, **fields: object) -> Slot:
    """Return a published, empty slot that starts one day after `NOW`."""
    slot = Slot(
        id=SlotId("s"),
        title="Yoga",
        start=NOW + timedelta(days=1),
        end=NOW + timedelta(days=1, hours=1),
        time_zone="Europe/Berlin",
        capacity=capacity,
        booked_count=0,
        location=None,
        kind=SlotKind.COURSE,
        status=SlotStatus.PUBLISHED,
        version=1,
        changed_at=NOW,
    )
    return replace(slot, **fields)  # type: ignore[arg-type]


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
        organizer is not None,
    )


def booking_command(
    booking: Booking, name: str = "ada", role: Role = Role.MEMBER
) -> BookingCommand:
    """Return a command of this user on a booking."""
    return BookingCommand(booking.id, build_caller(name, role))


def book_place(slot: Slot, request: BookingRequest, now: datetime = NOW) -> tuple[Slot, Booking]:
    """Return the slot after this request was granted, and the new booking."""
    after, outcome = decide(book, slot, request, now)
    assert isinstance(outcome, Booked)
    assert outcome.slot == after
    return after, outcome.booking


def book_users(slot: Slot, *names: str) -> tuple[Slot, list[Booking]]:
    """Return the slot after these users booked one after the other, and their bookings."""
    bookings = []
    for name in names:
        slot, booking = book_place(slot, booking_request(name))
        bookings.append(booking)
    return slot, bookings


def with_waitlist(slot: Slot, *names: str) -> Slot:
    """Return the slot with these users at the end of its waitlist, all entries loaded."""
    entries = tuple(
        WaitlistEntry(
            WaitlistEntryId(f"w-{name}"),
            slot.id,
            UserId(name),
            NOW,
            groups=slot.groups_of(UserId(name)),
        )
        for name in names
    )
    waitlist = (*slot.waitlist, *entries)
    return replace(
        slot, waitlist=waitlist, loaded_waitlist=len(waitlist), waitlist_length=len(waitlist)
    )


def with_choice_group(slot: Slot, name: str, *bookings: Booking) -> Slot:
    """Return the slot in a choice group in which this user has these other bookings."""
    other_bookings = tuple(
        OtherBooking(booking, "week", None, slot.all_meetings) for booking in bookings
    )
    context = UserContext(UserId(name), (), len(bookings), other_bookings)
    return replace(
        slot, choice_group="week", user_contexts={**slot.user_contexts, context.user_id: context}
    )
