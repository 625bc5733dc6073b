"""Calendar events as iCalendar text (RFC 5545).

Times are local times in the zone of the slot, which programs keep if its law changes.
Times without an unambiguous local form (repeated hours, years out of range) are in UTC. Programs
ask again and again, so the text of each event is cached.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from icalendar import (
    Calendar,
    Event,
    Timezone,
    TimezoneDaylight,
    TimezoneStandard,
    vCalAddress,
    vDDDTypes,
    vRecur,
    vText,
)

from slotlock import __version__
from slotlock.domain.reports.calendar_events import CalendarEvent, EventStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.weekly_rule import weekly_rule
from slotlock.domain.schedule.zone_transitions import UtcOffsetChange, clock_changes, yearly_rule
from slotlock.domain.schedule.zones import (
    FIRST_YEAR,
    LAST_YEAR,
    find_zone,
    to_instant,
    to_local_time,
    to_wall_clock,
)

REFRESH_INTERVAL = timedelta(minutes=30)
# Rendering this many events takes some milliseconds; then other tasks run.
EVENTS_PER_YIELD = 20
CALENDAR_END = b"END:VCALENDAR\r\n"
SECOND = timedelta(seconds=1)
LAST_SECOND = datetime.max.replace(microsecond=0, tzinfo=UTC)
# In fewer years the last Sunday of a month could look like the fourth.
MIN_YEARS = 10
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


async def render_calendar(name: str, events: Sequence[CalendarEvent]) -> bytes:
    """Return the text of a calendar with this name."""
    event_texts = []
    for number, event in enumerate(events):
        event_texts.append(_render_event(event))
        if number % EVENTS_PER_YIELD == 0:
            await asyncio.sleep(0)
    header = await _render_header(name, events)
    return header.removesuffix(CALENDAR_END) + b"".join(event_texts) + CALENDAR_END


async def _render_header(
    name: str | None, events: Sequence[CalendarEvent], method: str | None = None
) -> bytes:
    years_by_zone: dict[str, set[int]] = {}
    for event in events:
        for meeting in event.meetings:
            if times := _local_times(meeting, event.time_zone):
                years = years_by_zone.setdefault(event.time_zone, set())
                years.update(time.year for time in times)
    zones = [(zone, min(years), max(years)) for zone, years in sorted(years_by_zone.items())]
    for zone in zones:
        await asyncio.sleep(0)  # a zone that is not cached takes some milliseconds
        build_vtimezone(*zone)
    return _render_calendar_properties(name, method, tuple(zones))


@lru_cache(maxsize=100)
def _render_calendar_properties(
    name: str | None, method: str | None, zones: tuple[tuple[str, int, int], ...]
) -> bytes:
    """Return a calendar without events; a zone has a name, the first year and the last."""
    calendar = Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", f"-//slotlock//slotlock {__version__}//EN")
    calendar.add("CALSCALE", "GREGORIAN")
    if method is not None:
        calendar.add("METHOD", method)
    if name is not None:
        for property_ in ("NAME", "X-WR-CALNAME"):
            # The library does not know these properties; vText escapes the value.
            calendar.add(property_, vText(name))
        calendar.add("REFRESH-INTERVAL", REFRESH_INTERVAL, parameters={"VALUE": "DURATION"})
        calendar.add("X-PUBLISHED-TTL", f"PT{int(REFRESH_INTERVAL.total_seconds()) // 60}M")
    for zone in zones:
        if vtimezone := build_vtimezone(*zone):
            calendar.add_component(vtimezone)
    return bytes(calendar.to_ical())


async def render_invitation(
    method: str,
    event: CalendarEvent,
    organizer: tuple[str, str],
    attendee: tuple[str, str],
    now: datetime,
) -> bytes:
    """Return a calendar that adds an event to that of the attendee, or removes it (RFC 5546).

    The method is REQUEST or CANCEL. Organizer and attendee are a name and an address.
    """
    header = await _render_header(None, [event], method)
    roles = {"organizer": organizer, "attendee": attendee}
    texts = []
    # A CANCEL without instances is one of all of them.
    for component in _to_components(event)[: 1 if method == "CANCEL" else None]:
        # With a METHOD it is the time of the message (RFC 5545, 3.8.7.2).
        component["DTSTAMP"] = vDDDTypes(now.astimezone(UTC).replace(microsecond=0))
        for role, (name, address) in roles.items():
            value = vCalAddress(f"mailto:{address}")
            if name:
                # Some programs read a backslash at the end as one that escapes what follows.
                value.params["CN"] = f"{name} " if name.endswith("\\") else name
            if role == "attendee":
                value.params["PARTSTAT"] = "ACCEPTED"
                value.params["RSVP"] = "FALSE"
            component.add(role, value)
        texts.append(bytes(component.to_ical()))
    return header.removesuffix(CALENDAR_END) + b"".join(texts) + CALENDAR_END


@lru_cache(maxsize=20_000)
def _render_event(event: CalendarEvent) -> bytes:
    return b"".join(bytes(each.to_ical()) for each in _to_components(event))


def _to_components(event: CalendarEvent) -> list[Event]:
    """Return an event, and its instances that are not at the time which its rule gives them."""
    times = [
        _local_times(meeting, event.time_zone) or _whole_seconds(meeting)
        for meeting in event.meetings
    ]
    if len(times) == 1:
        return [_to_component(event, *times[0])]
    days = [to_local_time(each.start, event.time_zone).date() for each in event.meetings]
    # The rule gives most instances their time. It is local unless all of them are in UTC.
    local_times = [each for each in times if each[0].tzinfo is None]
    usual = Counter((start.timetz(), end - start) for start, end in local_times or times)
    [((time, duration), _)] = usual.most_common(1)

    def ruled(day: date) -> tuple[datetime, datetime]:
        start = datetime.combine(day, time)
        return start, start + duration

    rule = weekly_rule(days)
    main = _to_component(event, *ruled(days[0]))
    by_day = [WEEKDAYS[weekday] for weekday in rule.weekdays]
    frequency = {"FREQ": "WEEKLY", "INTERVAL": rule.weeks, "COUNT": rule.count, "BYDAY": by_day}
    main.add("RRULE", vRecur(frequency))
    parameters = {"TZID": event.time_zone} if time.tzinfo is None else {}
    if rule.skipped:
        skipped = [ruled(day)[0] for day in rule.skipped]
        main.add("EXDATE", skipped, parameters=parameters)
    components = [main]
    for day, instance_times in zip(days, times, strict=True):
        if instance_times != ruled(day):
            instance = _to_component(event, *instance_times)
            instance.add("RECURRENCE-ID", ruled(day)[0], parameters=parameters)
            components.append(instance)
    return components


def _to_component(event: CalendarEvent, start: datetime, end: datetime) -> Event:
    component = Event()
    component.add("UID", event.uid)
    # Without a METHOD both properties are the time of the last change (RFC 5545, 3.8.7.2).
    component.add("DTSTAMP", event.revised_at.replace(microsecond=0))
    component.add("LAST-MODIFIED", event.revised_at.replace(microsecond=0))
    component.add("SEQUENCE", event.sequence)
    component.add("STATUS", event.status.value)
    # Google Calendar and others ignore the status. A feed does not know who reads it, so the title
    # says it in the word of iCalendar.
    is_cancelled = event.status is EventStatus.CANCELLED
    component.add("SUMMARY", f"CANCELLED: {event.title}" if is_cancelled else event.title)
    if place := event.location or event.link:
        component.add("LOCATION", place)
    if event.link:
        component.add("URL", event.link)
    if event.description:
        component.add("DESCRIPTION", event.description)
    parameters = {"TZID": event.time_zone} if start.tzinfo is None else {}
    for name, time in (("DTSTART", start), ("DTEND", end)):
        component.add(name, time, parameters=parameters)
    is_free = not event.busy or is_cancelled
    component.add("TRANSP", "TRANSPARENT" if is_free else "OPAQUE")
    return component


@lru_cache(maxsize=4096)  # all who are in a course get its times
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


@lru_cache(maxsize=1_000)
def build_vtimezone(name: str, first_year: int, last_year: int) -> Timezone | None:
    """Return a zone with all changes of its offset in these years; None for an unknown name.

    RFC 5545, 3.6.5, demands the onset of summer time in the old local time. icalendar's own
    `add_missing_timezones` (7.3) writes it in the new local time, which is an hour late.
    """
    zone = find_zone(name)
    if zone is None:
        return None
    component = Timezone()
    component.add("TZID", name)
    last_year = max(last_year, first_year + MIN_YEARS)
    first, *changes = clock_changes(zone, first_year - 1, last_year)
    component.add_component(_observance([first], last_year))
    similar_changes: dict[object, list[UtcOffsetChange]] = defaultdict(list)
    for change in changes:
        key = (change.offset_before, change.offset_after, change.abbreviation)
        similar_changes[key].append(change)
    for group in similar_changes.values():
        component.add_component(_observance(group, last_year))
    return component


def _observance(
    changes: list[UtcOffsetChange], last_year: int
) -> TimezoneDaylight | TimezoneStandard:
    first, *others = changes
    is_forward = first.offset_after > first.offset_before
    component = TimezoneDaylight() if is_forward else TimezoneStandard()
    component.add("DTSTART", first.wall_time)
    component.add("TZOFFSETFROM", first.offset_before)
    component.add("TZOFFSETTO", first.offset_after)
    component.add("TZNAME", first.abbreviation)
    rule = yearly_rule(changes, last_year) if others else None
    if rule is not None:  # Outlook understands a rule, but no single dates
        day = f"{rule.week}{WEEKDAYS[rule.weekday]}"
        component.add("RRULE", vRecur({"FREQ": "YEARLY", "BYMONTH": rule.month, "BYDAY": day}))
    elif others:
        component.add("RDATE", [change.wall_time for change in others])
    return component
