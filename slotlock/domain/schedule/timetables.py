"""Timetables: the weekly pattern of a course over a range of dates, and its meetings."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

MAX_WEEKLY_MEETINGS = 50
MAX_RANGE = timedelta(days=2 * 366)
_DAY = timedelta(days=1)


class Weekday(Enum):
    """As `date.weekday` counts them."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


@dataclass(frozen=True, slots=True)
class WeeklyMeeting:
    """A meeting of every week, by the wall clock. One that ends before its start ends next day."""

    weekday: Weekday
    start: time
    end: time


@dataclass(frozen=True, slots=True)
class Timetable:
    """Which meetings a course has from `first` to `last`, both included.

    A weekly meeting that begins on one of the `holidays` does not take place. `extra` are single
    meetings besides, on any date.
    """

    first: date
    last: date
    weekly: tuple[WeeklyMeeting, ...] = ()
    holidays: tuple[date, ...] = ()
    extra: tuple[Meeting, ...] = ()


def to_meetings(timetable: Timetable, time_zone: str) -> tuple[Meeting, ...] | InvalidInput:
    """The meetings of the timetable in order, or what is wrong with it.

    Start and end keep their wall-clock times across clock changes, so that a night class can be an
    hour longer or shorter once. Skipped and repeated times are read as `instant_of` says; a meeting
    whose start is skipped is as long as ever.
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
    for ahead in range((timetable.last - timetable.first).days + 1):
        day = timetable.first + ahead * _DAY
        if day in holidays:
            continue
        for weekly in timetable.weekly:
            if weekly.weekday.value == day.weekday():
                yield _meeting_on(weekly, day, zone)


def _meeting_on(weekly: WeeklyMeeting, day: date, zone: ZoneInfo) -> Meeting:
    last_day = day + _DAY if weekly.end < weekly.start else day
    begins, ends = datetime.combine(day, weekly.start), datetime.combine(last_day, weekly.end)
    start = to_instant(begins, zone)
    if to_wall_clock(start, zone) != begins:  # it may begin when it would have ended
        return Meeting(start, start + (ends - begins))
    return Meeting(start, to_instant(ends, zone))


def _timetable_problems(timetable: Timetable) -> tuple[FieldProblem, ...]:
    found = {
        "first": validate_year(timetable.first),
        "last": validate_year(timetable.last) or _validate_range(timetable),
        "weekly": _validate_weekly(timetable.weekly),
        "extra": _validate_extra(timetable.extra),
    }
    return tuple(FieldProblem(field, message) for field, message in found.items() if message)


def _validate_range(timetable: Timetable) -> str | None:
    if timetable.last < timetable.first:
        return "The last date must not be before the first."
    if timetable.last - timetable.first > MAX_RANGE:
        return "At most two years after the first date."
    return None


def _validate_weekly(weekly: tuple[WeeklyMeeting, ...]) -> str | None:
    if len(weekly) > MAX_WEEKLY_MEETINGS:
        return f"At most {MAX_WEEKLY_MEETINGS} meetings a week."
    if any(each.start == each.end for each in weekly):
        return "The end must differ from the start."
    return None


def _validate_extra(extra: tuple[Meeting, ...]) -> str | None:
    if any(meeting.end <= meeting.start for meeting in extra):
        return "A meeting must end after its start."
    return None
