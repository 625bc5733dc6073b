"""The periods of a school day, such as the third lesson: names of times that no slot stores.

Forms and files turn a name into times, and readers turn the times of a meeting back into a name.
So another list of periods moves no slot: times that are in no period stay times.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import time

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.declare import outcome, shown
from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import is_blank, normalize_line, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object

MAX_PERIODS = 100
MAX_NAME_LENGTH = 20
# Between the first and the last one of several periods.
TO = "\u2013"
_TO = re.compile(r"\s*(?:[-\u2013\u2014~]|bis|to|至|到)\s*")
# Words that files have around the name of one.
_AROUND = re.compile(
    r"(?:第|period|lesson|stunde|block)?\s*(.+?)\s*(?:[节節]课?|\.?\s*(?:stunde|std)?\.?)"
)


@value_object
class Period:
    """A lesson of these weekdays, or of every day, in local time; its times have no seconds."""

    name: str
    start: time
    end: time
    weekdays: tuple[Weekday, ...] = ()

    def __str__(self) -> str:
        """Return the period as the audit log shows it."""
        days = "/".join(each.name for each in self.weekdays)
        return f"{self.name} {self.start:%H:%M}-{self.end:%H:%M} {days}".rstrip()

    @property
    def days(self) -> frozenset[Weekday]:
        """The weekdays on which it takes place."""
        return frozenset(self.weekdays or Weekday)


@value_object
class NamedPeriods:
    """The periods in which a meeting is, from `first` to `last`, such as `3` or `3\u20134`."""

    weekday: Weekday
    first: Period
    last: Period

    @property
    def name(self) -> str:
        """The name of the period, or those of the first and the last one."""
        names = (self.first.name, self.last.name)
        return names[0] if self.first is self.last else TO.join(names)


@outcome
class PeriodsSaved:
    """The periods of a school day were saved. No slot has changed."""

    periods: tuple[Period, ...] = shown("All periods, by start.")
    unmatched_slot_count: int = shown(
        "How many slots have meetings to come that were in a period before, and are in none now. "
        "Their times are shown as such."
    )


SetPeriodsOutcome = PeriodsSaved | InvalidInput


def build_periods(periods: Sequence[Period]) -> tuple[Period, ...] | InvalidInput:
    """Return the periods by start, with names on one line and times in minutes, or a problem."""
    if len(periods) > MAX_PERIODS:
        return _invalid(ProblemCode.PERIOD_COUNT.problem(maximum=MAX_PERIODS))
    built = [
        Period(
            normalize_line(each.name),
            _to_minutes(each.start),
            _to_minutes(each.end),
            tuple(sorted(set(each.weekdays), key=lambda day: day.value)),
        )
        for each in periods
    ]
    taken = set[tuple[str, Weekday]]()
    for each in built:
        if problem := _problem_of(each, taken):
            return _invalid(problem.of(each.name) if each.name else problem)
        taken |= _keys(each)
    return tuple(sorted(built, key=lambda each: each.start))


def _invalid(problem: Problem) -> InvalidInput:
    return InvalidInput((FieldProblem("periods", problem),))


def _problem_of(period: Period, taken: set[tuple[str, Weekday]]) -> Problem | None:
    if is_blank(period.name):
        return ProblemCode.NAME_MISSING.problem()
    if problem := validate_line(period.name, MAX_NAME_LENGTH):
        return problem
    if period.end <= period.start:
        return ProblemCode.PERIOD_REVERSED.problem()
    return None if taken.isdisjoint(_keys(period)) else ProblemCode.PERIOD_TWICE.problem()


def _keys(period: Period) -> set[tuple[str, Weekday]]:
    return {(fold(period.name), day) for day in period.days}


def _to_minutes(at: time) -> time:
    return at.replace(second=0, microsecond=0)


def find_times(text: str, weekday: Weekday, periods: Sequence[Period]) -> tuple[time, time] | None:
    """Return the start and the end of the period that a text names on a weekday, if there is one.

    The text is the name as it is, the first and the last one of several, or 第3节 or 3. Stunde.
    """
    on_day = {fold(each.name): each for each in periods if weekday in each.days}
    for first, last in _possible_names(fold(text)):
        if first in on_day and last in on_day and on_day[first].start <= on_day[last].start:
            return on_day[first].start, on_day[last].end
    return None


def _possible_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield what the first and the last name in a text can be."""
    for each in (text, _without_words(text)):
        yield each, each
        for to in _TO.finditer(each):
            names = each[: to.start()], each[to.end() :]
            yield names
            yield _without_words(names[0]), _without_words(names[1])


def _without_words(text: str) -> str:
    match = _AROUND.fullmatch(text)
    return match[1] if match else text


def find_periods(
    meeting: Meeting, time_zone: str, periods: Sequence[Period]
) -> NamedPeriods | None:
    """Return the period in which a meeting is, or the first and the last one of several.

    It starts with the first one, and ends with the last one, in the zone of its slot.
    """
    start, end = (to_local_time(at, time_zone) for at in (meeting.start, meeting.end))
    if start.date() != end.date():
        return None
    weekday = Weekday(start.weekday())
    times = _to_minutes(start.time()), _to_minutes(end.time())
    on_day = [each for each in periods if weekday in each.days]
    pairs = (
        NamedPeriods(weekday, first, last)
        for first in on_day
        if first.start == times[0]
        for last in on_day
        if last.end == times[1] and (last is first or last.start >= first.end)
    )
    # Two schools can have a lesson at one time: the shorter names come first.
    return min(pairs, key=lambda each: each.first is not each.last, default=None)


def find_all_periods(
    meetings: Sequence[Meeting], time_zone: str, periods: Sequence[Period]
) -> tuple[NamedPeriods, ...]:
    """Return the periods in which some of the meetings are, by weekday and each once."""
    found = filter(None, (find_periods(each, time_zone, periods) for each in meetings))
    in_order = sorted(found, key=lambda each: (each.weekday.value, each.first.start))
    return tuple({(each.weekday, each.name): each for each in in_order}.values())


def loses_period(
    meetings: Sequence[Meeting],
    time_zone: str,
    before: Sequence[Period],
    after: Sequence[Period],
) -> bool:
    """Return whether some of the meetings were in a period before, and are in none after."""
    return any(
        find_periods(each, time_zone, before) and not find_periods(each, time_zone, after)
        for each in meetings
    )
