"""The weekly rule of the days of a course, as calendars repeat an event (RFC 5545, 3.3.10)."""

from collections.abc import Sequence
from datetime import date, timedelta
from math import gcd

from slotlock.domain.shared.value_object import value_object


@value_object
class WeeklyRule:
    """The given weekdays of every `weeks`th week, `count` days of which some are skipped."""

    weeks: int
    weekdays: tuple[int, ...]
    count: int
    skipped: tuple[date, ...]


def weekly_rule(days: Sequence[date]) -> WeeklyRule:
    """Return the rule that yields these days, in order, which are all different."""
    first, last = days[0], days[-1]
    monday = first - timedelta(first.weekday())
    numbers = [(day - monday).days // 7 for day in days]
    weeks = gcd(*numbers) or 1
    weekdays = sorted({day.weekday() for day in days})
    ruled = [
        day
        for week in range(0, numbers[-1] + 1, weeks)
        for weekday in weekdays
        if first <= (day := monday + timedelta(weeks=week, days=weekday)) <= last
    ]
    skipped = sorted({*ruled} - {*days})
    return WeeklyRule(weeks, tuple(weekdays), len(ruled), tuple(skipped))
