"""When the clocks of a zone change: what a calendar that is sent elsewhere has to bring along."""

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from slotlock.domain.zones import wall_clock

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """Clocks of the zone go from one offset to another; `shown` is the old clock's time of it."""

    shown: datetime
    before: timedelta
    after: timedelta
    name: str


@dataclass(frozen=True, slots=True)
class Yearly:
    """The same weekday of a month every year: the `week`th, or the last for -1."""

    month: int
    week: int
    weekday: int


@lru_cache(maxsize=1_000)
def clock_changes(zone: ZoneInfo, first_year: int, last_year: int) -> tuple[ClockChange, ...]:
    """The changes in these years, the last included; the first entry is how the clocks begin."""
    at = datetime(first_year, 1, 1, tzinfo=UTC)
    until = datetime(last_year + 1, 1, 1, tzinfo=UTC)
    offset = _offset(at, zone)
    found = [ClockChange(wall_clock(at, zone), offset, offset, _name(at, zone))]
    while at < until:
        if (later := _offset(at + _DAY, zone)) != offset:
            instant = _exactly(at, at + _DAY, zone)
            # By the clock that was right until then, also where the new one skips that time.
            shown = (instant + offset).replace(tzinfo=None)
            found.append(ClockChange(shown, offset, later, _name(instant, zone)))
            offset = later
        at += _DAY
    return tuple(found)


def yearly(changes: Sequence[ClockChange], last_year: int) -> Yearly | None:
    """The rule by which these come every year, from the first to that year, if there is one."""
    first = changes[0].shown
    if [c.shown.year for c in changes] != list(range(first.year, last_year + 1)):
        return None
    for week in (-1, (first.day - 1) // 7 + 1):  # the last one may happen to be the fourth
        rule = Yearly(first.month, week, first.weekday())
        if all(c.shown.time() == first.time() and _is_by(rule, c.shown) for c in changes):
            return rule
    return None


def _is_by(rule: Yearly, day: datetime) -> bool:
    last_week = day.day + 7 > monthrange(day.year, day.month)[1]
    week = -1 if rule.week == -1 and last_week else (day.day - 1) // 7 + 1
    return (day.month, week, day.weekday()) == (rule.month, rule.week, rule.weekday)


def _exactly(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first second of the new offset."""
    old = _offset(before, zone)
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if _offset(middle, zone) == old:
            before = middle
        else:
            after = middle
    return after


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _name(instant: datetime, zone: ZoneInfo) -> str:
    return instant.astimezone(zone).tzname() or zone.key
