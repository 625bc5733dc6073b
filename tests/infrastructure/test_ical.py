"""A course is one event of calendars, whose rule and exceptions yield its meetings exactly."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from icalendar import Calendar

from slotlock.domain.booking.slot import Slot
from slotlock.domain.reports.calendar_events import (
    CalendarEvent,
    EventStatus,
    events_of_booking,
    removed_events,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.infrastructure.ical import render_calendar, render_invitation
from tests.support.domain.builders import NOW, book_users, build_slot

HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)
BERLIN = "Europe/Berlin"
MONDAY = datetime(2030, 9, 2, 16, tzinfo=ZoneInfo(BERLIN))
OLGA, ADA = ("Olga", "olga@school.test"), ("Ada", "ada@school.test")


def meeting(day: datetime, hours: float = 1) -> Meeting:
    """Return the meeting that begins at this local time."""
    start = day.astimezone(UTC)
    return Meeting(start, start + hours * HOUR)


def events_of(meetings: Sequence[Meeting], zone: str = BERLIN) -> tuple[Slot, list[CalendarEvent]]:
    """Return a course with these meetings, and the events of a booking."""
    ordered = tuple(sorted(meetings, key=lambda each: each.start))
    facts = {"start": ordered[0].start, "end": ordered[-1].end, "time_zone": zone}
    state, [booking] = book_users(build_slot(2, meetings=ordered, **facts), "ada")
    return state.slot, list(events_of_booking(state.slot, booking, NOW))


def instances(components: Sequence[Any]) -> list[Meeting]:
    """Return the meetings of an event as a calendar program finds them."""
    main, *others = components
    start, length = main["DTSTART"].dt, main["DTEND"].dt - main["DTSTART"].dt
    starts = [start]
    if "RRULE" in main:
        rule = rrulestr(main["RRULE"].to_ical().decode(), dtstart=start.replace(tzinfo=None))
        skipped = {each.dt for each in main["EXDATE"].dts} if "EXDATE" in main else set()
        starts = [day for each in rule if (day := each.replace(tzinfo=start.tzinfo)) not in skipped]
    # A duration is one of the clock on the wall.
    found = {each: meeting_of(each, each + length) for each in starts}
    for other in others:
        found[other["RECURRENCE-ID"].dt] = meeting_of(other["DTSTART"].dt, other["DTEND"].dt)
    return sorted(found.values(), key=lambda each: each.start)


def meeting_of(start: datetime, end: datetime) -> Meeting:
    """Return a meeting in UTC."""
    return Meeting(start.astimezone(UTC), end.astimezone(UTC))


async def read(events: Sequence[CalendarEvent]) -> dict[str, list[Any]]:
    """Return the components of a feed by their UID."""
    by_uid: dict[str, list[Any]] = {}
    for each in Calendar.from_ical(await render_calendar("Ada", events)).walk("VEVENT"):
        by_uid.setdefault(str(each["UID"]), []).append(each)
    return by_uid


async def test_a_weekly_course_without_holidays_is_a_rule_and_its_exceptions() -> None:
    weeks = [week for week in range(10) if week not in (5, 6)]
    meetings = [meeting(MONDAY + week * WEEK) for week in weeks]  # summer time ends meanwhile
    _, [event] = events_of(meetings)
    [[main]] = (await read([event])).values()
    assert main["RRULE"].to_ical() == b"FREQ=WEEKLY;COUNT=10;INTERVAL=1;BYDAY=MO"
    assert [each.dt for each in main["EXDATE"].dts] == [MONDAY + 5 * WEEK, MONDAY + 6 * WEEK]
    assert instances([main]) == meetings


async def test_a_meeting_at_another_time_is_an_instance_of_the_same_event() -> None:
    late = meeting(MONDAY + 2 * WEEK + 2 * HOUR, 2)
    meetings = [meeting(MONDAY), meeting(MONDAY + WEEK), late, meeting(MONDAY + 3 * WEEK + DAY)]
    _, [event] = events_of(meetings)
    [components] = (await read([event])).values()
    assert len(components) == 2
    assert "RRULE" not in components[1]
    assert instances(components) == meetings


@pytest.mark.parametrize("zone", [BERLIN, "Pacific/Auckland", "UTC"])
async def test_any_course_is_its_meetings_in_calendars_and_no_day_of_an_event_has_two(
    zone: str,
) -> None:
    for seed in range(25):
        rng = random.Random(seed)
        days = sorted(rng.sample(range(200), rng.randint(1, 12)))
        times = [rng.choice((9, 9, 9, 14.5)) + rng.choice((0, 0, 6)) for _ in days]
        start = datetime(2031, 1, 6, tzinfo=ZoneInfo(zone))
        meetings = [
            meeting(start + day * DAY + at * HOUR, rng.choice((1, 1, 1.5)))
            for day, at in zip(days, times, strict=True)
        ]
        meetings += [meeting(start + day * DAY + 23 * HOUR) for day in days if rng.random() < 0.2]
        _, events = events_of(meetings, zone)
        by_uid = await read(events)
        assert len(by_uid) == len(events) <= 2
        found = [each for of_event in by_uid.values() for each in instances(of_event)]
        assert sorted(found, key=lambda each: each.start) == sorted(
            meetings, key=lambda each: each.start
        )
        for of_event in by_uid.values():
            local = [each.start.astimezone(ZoneInfo(zone)).date() for each in instances(of_event)]
            assert len(set(local)) == len(local)


async def test_a_meeting_in_the_hour_that_comes_twice_is_at_its_instant() -> None:
    zone = ZoneInfo(BERLIN)
    early = datetime(2030, 10, 20, 2, 30, tzinfo=zone)
    second = datetime(2030, 10, 27, 2, 30, fold=1, tzinfo=zone)
    meetings = [meeting(early - WEEK), meeting(early), meeting(second)]
    _, [event] = events_of(meetings)
    [components] = (await read([event])).values()
    assert instances(components) == meetings


async def test_a_course_of_decades_has_an_event_for_each_meeting() -> None:
    meetings = [meeting(MONDAY + 400 * n * WEEK + n * DAY) for n in range(3)]
    _, events = events_of(meetings)
    assert [event.meetings for event in events] == [(each,) for each in meetings]


async def test_an_invitation_has_one_uid_and_a_cancellation_of_a_course_one_component() -> None:
    meetings = [meeting(MONDAY), meeting(MONDAY + WEEK), meeting(MONDAY + 2 * WEEK + HOUR)]
    _, [event] = events_of(meetings)
    now = NOW + HOUR
    cancelled = replace(event, status=EventStatus.CANCELLED, sequence=3)
    counts = []
    for method, each in (("REQUEST", event), ("CANCEL", cancelled)):
        text = await render_invitation(method, each, OLGA, ADA, now)
        calendar = Calendar.from_ical(text)
        components: list[Any] = list(calendar.walk("VEVENT"))
        assert calendar["METHOD"] == method
        for component in components:
            assert component["UID"] == event.uid
            assert component["SEQUENCE"] == each.sequence
            assert component["DTSTAMP"].dt == now
            assert component["ORGANIZER"] == "mailto:olga@school.test"
            assert component["ATTENDEE"] == "mailto:ada@school.test"
        counts.append(len(components))
        assert "RECURRENCE-ID" not in components[0]
    assert counts == [2, 1]


@pytest.mark.parametrize("name", ["Ada\\", 'Ada"\\', "\\", "Ada;CN=Eve:mailto:eve@evil.test\\"])
async def test_a_name_changes_no_other_part_of_an_invitation(name: str) -> None:
    _, [event] = events_of([meeting(MONDAY)])
    text = await render_invitation("REQUEST", event, OLGA, (name, ADA[1]), NOW)
    [found] = Calendar.from_ical(text).walk("VEVENT")
    attendee: Any = found["ATTENDEE"]
    assert attendee == "mailto:ada@school.test"
    assert attendee.params["CN"].strip() == name
    assert attendee.params["PARTSTAT"] == "ACCEPTED"


def test_an_edit_removes_the_event_that_the_course_has_no_more() -> None:
    twice = [meeting(MONDAY), meeting(MONDAY + 3 * HOUR), meeting(MONDAY + WEEK)]
    before, events = events_of(twice)
    after = replace(before, meetings=(twice[0], twice[2]), revision=1)
    _, [booking] = book_users(build_slot(2), "ada")
    [first, gone] = events_of_booking(before, booking, NOW)
    [removed] = removed_events(before, after, booking, NOW)
    assert (removed.uid, removed.status) == (gone.uid, EventStatus.CANCELLED)
    assert first.uid != gone.uid
    assert len(events) == 2
