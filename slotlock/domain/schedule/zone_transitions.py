"""When the clocks of a zone change: what a calendar that is sent elsewhere has to bring along."""

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from slotlock.domain.schedule.zones import to_wall_clock

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class UtcOffsetChange:
    """Clocks of the zone go from one offset to another; `shown` is the old clock's time of it."""

    wall_time: datetime
    offset_before: timedelta
    offset_after: timedelta
    abbreviation: str


@dataclass(frozen=True, slots=True)
class YearlyRule:
    """The same weekday of a month every year: the `week`th, or the last for -1."""

    month: int
    week: int
    weekday: int


@lru_cache(maxsize=1_000)
def clock_changes(zone: ZoneInfo, first_year: int, last_year: int) -> tuple[UtcOffsetChange, ...]:
    """The changes in these years, the last included; the first entry is how the clocks begin."""
    at = datetime(first_year, 1, 1, tzinfo=UTC)
    until = datetime(last_year + 1, 1, 1, tzinfo=UTC)
    offset = _utc_offset(at, zone)
    found = [UtcOffsetChange(to_wall_clock(at, zone), offset, offset, _zone_abbreviation(at, zone))]
    while at < until:
        if (later := _utc_offset(at + _DAY, zone)) != offset:
            instant = _find_transition(at, at + _DAY, zone)
            # By the clock that was right until then, also where the new one skips that time.
            shown = (instant + offset).replace(tzinfo=None)
            found.append(UtcOffsetChange(shown, offset, later, _zone_abbreviation(instant, zone)))
            offset = later
        at += _DAY
    return tuple(found)


def yearly_rule(changes: Sequence[UtcOffsetChange], last_year: int) -> YearlyRule | None:
    """The rule by which these come every year, from the first to that year, if there is one."""
    first = changes[0].wall_time
    if [c.wall_time.year for c in changes] != list(range(first.year, last_year + 1)):
        return None
    for week in (-1, (first.day - 1) // 7 + 1):  # the last one may happen to be the fourth
        rule = YearlyRule(first.month, week, first.weekday())
        if all(c.wall_time.time() == first.time() and _matches(rule, c.wall_time) for c in changes):
            return rule
    return None


def _matches(rule: YearlyRule, day: datetime) -> bool:
    last_week = day.day + 7 > monthrange(day.year, day.month)[1]
    week = -1 if rule.week == -1 and last_week else (day.day - 1) // 7 + 1
    return (day.month, week, day.weekday()) == (rule.month, rule.week, rule.weekday)


def _find_transition(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first second of the new offset."""
    old = _utc_offset(before, zone)
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if _utc_offset(middle, zone) == old:
            before = middle
        else:
            after = middle
    return after


def _utc_offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _zone_abbreviation(instant: datetime, zone: ZoneInfo) -> str:
    return instant.astimezone(zone).tzname() or zone.key
