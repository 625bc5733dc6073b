"""Dates, times and weekdays as spreadsheets and users write them, and the meetings they mean."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum, auto

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import Period, find_times
from slotlock.domain.schedule.timetables import Timetable, Weekday, WeeklyMeeting, to_meetings
from slotlock.domain.schedule.zones import (
    FIRST_YEAR,
    LAST_YEAR,
    find_zone,
    to_local_time,
    to_wall_clock,
)
from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slot_files.columns import COLUMN_OF_FIELD
from slotlock.domain.slot_files.problems import SlotFileProblem

# English, German, French, Spanish.
_WEEKDAY_WORDS = (
    "mon monday mondays mo montag montags lun lundi lunes",
    "tue tues tuesday tuesdays tu di dienstag dienstags mar mardi martes",
    "wed wednesday wednesdays we mi mittwoch mittwochs mer mercredi mie miercoles",
    "thu thur thurs thursday thursdays th do donnerstag donnerstags jeu jeudi jue jueves",
    "fri friday fridays fr freitag freitags ven vendredi vie viernes",
    "sat saturday saturdays sa samstag samstags sonnabend sam samedi sab sabado",
    "sun sunday sundays su so sonntag sonntags dim dimanche dom domingo",
)
_WEEKDAYS = {
    word: Weekday(number) for number, words in enumerate(_WEEKDAY_WORDS) for word in words.split()
} | {
    f"{week}{day}": Weekday(number)
    for week in ("周", "週", "星期", "礼拜", "禮拜")
    for number, days in enumerate(("一", "二", "三", "四", "五", "六", "日天"))
    for day in days
}
SEPARATORS = re.compile("[;\r\n\u2028\u3001\uff1b]")
_WEEKLY_SEPARATORS = re.compile("[;,\r\n\u2028\u3001\uff0c\uff1b]")
_DATE_SEPARATORS = re.compile("[;,\\s\u3001\uff0c\uff1b]+")
_CLOCK = r"\d{1,2}(?:[:.h]\d{2})?(?::\d{2})?\s*(?:am|pm)?"
_WEEKLY = re.compile(
    rf"([^\W\d]+)\.?\s*(?:({_CLOCK})\s*(?:[-\u2013\u2014~]|bis|to|a|至|到)\s*({_CLOCK})\s*(?:uhr)?)?"
)
_DAY_AND_REST = re.compile(
    rf"({'|'.join(sorted(_WEEKDAYS, key=len, reverse=True))})(?![a-z])\.?\s*(.+)"
)
_TIME = re.compile(r"(\d{1,2})(?:[:.h](\d{2}))?(?::\d{2})?\s*(am|pm)?(?:\s*uhr)?")
# 12:00 is 0.5 in Excel; with two digits, it is a time in German.
_FRACTION = re.compile(r"0?[.,](\d|\d{3,})")
# Blanks inside of a date, and the midnight with which workbooks write one.
_IN_DATES = re.compile(r"(?<=[.年月])\s+(?=\d)|\s+(?=[年月日])|[tT ]00:00(?::00)?")
_YEAR_FIRST = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?")
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})")
_UNKNOWN_ORDER = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})")
_SERIAL = re.compile(r"\d{5}(?:[.,]0+)?")
_FIRST_SERIAL = date(1899, 12, 30)


class DateOrder(Enum):
    """What comes first in the dates of a file, such as 3/9/2026."""

    DAY_FIRST = auto()
    MONTH_FIRST = auto()
    UNKNOWN = auto()


def find_date_order(cells: Iterable[str]) -> DateOrder:
    """Return what the dates of a file have in common: a part over 12 is a day."""
    texts = (fold(text) for cell in cells for text in split_dates(cell))
    found = list(filter(None, map(_UNKNOWN_ORDER.match, texts)))
    is_day_first, is_month_first = (any(int(each[part]) > 12 for each in found) for part in (1, 2))
    if is_day_first is is_month_first:
        return DateOrder.UNKNOWN
    return DateOrder.DAY_FIRST if is_day_first else DateOrder.MONTH_FIRST


def split_dates(cell: str) -> list[str]:
    """Return the dates of a cell with several."""
    return list(filter(None, _DATE_SEPARATORS.split(_IN_DATES.sub("", cell))))


def read_date(text: str, order: DateOrder) -> date | Problem:
    """Return the date that a text names."""
    text = _IN_DATES.sub("", strip_blanks(fold(text)))
    if match := _YEAR_FIRST.fullmatch(text):
        year, month, day = map(int, match.groups())
    elif match := _DAY_FIRST.fullmatch(text):
        day, month, year = map(int, match.groups())
    elif match := _UNKNOWN_ORDER.fullmatch(text):
        day, month, year = map(int, match.groups())
        if order is DateOrder.UNKNOWN and day != month:
            return SlotFileProblem.AMBIGUOUS_DATE.problem()
        if order is DateOrder.MONTH_FIRST:
            day, month = month, day
    elif _SERIAL.fullmatch(text):
        return _FIRST_SERIAL + timedelta(int(text[:5]))
    else:
        return SlotFileProblem.INVALID_DATE.problem()
    try:
        return date(year + 2000 if year < 100 else year, month, day)
    except ValueError:
        return SlotFileProblem.INVALID_DATE.problem()


def read_dates(cell: str, order: DateOrder) -> tuple[date, ...] | Problem:
    """Return the dates of a cell, in order and each once."""
    days = set[date]()
    for text in split_dates(cell):
        day = read_date(text, order)
        if isinstance(day, Problem):
            return day
        days.add(day)
    return tuple(sorted(days))


def read_time(text: str) -> time | Problem:
    """Return the time of day that a text names; 24:00 is midnight."""
    text = strip_blanks(fold(text))
    if _FRACTION.fullmatch(text):
        minutes = round(float(text.replace(",", ".")) * 24 * 60)
        return time(minutes // 60 % 24, minutes % 60)
    match = _TIME.fullmatch(text)
    if match is None:
        return SlotFileProblem.INVALID_TIME.problem()
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3]
    if half and not 1 <= hour <= 12:
        return SlotFileProblem.INVALID_TIME.problem()
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 24 or minute > 59 or (hour == 24 and minute):
        return SlotFileProblem.INVALID_TIME.problem()
    return time(hour % 24, minute)


@value_object
class WeeklyCell:
    """A weekday, with times unless they are those of other columns."""

    weekday: Weekday
    start: time | None = None
    end: time | None = None


def read_weekly(cell: str, periods: Sequence[Period] = ()) -> tuple[WeeklyCell, ...] | Problem:
    """Return the weekdays of a cell such as `Mon 13:30-15:00; Wed 3` or `周一第5节、周三`.

    What is both a period and a time, as `Mon 9-10`, is a period.
    """
    found = set[WeeklyCell]()
    for part in filter(None, map(strip_blanks, _WEEKLY_SEPARATORS.split(cell))):
        text = fold(part)
        named = None if ":" in text else _DAY_AND_REST.fullmatch(text)
        if named and (times := find_times(named[2], _WEEKDAYS[named[1]], periods)):
            found.add(WeeklyCell(_WEEKDAYS[named[1]], *times))
            continue
        match = _WEEKLY.fullmatch(text)
        if named and match is None:
            return SlotFileProblem.UNKNOWN_PERIOD.problem()
        weekday = _WEEKDAYS.get(match[1]) if match else None
        if match is None or weekday is None:
            return SlotFileProblem.INVALID_WEEKLY.problem()
        if match[2] is None:
            found.add(WeeklyCell(weekday))
            continue
        start, end = read_time(match[2]), read_time(match[3])
        if isinstance(start, Problem) or isinstance(end, Problem):
            return SlotFileProblem.INVALID_WEEKLY.problem()
        found.add(WeeklyCell(weekday, start, end))
    return tuple(sorted(found, key=lambda each: (each.weekday.value, each.start or time.min)))


# The times of a period on each weekday from Monday, on which it may not exist; none without one.
PeriodCell = tuple[tuple[time, time] | None, ...]


def read_period(cell: str, periods: Sequence[Period]) -> PeriodCell | Problem:
    """Return when the period of a cell such as `3` or `3-4` is on each weekday."""
    text = strip_blanks(cell)
    times = tuple(find_times(text, weekday, periods) for weekday in Weekday) if text else ()
    return times if any(times) or not text else SlotFileProblem.UNKNOWN_PERIOD.problem()


def read_meetings(cell: str) -> tuple[Meeting, ...] | Problem:
    """Return the meetings of a cell, each as an interval (ISO 8601) with offsets."""
    meetings = []
    for text in filter(None, map(strip_blanks, SEPARATORS.split(cell))):
        start, _, end = text.partition("/")
        try:
            ends = [datetime.fromisoformat(each) for each in (start, end)]
            if not all(each.tzinfo for each in ends):
                return SlotFileProblem.INVALID_MEETINGS.problem()
            meetings.append(Meeting(*(each.astimezone(UTC) for each in ends)))
        except (ValueError, OverflowError):
            return SlotFileProblem.INVALID_MEETINGS.problem()
    return tuple(meetings)


@value_object
class TimeCells:
    """The times of a course as a row has them; `meetings` replaces all others."""

    time_zone: str
    first_day: date | None = None
    last_day: date | None = None
    weekly: tuple[WeeklyCell, ...] = ()
    start_time: time | None = None
    end_time: time | None = None
    except_days: tuple[date, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    period: PeriodCell = ()

    @property
    def has_days(self) -> bool:
        """Whether a cell besides `meetings` has times."""
        days = (self.first_day, self.last_day, self.weekly, self.except_days, self.period)
        return any(each not in (None, ()) for each in (*days, self.start_time, self.end_time))

    def to_timetable(self) -> Timetable | FieldProblem:
        """Return the timetable of which these are the cells."""
        if self.meetings:
            if self.has_days:
                return SlotFileProblem.TIMES_TWICE.of("meetings")
            return timetable_of(self.meetings, self.time_zone)
        first, last = self.first_day, self.last_day or self.first_day
        if first is None or last is None:
            return SlotFileProblem.TIMES_MISSING.of("first_day")
        if not self.weekly and first != last:
            return SlotFileProblem.WEEKDAYS_MISSING.of("weekly")
        days = self.weekly or (WeeklyCell(Weekday(first.weekday())),)
        weekly = self._weekly_meetings(days)
        if isinstance(weekly, FieldProblem):
            return weekly
        if (self.period or self.start_time or self.end_time) and all(each.start for each in days):
            return SlotFileProblem.TIMES_TWICE.of("period" if self.period else "start_time")
        return Timetable(first, last, weekly, self.except_days)

    def _weekly_meetings(
        self, days: Sequence[WeeklyCell]
    ) -> tuple[WeeklyMeeting, ...] | FieldProblem:
        if self.period and (self.start_time or self.end_time):
            return SlotFileProblem.TIMES_TWICE.of("period")
        weekly = []
        for each in days:
            times = self.period[each.weekday.value] if self.period and not each.start else None
            if self.period and not each.start and times is None:
                return SlotFileProblem.UNKNOWN_PERIOD.of("period")
            start, end = times or (each.start or self.start_time, each.end or self.end_time)
            if start is None or end is None:
                column = "end_time" if start else "start_time"
                return SlotFileProblem.TIMES_MISSING.of(column)
            weekly.append(WeeklyMeeting(each.weekday, start, end))
        return tuple(weekly)

    def to_meetings(self) -> tuple[Meeting, ...] | FieldProblem:
        """Return the meetings of the course, in order, or the first problem."""
        timetable = self.to_timetable()
        if isinstance(timetable, FieldProblem):
            return timetable
        made = to_meetings(timetable, self.time_zone)
        if not isinstance(made, InvalidInput):
            return made
        problem = made.problems[0]
        column = COLUMN_OF_FIELD.get(problem.field, problem.field)
        if column == "weekly" and not self.weekly:
            column = "meetings" if self.meetings else "start_time"
        return FieldProblem(column, problem.message)


def timetable_of(meetings: Sequence[Meeting], time_zone: str) -> Timetable:
    """Return the timetable that has exactly these meetings."""
    day = to_local_time(meetings[0].start, time_zone).date()
    return Timetable(day, day, extra=tuple(meetings))


def time_cells(meetings: Sequence[Meeting], time_zone: str) -> TimeCells:
    """Return the cells of meetings: as weekdays if these give exactly the same meetings."""
    return _weekly_cells(meetings, time_zone) or TimeCells(time_zone, meetings=tuple(meetings))


def _weekly_cells(meetings: Sequence[Meeting], time_zone: str) -> TimeCells | None:
    zone = find_zone(time_zone)
    years = meetings[0].start.year, meetings[-1].end.year
    if zone is None or not FIRST_YEAR < years[0] <= years[1] < LAST_YEAR:
        return None
    spans = [(to_wall_clock(each.start, zone), to_wall_clock(each.end, zone)) for each in meetings]
    if any(each.second or each.microsecond for span in spans for each in span):
        return None
    times = {(start.time(), end.time()) for start, end in spans}
    days = {(start.weekday(), start.time(), end.time()) for start, end in spans}
    first, last = spans[0][0].date(), spans[-1][0].date()
    is_alike = len(times) == 1
    weekly = tuple(
        WeeklyCell(Weekday(day)) if is_alike else WeeklyCell(Weekday(day), start, end)
        for day, start, end in sorted(days)
    )
    start, end = spans[0]
    cells = TimeCells(
        time_zone,
        first,
        None if first == last else last,
        () if first == last and len(days) == 1 else weekly,
        start.time() if is_alike else None,
        end.time() if is_alike else None,
    )
    regular = cells.to_meetings()
    if isinstance(regular, FieldProblem):
        return None
    skipped = {to_wall_clock(each.start, zone).date() for each in regular}
    skipped -= {start.date() for start, _ in spans}
    if skipped:
        if 2 * len(skipped) > len(spans):
            return None
        cells = replace(cells, except_days=tuple(sorted(skipped)))
        regular = cells.to_meetings()
    return cells if regular == tuple(meetings) else None


_SHOWN_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def write_times(cells: TimeCells) -> dict[str, str]:
    """Return the texts of the cells by their columns."""

    def write_weekly(each: WeeklyCell) -> str:
        day = _SHOWN_WEEKDAYS[each.weekday.value]
        return f"{day} {each.start:%H:%M}-{each.end:%H:%M}" if each.start else day

    def write_meeting(meeting: Meeting) -> str:
        ends = (meeting.start, meeting.end)
        return "/".join(to_local_time(at, cells.time_zone).isoformat() for at in ends)

    return {
        "first_day": "" if cells.first_day is None else cells.first_day.isoformat(),
        "last_day": "" if cells.last_day is None else cells.last_day.isoformat(),
        "weekly": "; ".join(map(write_weekly, cells.weekly)),
        "start_time": "" if cells.start_time is None else f"{cells.start_time:%H:%M}",
        "end_time": "" if cells.end_time is None else f"{cells.end_time:%H:%M}",
        "period": "",  # the times above say it, also after a change of the periods
        "except": "; ".join(day.isoformat() for day in cells.except_days),
        "meetings": "; ".join(map(write_meeting, cells.meetings)),
        "time_zone": cells.time_zone,
    }
