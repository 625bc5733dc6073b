"""Timetables: the weekly meetings of a course in a range of dates."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from enum import Enum
from itertools import islice
from zoneinfo import ZoneInfo

from slotlock.domain.schedule.meetings import MAX_MEETINGS, Meeting, validate_meetings
from slotlock.domain.schedule.zones import (
    UNKNOWN_ZONE,
    find_zone,
    to_instant,
    to_wall_clock,
    validate_year,
)
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object

MAX_WEEKLY_MEETINGS = 50
MAX_RANGE = timedelta(days=2 * 366)
_DAY = timedelta(days=1)


class Weekday(Enum):
    """The days of the week, numbered as in `date.weekday`."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


@value_object
class WeeklyMeeting:
    """A weekly meeting in local time. If `end` is before `start`, it ends on the next day."""

    weekday: Weekday
    start: time
    end: time


@value_object
class Timetable:
    """The meetings of a course from `first` to `last`, both included.

    Weekly meetings that start on one of the `holidays` do not take place. `extra` are additional
    meetings on any date.
    """

    first: date
    last: date
    weekly: tuple[WeeklyMeeting, ...] = ()
    holidays: tuple[date, ...] = ()
    extra: tuple[Meeting, ...] = ()


def to_meetings(timetable: Timetable, time_zone: str) -> tuple[Meeting, ...] | InvalidInput:
    """Return the meetings of the timetable sorted by start, or its problems.

    Start and end have the same local time on both sides of a clock change, so a night class can be
    an hour longer or shorter once. `to_instant` defines skipped and repeated times; a meeting whose
    start is skipped has its usual duration.
    """
    zone = find_zone(time_zone)
    problems = _timetable_problems(timetable)
    if zone is None:
        return InvalidInput((*problems, UNKNOWN_ZONE))
    if problems:
        return InvalidInput(problems)
    weekly = islice(_weekly_meetings(timetable, zone), MAX_MEETINGS + 1)
    meetings = sorted((*weekly, *timetable.extra), key=lambda meeting: meeting.start)
    if problem := validate_meetings(meetings, zone):
        return InvalidInput((FieldProblem("weekly", problem),))
    return tuple(meetings)


def _weekly_meetings(timetable: Timetable, zone: ZoneInfo) -> Iterator[Meeting]:
    holidays = frozenset(timetable.holidays)
    for days in range((timetable.last - timetable.first).days + 1):
        day = timetable.first + days * _DAY
        if day in holidays:
            continue
        for weekly in timetable.weekly:
            if weekly.weekday.value == day.weekday():
                yield _meeting_on(weekly, day, zone)


def _meeting_on(weekly: WeeklyMeeting, day: date, zone: ZoneInfo) -> Meeting:
    last_day = day + _DAY if weekly.end < weekly.start else day
    local_start = datetime.combine(day, weekly.start)
    local_end = datetime.combine(last_day, weekly.end)
    start = to_instant(local_start, zone)
    if to_wall_clock(start, zone) != local_start:
        # The start is skipped: the actual start may be later than the end as scheduled.
        return Meeting(start, start + (local_end - local_start))
    return Meeting(start, to_instant(local_end, zone))


def _timetable_problems(timetable: Timetable) -> tuple[FieldProblem, ...]:
    problems = {
        "first": validate_year(timetable.first),
        "last": validate_year(timetable.last) or _validate_range(timetable),
        "weekly": _validate_weekly(timetable.weekly),
        "extra": _validate_extra(timetable.extra),
    }
    return FieldProblem.all_of(problems)


def _validate_range(timetable: Timetable) -> Problem | None:
    if timetable.last < timetable.first:
        return ProblemCode.LAST_BEFORE_FIRST.problem()
    if timetable.last - timetable.first > MAX_RANGE:
        return ProblemCode.RANGE_TOO_LONG.problem()
    return None


def _validate_weekly(weekly: tuple[WeeklyMeeting, ...]) -> Problem | None:
    if len(weekly) > MAX_WEEKLY_MEETINGS:
        return ProblemCode.TOO_MANY_WEEKLY.problem(maximum=MAX_WEEKLY_MEETINGS)
    if any(meeting.start == meeting.end for meeting in weekly):
        return ProblemCode.WEEKLY_WITHOUT_TIME.problem()
    return None


def _validate_extra(extra: tuple[Meeting, ...]) -> Problem | None:
    if any(meeting.end <= meeting.start for meeting in extra):
        return ProblemCode.EXTRA_REVERSED.problem()
    return None
