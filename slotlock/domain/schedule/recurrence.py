"""The occurrences of a recurrence rule in the local time of a zone, bounded in number and time."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Literal
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
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

MAX_SPAN = timedelta(days=5 * 366)
MAX_MEETING_DURATION = timedelta(days=366)
_FREQUENCIES: Mapping[str, Literal[0, 1, 2, 3]] = {
    "YEARLY": rrule.YEARLY,
    "MONTHLY": rrule.MONTHLY,
    "WEEKLY": rrule.WEEKLY,
    "DAILY": rrule.DAILY,
}


def occurrences(
    first: Meeting, rule_text: str, time_zone: str, holidays: Collection[date] = ()
) -> tuple[Meeting, ...] | InvalidInput:
    """Return the meetings of a series sorted by start, or the problems of the input.

    The rule matches local times in the zone, which `to_instant` converts. Each occurrence has the
    duration of `first`. Two occurrences that a clock change puts on one instant are one meeting,
    but both count. Occurrences may overlap.

    If the rule matches the start of `first`, `first` is the first occurrence and counts in COUNT.
    Otherwise it only gives the earliest start, the time of day and the duration. The RFC leaves
    this open, and dateutil and rrule.js do the same. UNTIL is inclusive; as a date it includes the
    whole day in the zone. Occurrences on `holidays` count in COUNT but do not take place (EXDATE).
    """
    zone = find_zone(time_zone)
    rule = parse_rule(rule_text)
    problems = {
        "startTime": validate_year(first.start),
        "endTime": _validate_duration(first),
        "rrule": ProblemCode.INVALID_RULE.problem(detail=rule.rstrip("."))
        if isinstance(rule, str)
        else None,
        "timeZone": None if zone else UNKNOWN_ZONE.message,
    }
    if zone is None or isinstance(rule, str) or any(problems.values()):
        return InvalidInput(FieldProblem.all_of(problems))
    found = _occurrence_starts(rule, first.start, zone)
    if isinstance(found, Problem):
        return InvalidInput((FieldProblem("rrule", found),))
    excluded = frozenset(holidays)
    starts = sorted({start for local_time, start in found if local_time.date() not in excluded})
    if not starts:
        problem = ProblemCode.ALL_ARE_HOLIDAYS.problem()
        return InvalidInput((FieldProblem("holidays", problem),))
    duration = first.end - first.start
    return tuple(Meeting(start, start + duration) for start in starts)


def _validate_duration(meeting: Meeting) -> Problem | None:
    if meeting.end <= meeting.start:
        return ProblemCode.END_BEFORE_START.problem()
    if meeting.end - meeting.start > MAX_MEETING_DURATION:
        return ProblemCode.MEETING_TOO_LONG.problem()
    return None


def _occurrence_starts(
    rule: RecurrenceRule, start: datetime, zone: ZoneInfo
) -> list[tuple[datetime, datetime]] | Problem:
    """Return the local time and the instant of each start, or the problem with the rule."""
    until = None if rule.until is None else _last_instant(rule.until, zone)
    if until is not None and until < start:
        return ProblemCode.UNTIL_BEFORE_START.problem()
    if until is not None and until > start + MAX_SPAN:
        return ProblemCode.UNTIL_TOO_LATE.problem()
    max_starts = rule.count or MAX_OCCURRENCES + 1
    local_start = to_wall_clock(start, zone)
    # `start` may be the second of two equal local times, which `to_instant` never returns.
    matches = (
        (local_time, start if local_time == local_start else to_instant(local_time, zone))
        for local_time in _matching_wall_times(rule, local_start)
    )
    in_range = (
        (local_time, instant)
        for local_time, instant in matches
        if start <= instant and (until is None or instant <= until)
    )
    starts = list(islice(in_range, max_starts))
    if not starts:
        return ProblemCode.RULE_WITHOUT_TIMES.problem()
    if len(starts) > MAX_OCCURRENCES:
        return ProblemCode.RULE_TOO_MANY.problem(maximum=MAX_OCCURRENCES)
    if rule.count and len(starts) < rule.count:
        return ProblemCode.RULE_TOO_FEW.problem(found=len(starts), wanted=rule.count)
    return starts


def _last_instant(until: date | datetime, zone: ZoneInfo) -> datetime:
    if not isinstance(until, datetime):
        return to_instant(datetime.combine(until, time.max), zone)
    return until if until.tzinfo else to_instant(until, zone)


def _matching_wall_times(rule: RecurrenceRule, start: datetime) -> Iterator[datetime]:
    """Yield the matching local times from the start on, for five years."""
    # BYSETPOS counts from the start of the first week, but dateutil from `dtstart` (issue 1398).
    days_into_week = (start.weekday() - rule.week_start) % 7 if rule.frequency == "WEEKLY" else 0
    shift = _year_shift(start.year)
    fraction = timedelta(microseconds=start.microsecond)
    dates = rrule.rrule(
        _FREQUENCIES[rule.frequency],
        dtstart=start - timedelta(days=days_into_week) + shift,
        until=start + MAX_SPAN + shift,
        interval=rule.interval,
        wkst=rule.week_start,
        byweekday=_to_library_weekdays(rule, start),
        bymonth=rule.by_parts.get("BYMONTH"),
        bymonthday=rule.by_parts.get("BYMONTHDAY"),
        byyearday=rule.by_parts.get("BYYEARDAY"),
        byhour=rule.by_parts.get("BYHOUR"),
        byminute=rule.by_parts.get("BYMINUTE"),
        bysetpos=rule.by_parts.get("BYSETPOS"),
    )
    local_times = (day - shift + fraction for day in _until_last_year(dates))
    return (local_time for local_time in local_times if local_time >= start)


def _until_last_year(dates: Iterable[datetime]) -> Iterator[datetime]:
    # dateutil raises for a week that starts in the year 9999 and ends in 10000 (issue 980).
    with suppress(ValueError):
        yield from dates


def _year_shift(year: int) -> timedelta:
    """Return how far to move a year towards 9999, to one with the same calendar.

    dateutil searches until the year 9999 if a rule matches no date (issue 1393), which takes
    seconds from today. The calendar repeats every 28 years from 1901 to 2099, and every 400 years.
    """
    last_year = 9999 - (MAX_SPAN.days // 365 + 1)
    same_calendar = last_year - (last_year - (year + 8000)) % 28
    return date(same_calendar, 1, 1) - date(year, 1, 1)


def _to_library_weekdays(rule: RecurrenceRule, start: datetime) -> list[rrule.weekday] | None:
    """Return BYDAY for dateutil, which would require days of MO,1TU to match both."""
    days = rule.weekdays
    if not days and rule.frequency == "WEEKLY":
        days = (WeekdayRule(start.weekday()),)
    if any(day.nth for day in days):
        all_ordinals = range(1, rule.max_weekday_ordinal + 1)
        days = tuple(
            WeekdayRule(day.weekday, nth)
            for day in days
            for nth in ((day.nth,) if day.nth else all_ordinals)
        )
    return [rrule.weekday(day.weekday, day.nth) for day in days] or None
