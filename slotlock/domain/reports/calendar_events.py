"""Calendar events: one for each booking of a user, or for each meeting of a published slot.

The uid of an event is the booking or slot and its number in it, so edits of the slot do not change
it. `sequence` grows with every change, so calendar programs take the newer version.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from enum import StrEnum

from slotlock.domain.booking.booking import Booking, BookingStatus, SlotId
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zones import FIRST_YEAR, LAST_YEAR, to_local_time
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# How far back a calendar of published slots goes.
PUBLISHED_SHOWN = timedelta(days=30)
# How long a user's calendar shows a cancelled booking.
CANCELLED_SHOWN = timedelta(days=30)
# How far back a user's calendar goes.
HISTORY_SHOWN = timedelta(days=366)
MAX_EVENTS = 2_000
# A longer course could have more skipped days than meetings by far.
MAX_RULE_SPAN = timedelta(days=5 * 366)


class EventStatus(StrEnum):
    """The status of an event (RFC 5545, 3.8.1.11)."""

    TENTATIVE = "TENTATIVE"
    CONFIRMED = "CONFIRMED"
    CANCELLED = "CANCELLED"


@value_object
class CalendarEvent:
    """One event in a calendar; `busy` if it blocks the time of the calendar's owner.

    Of several meetings, each is on another local day. `link` is the address of a meeting on the
    net, `description` a text of several lines.
    """

    uid: str
    slot_id: SlotId
    meetings: tuple[Meeting, ...]
    time_zone: str
    title: str
    location: str | None
    status: EventStatus
    sequence: int
    revised_at: datetime
    busy: bool
    link: str | None = None
    description: str = ""

    def named_for(self, child: str) -> "CalendarEvent":
        """Return the event as a guardian sees it; with an empty name, it is the user's own."""
        return replace(self, title=f"{child}: {self.title}") if child else self


def events_of_user(state: SlotState, user_id: UserId, now: datetime) -> Iterator[CalendarEvent]:
    """Yield the events of a user's bookings in a slot, live and ended.

    Holds are tentative. Recently expired holds and cancelled bookings are cancelled events.
    """
    state = as_of(state, now)
    for booking in (*state.bookings, *state.change.ended):
        if booking.user_id == user_id:
            yield from events_of_booking(state.slot, booking, now)


def events_of_booking(slot: Slot, booking: Booking, now: datetime) -> Iterator[CalendarEvent]:
    """Yield the events of a booking, without those and cancellations that are too old."""
    if booking.ended_at is not None and booking.ended_at < now - CANCELLED_SHOWN:
        return
    if slot.cancellation is not None and booking.status.is_live:
        booking = booking.with_entry(slot.cancellation.to_history_entry())
    status = {
        BookingStatus.HELD: EventStatus.TENTATIVE,
        BookingStatus.CONFIRMED: EventStatus.CONFIRMED,
    }.get(booking.status, EventStatus.CANCELLED)
    changed_at = booking.history[-1].at
    for number, meetings in enumerate(_meetings_by_event(slot), 1):
        if meetings[-1].end < now - HISTORY_SHOWN:
            continue
        yield CalendarEvent(
            uid=f"{booking.id}-{number}@slotlock",
            slot_id=slot.id,
            meetings=meetings,
            time_zone=slot.time_zone,
            title=slot.numbered_title,
            location=slot.place,
            status=status,
            # Every change of the event increments one of the two, and neither ever decreases.
            sequence=slot.revision + len(booking.history) - 1,
            revised_at=max(changed_at, slot.revised_at or changed_at),
            busy=True,
            link=slot.meeting_url_for(booking),
        )


def events_of_slot(
    state: SlotState, now: datetime, *, has_link: bool = False
) -> Iterator[CalendarEvent]:
    """Yield the public events of a slot; with its link, they are for organizers only."""
    slot = state.slot
    cancelled = slot.status is SlotStatus.CANCELLED
    for number, meeting in enumerate(slot.all_meetings, 1):
        if meeting.end < now - PUBLISHED_SHOWN:
            continue
        yield CalendarEvent(
            uid=f"{slot.id}-{number}@slotlock",
            slot_id=slot.id,
            meetings=(meeting,),
            time_zone=slot.time_zone,
            title=slot.numbered_title,
            location=slot.place,
            status=EventStatus.CANCELLED if cancelled else EventStatus.CONFIRMED,
            sequence=slot.revision,
            revised_at=slot.revised_at or state.changed_at,
            busy=False,
            link=slot.meeting_url if has_link else None,
        )


def removed_events(
    before: Slot, slot: Slot, booking: Booking, now: datetime
) -> Iterator[CalendarEvent]:
    """Yield, as cancelled, the events that a booking had before an edit, and has no more."""
    uids = {event.uid for event in events_of_booking(slot, booking, now)}
    for event in events_of_booking(before, booking, now):
        if event.uid not in uids:
            yield replace(event, status=EventStatus.CANCELLED)


def _meetings_by_event(slot: Slot) -> list[tuple[Meeting, ...]]:
    """Return the meetings of a slot, those of an event together.

    Outlook knows no events with several meetings on a day: the first ones of each day are one
    event, the second ones another. Without a rule of bearable length, each meeting is an event.
    """
    meetings = slot.all_meetings
    first, last = meetings[0].start, meetings[-1].end
    if last - first > MAX_RULE_SPAN or not (first.year > FIRST_YEAR and last.year < LAST_YEAR):
        return [(meeting,) for meeting in meetings]
    counts = Counter[date]()
    by_event = defaultdict[int, list[Meeting]](list)
    for meeting in meetings:
        day = to_local_time(meeting.start, slot.time_zone).date()
        by_event[counts[day]].append(meeting)
        counts[day] += 1
    return [tuple(each) for each in by_event.values()]
