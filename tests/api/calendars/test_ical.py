"""Calendars as other programs read them: every instant, every zone, every text."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from zoneinfo import ZoneInfo, available_timezones

import pytest
from dateutil.tz import tzical
from icalendar import vText

from slotlock.api.calendars.ical import render_calendar
from slotlock.domain.reports.calendar_events import CalendarEvent, EventStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zone_transitions import clock_changes
from tests.support.clients.calendars import parse_calendar

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Sydney", "Pacific/Auckland",
         "Asia/Kolkata", "Europe/Dublin", "Australia/Lord_Howe", "America/Santiago",
         "Africa/Casablanca")  # fmt: skip
HOUR = timedelta(hours=1)


def event(start: datetime, zone: str = "Europe/Berlin", **fields: object) -> CalendarEvent:
    """An hour of something."""
    given: dict[str, object] = {
        "uid": f"{zone} {start.isoformat()}",
        "meeting": Meeting(start, start + HOUR),
        "time_zone": zone,
        "title": "Yoga",
        "location": None,
        "status": EventStatus.CONFIRMED,
        "sequence": 0,
        "revised_at": datetime(2026, 1, 1, tzinfo=UTC),
        "busy": True,
        **fields,
    }
    return CalendarEvent(**given)  # type: ignore[arg-type]


def around_changes(zone: str) -> list[CalendarEvent]:
    """Events in the hours before and after each change of the clocks in three years."""
    _, *changes = clock_changes(ZoneInfo(zone), 2027, 2029)
    at = [(c.wall_time - c.offset_before).replace(tzinfo=UTC) for c in changes]
    starts = {change + hours * HOUR / 2 for change in at for hours in range(-6, 7)}
    starts |= {datetime(2027, month, 15, 12, tzinfo=UTC) for month in range(1, 13)}
    return [event(start, zone) for start in sorted(starts)]


@pytest.mark.parametrize("zone", ZONES)
async def test_every_instant_is_right_by_the_zone_that_the_file_brings_along(zone: str) -> None:
    events = around_changes(zone)
    text = (await render_calendar("Calendar", events)).decode()
    # dateutil reads the zones of a file itself, and does not know their names. It has no RDATE.
    rules = [] if "RDATE" in text else tzical(StringIO(text)).keys()
    by_file = tzical(StringIO(text)).get(zone) if rules else None
    told = {str(e["UID"]): e for e in parse_calendar(text).events}
    assert [timezone["TZID"] for timezone in parse_calendar(text).timezones] == [zone]
    for each in events:
        for name, instant in (("DTSTART", each.meeting.start), ("DTEND", each.meeting.end)):
            shown = told[each.uid][name].dt
            assert shown.astimezone(UTC) == instant
            if by_file is not None and "TZID" in told[each.uid][name].params:
                again = shown.replace(tzinfo=by_file, fold=0).astimezone(UTC)
                assert again == instant, (each.uid, name)


@pytest.mark.parametrize("zone", ZONES)
async def test_icalendar_makes_the_same_zone_of_the_file_as_the_world_has(zone: str) -> None:
    text = await render_calendar("Calendar", around_changes(zone))
    (timezone,) = parse_calendar(text).timezones
    made = timezone.to_tz(lookup_tzid=False)
    for each in around_changes(zone):
        real = each.meeting.start.astimezone(ZoneInfo(zone))
        if (real + 2 * HOUR).utcoffset() == (real - 2 * HOUR).utcoffset():
            assert real.replace(tzinfo=made).utcoffset() == real.utcoffset()


async def test_the_second_of_two_times_that_look_alike_is_in_utc() -> None:
    second = datetime(2027, 10, 31, 1, 30, tzinfo=UTC)  # 02:30 in Berlin, once more
    for start in (second, second - HOUR):
        (told,) = parse_calendar(await render_calendar("C", [event(start)])).events
        assert told["DTSTART"].dt.astimezone(UTC) == start
        assert "TZID" not in told["DTSTART"].params


async def test_every_zone_there_is_can_be_written_and_read() -> None:
    start = datetime(2030, 7, 1, 12, tzinfo=UTC)
    zones = sorted(available_timezones())
    calendar = parse_calendar(await render_calendar("C", [event(start, zone) for zone in zones]))
    assert len(calendar.events) == len(zones)
    named = {e["DTSTART"].params.get("TZID") for e in calendar.events} - {None}
    assert named == {timezone["TZID"] for timezone in calendar.timezones} >= {"Asia/Kolkata"}


@pytest.mark.parametrize(
    "title",
    ["a,b;c\\d", "two\nlines", "\U0001f3ca" * 200, "ä" * 200, "x" * 200, '"quoted": yes',
     "END:VEVENT", "\\n", " begins and ends with blanks ", "a\u2028b\u0085c"],
)  # fmt: skip
async def test_every_text_comes_back_and_no_line_is_too_long(title: str) -> None:
    start = datetime(2030, 7, 1, 12, tzinfo=UTC)
    text = await render_calendar(title, [event(start, title=title, location=title)])
    lines = text.split(b"\r\n")
    assert all(len(line) <= 75 for line in lines)
    assert all(line.decode() is not None and b"\n" not in line for line in lines)
    calendar = parse_calendar(text)
    (told,) = calendar.events
    assert (told["SUMMARY"], told["LOCATION"]) == (title, title)
    # The library does not know that these are texts, and so reads them as they are written.
    for name in ("NAME", "X-WR-CALNAME"):
        assert calendar[name] == vText(title).to_ical().decode()


@pytest.mark.parametrize("year", [1, 1969, 1970, 2089, 2090, 9999])
@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "Nowhere/Atlantis"])
async def test_years_far_away_are_in_utc(year: int, zone: str) -> None:
    for start in (datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 22, 30, tzinfo=UTC)):
        (told,) = parse_calendar(await render_calendar("C", [event(start, zone)])).events
        assert told["DTSTART"].dt.astimezone(UTC) == start


async def test_what_begins_in_the_last_second_of_the_calendar_ends_after_its_start() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    meeting = Meeting(last - timedelta(milliseconds=500), last)
    text = await render_calendar("Calendar", [event(last - HOUR, meeting=meeting)])
    (told,) = parse_calendar(text.decode()).events
    assert told["DTSTART"].dt < told["DTEND"].dt == last.replace(microsecond=0)


async def test_a_calendar_says_what_it_is_and_when_to_come_again() -> None:
    calendar = parse_calendar(await render_calendar("Swimming", []))
    assert (calendar["VERSION"], calendar["CALSCALE"]) == ("2.0", "GREGORIAN")
    assert calendar["PRODID"].startswith("-//slotlock//")
    assert calendar["X-WR-CALNAME"] == "Swimming"
    assert calendar["REFRESH-INTERVAL"].dt == timedelta(minutes=30)
    assert calendar.events == []
