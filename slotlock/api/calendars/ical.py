"""Calendar events as iCalendar text (RFC 5545).

Times are local times in the zone of the slot, so that programs adjust them if its law changes.
Times without an unambiguous local form (repeated hours, years out of range) are in UTC. Programs
ask again and again, so the text of each event is cached.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from icalendar import Calendar, Event, vText

from slotlock import __version__
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
# Rendering this many events takes some milliseconds; then other tasks run.
EVENTS_PER_YIELD = 20
CALENDAR_END = b"END:VCALENDAR\r\n"
SECOND = timedelta(seconds=1)
LAST_SECOND = datetime.max.replace(microsecond=0, tzinfo=UTC)


async def render_calendar(name: str, events: Sequence[CalendarEvent]) -> bytes:
    """Return the text of a calendar with this name."""
    event_texts = []
    for number, event in enumerate(events):
        event_texts.append(_render_event(event))
        if number % EVENTS_PER_YIELD == 0:
            await asyncio.sleep(0)
    header = await _render_header(name, events)
    return header.removesuffix(CALENDAR_END) + b"".join(event_texts) + CALENDAR_END


async def _render_header(name: str, events: Sequence[CalendarEvent]) -> bytes:
    calendar = Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", f"-//slotlock//slotlock {__version__}//EN")
    calendar.add("CALSCALE", "GREGORIAN")
    for property_ in ("NAME", "X-WR-CALNAME"):
        # The library does not know these properties; vText escapes the value.
        calendar.add(property_, vText(name))
    calendar.add("REFRESH-INTERVAL", REFRESH_INTERVAL, parameters={"VALUE": "DURATION"})
    calendar.add("X-PUBLISHED-TTL", f"PT{int(REFRESH_INTERVAL.total_seconds()) // 60}M")
    years_by_zone: dict[str, set[int]] = {}
    for event in events:
        if times := _local_times(event.meeting, event.time_zone):
            years = years_by_zone.setdefault(event.time_zone, set())
            years.update(time.year for time in times)
    for zone, years in sorted(years_by_zone.items()):
        await asyncio.sleep(0)  # a zone that is not cached takes some milliseconds
        if vtimezone := build_vtimezone(zone, min(years), max(years)):
            calendar.add_component(vtimezone)
    return bytes(calendar.to_ical())


@lru_cache(maxsize=20_000)
def _render_event(event: CalendarEvent) -> bytes:
    component = Event()
    component.add("UID", event.uid)
    # Without a METHOD both properties are the time of the last change (RFC 5545, 3.8.7.2).
    component.add("DTSTAMP", event.revised_at.replace(microsecond=0))
    component.add("LAST-MODIFIED", event.revised_at.replace(microsecond=0))
    component.add("SEQUENCE", event.sequence)
    component.add("STATUS", event.status.value)
    component.add("SUMMARY", event.title)
    if event.location:
        component.add("LOCATION", event.location)
    local_times = _local_times(event.meeting, event.time_zone)
    times = local_times or _whole_seconds(event.meeting)
    parameters = {"TZID": event.time_zone} if local_times else {}
    for name, time in zip(("DTSTART", "DTEND"), times, strict=True):
        component.add(name, time, parameters=parameters)
    is_free = not event.busy or event.status.value == "CANCELLED"
    component.add("TRANSP", "TRANSPARENT" if is_free else "OPAQUE")
    return bytes(component.to_ical())


def _local_times(meeting: Meeting, time_zone: str) -> tuple[datetime, datetime] | None:
    """Return start and end in the local time of the zone; None if that would be ambiguous."""
    zone, instants = find_zone(time_zone), _whole_seconds(meeting)
    in_range = instants[0].year > FIRST_YEAR and instants[1].year < LAST_YEAR
    if zone is None or not in_range or time_zone == "UTC":
        return None
    start, end = (to_wall_clock(instant, zone) for instant in instants)
    is_exact = instants == (to_instant(start, zone), to_instant(end, zone))
    return (start, end) if is_exact else None


def _whole_seconds(meeting: Meeting) -> tuple[datetime, datetime]:
    """Return start and end to the second, as iCalendar has no fractions; the end is later."""
    start, end = (t.astimezone(UTC).replace(microsecond=0) for t in (meeting.start, meeting.end))
    start = min(start, LAST_SECOND - SECOND)
    return start, max(end, start + SECOND)
