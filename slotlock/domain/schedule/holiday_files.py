"""Reads the holidays of an iCalendar file."""

from datetime import date, datetime, timedelta

from icalendar import Calendar, Event

from slotlock.domain.schedule.holidays import Holiday
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

MAX_ICS_LENGTH = 200_000
_DAY = timedelta(days=1)


def parse_ics(text: str) -> tuple[Holiday, ...] | InvalidInput:
    """Return the events of an iCalendar file as holidays, or the problem of the file.

    An event with times counts for all its days, in its own time zone.
    """
    if len(text) > MAX_ICS_LENGTH:
        return _invalid_ics(ProblemCode.FILE_TOO_LONG.problem(maximum=MAX_ICS_LENGTH))
    try:
        events = [each for each in Calendar.from_ical(text).walk() if isinstance(each, Event)]
        if any("RRULE" in event or "RDATE" in event for event in events):
            return _invalid_ics(ProblemCode.FILE_HAS_REPEATS.problem())
        return tuple(
            _to_holiday(event.start, event.end, str(event.get("SUMMARY", ""))) for event in events
        )
    # The library raises various errors for a malformed file.
    except Exception:
        return _invalid_ics(ProblemCode.INVALID_CALENDAR.problem())


def _to_holiday(start: date, end: date, name: str) -> Holiday:
    """Return the days of an event, whose end is exclusive."""
    if isinstance(end, datetime):
        end = (end - timedelta(microseconds=1)).date()
    else:
        end -= _DAY
    first = start.date() if isinstance(start, datetime) else start
    return Holiday(first, max(first, end), name)


def _invalid_ics(problem: Problem) -> InvalidInput:
    return InvalidInput((FieldProblem("ics", problem),))
