"""Events as iCalendar text, each written once and remembered, since programs ask again and again.

Times are what the clock shows in the slot's zone, so that programs move them if its law changes;
those that this cannot say (the second of two that look alike, years far away) are in UTC.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.metadata import version

from icalendar import Calendar, vText
from icalendar import Event as Component

from slotlock.api.calendars.vtimezone import build_vtimezone
from slotlock.domain.reports.calendar_events import CalendarEvent
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zones import (
    FIRST_YEAR,
    LAST_YEAR,
    find_zone,
    to_instant,
    to_wall_clock,
)

REFRESH_INTERVAL = timedelta(minutes=30)
# So many are written before others get their turn: some milliseconds.
EVENTS_PER_YIELD = 20
CALENDAR_END = b"END:VCALENDAR\r\n"
SECOND = timedelta(seconds=1)
LAST_SECOND = datetime.max.replace(microsecond=0, tzinfo=UTC)


async def render_calendar(name: str, events: Sequence[CalendarEvent]) -> bytes:
    """The calendar of this name."""
    texts = []
    for number, event in enumerate(events):
        texts.append(_render_event(event))
        if number % EVENTS_PER_YIELD == 0:
            await asyncio.sleep(0)
    head = await _render_header(name, events)
    return head.removesuffix(CALENDAR_END) + b"".join(texts) + CALENDAR_END


async def _render_header(name: str, events: Sequence[CalendarEvent]) -> bytes:
    calendar = Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", f"-//slotlock//slotlock {version('slotlock')}//EN")
    calendar.add("CALSCALE", "GREGORIAN")
    for property_ in ("NAME", "X-WR-CALNAME"):
        calendar.add(property_, vText(name))  # which escapes; the library does not know these
    calendar.add("REFRESH-INTERVAL", REFRESH_INTERVAL, parameters={"VALUE": "DURATION"})
    calendar.add("X-PUBLISHED-TTL", f"PT{int(REFRESH_INTERVAL.total_seconds()) // 60}M")
    years: dict[str, set[int]] = {}
    for event in events:
        if shown := _local_times(event.meeting, event.time_zone):
            years.setdefault(event.time_zone, set()).update(time.year for time in shown)
    for zone, shown_in in sorted(years.items()):
        await asyncio.sleep(0)  # a zone that nobody has asked for yet takes some milliseconds, too
        if made := build_vtimezone(zone, min(shown_in), max(shown_in)):
            calendar.add_component(made)
    return bytes(calendar.to_ical())


@lru_cache(maxsize=20_000)
def _render_event(event: CalendarEvent) -> bytes:
    made = Component()
    made.add("UID", event.uid)
    # Without a METHOD both say when what is shown was changed last (RFC 5545, 3.8.7.2).
    made.add("DTSTAMP", event.revised_at.replace(microsecond=0))
    made.add("LAST-MODIFIED", event.revised_at.replace(microsecond=0))
    made.add("SEQUENCE", event.sequence)
    made.add("STATUS", event.status.value)
    made.add("SUMMARY", event.title)
    if event.location:
        made.add("LOCATION", event.location)
    shown = _local_times(event.meeting, event.time_zone)
    for name, time in zip(
        ("DTSTART", "DTEND"), shown or _whole_seconds(event.meeting), strict=True
    ):
        made.add(name, time, parameters={"TZID": event.time_zone} if shown else {})
    free = not event.busy or event.status.value == "CANCELLED"
    made.add("TRANSP", "TRANSPARENT" if free else "OPAQUE")
    return bytes(made.to_ical())


def _local_times(meeting: Meeting, time_zone: str) -> tuple[datetime, datetime] | None:
    """Start and end by the clock of the zone, where that says which instants they are."""
    zone, whole = find_zone(time_zone), _whole_seconds(meeting)
    years_known = whole[0].year > FIRST_YEAR and whole[1].year < LAST_YEAR
    if zone is None or not years_known or time_zone == "UTC":
        return None
    start, end = (to_wall_clock(time, zone) for time in whole)
    return (start, end) if whole == (to_instant(start, zone), to_instant(end, zone)) else None


def _whole_seconds(meeting: Meeting) -> tuple[datetime, datetime]:
    """Start and end to the second, as iCalendar knows them; the end is after the start."""
    start, end = (t.astimezone(UTC).replace(microsecond=0) for t in (meeting.start, meeting.end))
    start = min(start, LAST_SECOND - SECOND)
    return start, max(end, start + SECOND)
