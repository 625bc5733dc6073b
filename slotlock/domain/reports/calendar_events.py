"""What calendars show: an event for each meeting, of one's bookings or of the slots themselves.

An event keeps its identity while its slot is edited: it is the first, second, ... meeting of its
booking or slot. `sequence` grows with everything that an event shows, so that programs that have
seen it take the newer one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.history import BookingStatus
from slotlock.domain.booking.promotion import as_of
from slotlock.domain.booking.slot import Slot, SlotStatus, cancellation_entry
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId

# How far back a published calendar goes, and how long one's own shows what was cancelled.
PUBLISHED_SHOWN = timedelta(days=30)
CANCELLED_SHOWN = timedelta(days=30)
# How far back one's own bookings are shown.
HISTORY_SHOWN = timedelta(days=366)
MAX_EVENTS = 2_000


class EventStatus(StrEnum):
    """RFC 5545, 3.8.1.11."""

    TENTATIVE = "TENTATIVE"
    CONFIRMED = "CONFIRMED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """One meeting in a calendar; `busy` when it takes the time of whose calendar it is."""

    uid: str
    meeting: Meeting
    time_zone: str
    title: str
    location: str | None
    status: EventStatus
    sequence: int
    revised_at: datetime
    busy: bool


def events_of_user(slot: Slot, user_id: UserId, now: datetime) -> Iterator[CalendarEvent]:
    """What a person's calendar shows of a slot in which they have a live booking.

    A hold is tentative, one that ran out lately is cancelled.
    """
    slot = as_of(slot, now)
    for booking in (*slot.bookings, *slot.ended_bookings):
        if booking.user_id == user_id:
            yield from events_of_booking(slot, booking, now)


def events_of_booking(slot: Slot, booking: Booking, now: datetime) -> Iterator[CalendarEvent]:
    """The meetings of a booking, those long over left out."""
    if booking.ended_at is not None and booking.ended_at < now - CANCELLED_SHOWN:
        return
    if slot.cancellation is not None and booking.status.is_live:
        booking = booking.with_entry(cancellation_entry(slot))
    status = {
        BookingStatus.HELD: EventStatus.TENTATIVE,
        BookingStatus.CONFIRMED: EventStatus.CONFIRMED,
    }.get(booking.status, EventStatus.CANCELLED)
    last = booking.history[-1].at
    for place, meeting in _numbered_meetings_since(slot, now - HISTORY_SHOWN):
        yield CalendarEvent(
            uid=f"{booking.id}-{place}@slotlock",
            meeting=meeting,
            time_zone=slot.time_zone,
            title=slot.title,
            location=slot.location,
            status=status,
            # Both only grow, and whatever an event shows is in one of them.
            sequence=slot.revision + len(booking.history) - 1,
            revised_at=max(last, slot.revised_at or last),
            busy=True,
        )


def events_of_slot(slot: Slot, now: datetime) -> Iterator[CalendarEvent]:
    """The meetings of a slot as everybody may see them."""
    cancelled = slot.status is SlotStatus.CANCELLED
    for place, meeting in _numbered_meetings_since(slot, now - PUBLISHED_SHOWN):
        yield CalendarEvent(
            uid=f"{slot.id}-{place}@slotlock",
            meeting=meeting,
            time_zone=slot.time_zone,
            title=slot.title,
            location=slot.location,
            status=EventStatus.CANCELLED if cancelled else EventStatus.CONFIRMED,
            sequence=slot.revision,
            revised_at=slot.revised_at or slot.changed_at,
            busy=False,
        )


def _numbered_meetings_since(slot: Slot, since: datetime) -> Iterator[tuple[int, Meeting]]:
    return ((n, meeting) for n, meeting in enumerate(slot.all_meetings, 1) if meeting.end >= since)
