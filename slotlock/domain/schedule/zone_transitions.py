"""Changes of a zone's UTC offset, which a calendar file has to include (RFC 5545, 3.6.5)."""

from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from slotlock.domain.schedule.zones import to_wall_clock
from slotlock.domain.shared.value_object import value_object

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@value_object
class UtcOffsetChange:
    """A change of the UTC offset; `wall_time` is its local time with the old offset."""

    wall_time: datetime
    offset_before: timedelta
    offset_after: timedelta
    abbreviation: str


@value_object
class YearlyRule:
    """One day every year: the weekday (Monday is 0) of this week of the month; -1 is the last."""

    month: int
    week: int
    weekday: int


@lru_cache(maxsize=1_000)
def clock_changes(zone: ZoneInfo, first_year: int, last_year: int) -> tuple[UtcOffsetChange, ...]:
    """Return the changes in these years, both included; the first entry is the initial offset."""
    at = datetime(first_year, 1, 1, tzinfo=UTC)
    end = datetime(last_year + 1, 1, 1, tzinfo=UTC)
    offset = _utc_offset(at, zone)
    changes = [
        UtcOffsetChange(to_wall_clock(at, zone), offset, offset, _zone_abbreviation(at, zone))
    ]
    while at < end:
        if (new_offset := _utc_offset(at + _DAY, zone)) != offset:
            instant = _find_transition(at, at + _DAY, zone)
            # With the old offset, because the new one may skip this local time.
            wall_time = (instant + offset).replace(tzinfo=None)
            name = _zone_abbreviation(instant, zone)
            changes.append(UtcOffsetChange(wall_time, offset, new_offset, name))
            offset = new_offset
        at += _DAY
    return tuple(changes)


def yearly_rule(changes: Sequence[UtcOffsetChange], last_year: int) -> YearlyRule | None:
    """Return the rule for changes that come every year until `last_year`, or None if none fits."""
    first = changes[0].wall_time
    if [c.wall_time.year for c in changes] != list(range(first.year, last_year + 1)):
        return None
    for week in (-1, (first.day - 1) // 7 + 1):  # the fourth weekday of a month may be its last
        rule = YearlyRule(first.month, week, first.weekday())
        if all(c.wall_time.time() == first.time() and _matches(rule, c.wall_time) for c in changes):
            return rule
    return None


def _matches(rule: YearlyRule, day: datetime) -> bool:
    last_week = day.day + 7 > monthrange(day.year, day.month)[1]
    week = -1 if rule.week == -1 and last_week else (day.day - 1) // 7 + 1
    return (day.month, week, day.weekday()) == (rule.month, rule.week, rule.weekday)


def _find_transition(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first second with the new offset, by bisection."""
    old_offset = _utc_offset(before, zone)
    while after - before > _SECOND:
        middle = (before + (after - before) // 2).replace(microsecond=0)
        if _utc_offset(middle, zone) == old_offset:
            before = middle
        else:
            after = middle
    return after


def _utc_offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _zone_abbreviation(instant: datetime, zone: ZoneInfo) -> str:
    return instant.astimezone(zone).tzname() or zone.key
