"""Recurrence: the occurrences of a rule, by the wall clock of a zone, never without end."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from dateutil import rrule

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence_rules import (
    MAX_OCCURRENCES,
    RecurrenceRule,
    WeekdayRule,
    parse_rule,
)
from slotlock.domain.schedule.zones import (
    UNKNOWN_ZONE,
    find_zone,
    to_instant,
    to_wall_clock,
    validate_year,
)
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

MAX_SPAN = timedelta(days=5 * 366)
MAX_MEETING_DURATION = timedelta(days=366)
_FREQUENCIES: dict[str, Any] = {
    "YEARLY": rrule.YEARLY,
    "MONTHLY": rrule.MONTHLY,
    "WEEKLY": rrule.WEEKLY,
    "DAILY": rrule.DAILY,
}


def occurrences(
    first: Meeting, rule_text: str, time_zone: str, holidays: Collection[date] = ()
) -> tuple[Meeting, ...] | InvalidInput:
    """Each meeting of a series in order, or what is wrong with what was filled in.

    The rule speaks of wall-clock times in the zone, which `instant_of` turns into instants; each
    occurrence lasts exactly as long as `first`. Two that a clock change puts on one instant are
    one, though both count. Occurrences may overlap.

    `first` is an occurrence if the rule matches its start, and then the first of COUNT. If not, it
    only says from when on, at what time of the day and how long (the RFC leaves that open; so do
    dateutil and rrule.js). UNTIL is included, and a date means all of its day in the zone. What
    would begin on one of the `holidays` does not take place, but COUNT counts it (EXDATE).
    """
    zone = find_zone(time_zone)
    rule = parse_rule(rule_text)
    found = {
        "startTime": validate_year(first.start),
        "endTime": _validate_duration(first),
        "rrule": rule if isinstance(rule, str) else None,
        "timeZone": None if zone else UNKNOWN_ZONE.message,
    }
    if zone is None or isinstance(rule, str) or any(found.values()):
        return _to_invalid_input(found)
    starts = _occurrence_starts(rule, first.start, zone)
    if isinstance(starts, str):
        return _to_invalid_input({"rrule": starts})
    off = frozenset(holidays)
    left = sorted({start for shown, start in starts if shown.date() not in off})
    if not left:
        return _to_invalid_input({"holidays": "They leave nothing of the series."})
    lasting = first.end - first.start
    return tuple(Meeting(start, start + lasting) for start in left)


def _validate_duration(meeting: Meeting) -> str | None:
    if meeting.end <= meeting.start:
        return "The end must be after the start."
    return (
        "At most a year after the start."
        if meeting.end - meeting.start > MAX_MEETING_DURATION
        else None
    )


def _to_invalid_input(found: dict[str, str | None]) -> InvalidInput:
    return InvalidInput(tuple(FieldProblem(name, text) for name, text in found.items() if text))


def _occurrence_starts(
    rule: RecurrenceRule, start: datetime, zone: ZoneInfo
) -> list[tuple[datetime, datetime]] | str:
    """What the clock shows and when that is, for each start; or what is wrong."""
    until = None if rule.until is None else _last_instant(rule.until, zone)
    if until is not None and until < start:
        return "UNTIL is before the start."
    if until is not None and until > start + MAX_SPAN:
        return "UNTIL is more than five years after the start."
    most = rule.count or MAX_OCCURRENCES + 1
    begins = to_wall_clock(start, zone)
    # The first may be the second of two times that look alike, which no rule can say.
    every = (
        (shown, start if shown == begins else to_instant(shown, zone))
        for shown in _matching_wall_times(rule, begins)
    )
    wanted = ((s, at) for s, at in every if start <= at and (until is None or at <= until))
    starts = list(islice(wanted, most))
    if not starts:
        return "The rule matches no time within five years of the start."
    if len(starts) > MAX_OCCURRENCES:
        return f"At most {MAX_OCCURRENCES} occurrences."
    if rule.count and len(starts) < rule.count:
        return f"Only {len(starts)} of {rule.count} come within five years of the start."
    return starts


def _last_instant(until: date | datetime, zone: ZoneInfo) -> datetime:
    if not isinstance(until, datetime):
        return to_instant(datetime.combine(until, time.max), zone)
    return until if until.tzinfo else to_instant(until, zone)


def _matching_wall_times(rule: RecurrenceRule, start: datetime) -> Iterator[datetime]:
    """The wall-clock times that match, from the start on, for five years."""
    # BYSETPOS counts in the whole first week; the library begins with the start (its issue 1398).
    back = (start.weekday() - rule.week_start) % 7 if rule.frequency == "WEEKLY" else 0
    drift = _year_shift(start.year)
    fraction = timedelta(microseconds=start.microsecond)
    lists: dict[str, Any] = {name.lower(): numbers for name, numbers in rule.by_parts.items()}
    dates = rrule.rrule(
        _FREQUENCIES[rule.frequency],
        dtstart=start - timedelta(days=back) + drift,
        until=start + MAX_SPAN + drift,
        interval=rule.interval,
        wkst=rule.week_start,
        byweekday=_to_library_weekdays(rule, start),
        **lists,
    )
    shown = (each - drift + fraction for each in _until_last_year(dates))
    return (each for each in shown if each >= start)


def _until_last_year(dates: Iterable[datetime]) -> Iterator[datetime]:
    # A week that begins in the year 9999 may go on in 10000, which no date can say (issue 980).
    with suppress(ValueError):
        yield from dates


def _year_shift(year: int) -> timedelta:
    """How far to move the years from this one on to where the library cannot search for long.

    Nothing but the year 9999 stops it when a rule matches no date (issue 1393), and from now that
    takes seconds. The calendar repeats every 28 years from 1901 to 2099, and every 400.
    """
    latest = 9999 - (MAX_SPAN.days // 365 + 1)
    alike = latest - (latest - (year + 8000)) % 28
    return date(alike, 1, 1) - date(year, 1, 1)


def _to_library_weekdays(rule: RecurrenceRule, start: datetime) -> list[Any] | None:
    """BYDAY for the library, which takes MO,1TU as the days that are both."""
    days = rule.weekdays
    if not days and rule.frequency == "WEEKLY":
        days = (WeekdayRule(start.weekday()),)
    if any(day.nth for day in days):
        most = 53 if rule.frequency == "YEARLY" and "BYMONTH" not in rule.by_parts else 5
        every = range(1, most + 1)
        days = tuple(
            WeekdayRule(d.weekday, n) for d in days for n in ((d.nth,) if d.nth else every)
        )
    return [rrule.weekday(day.weekday, day.nth) for day in days] or None
