"""A campaign in figures: what is taken, by whom, and how that came about over time.

Only slots that are published count. A hold counts until it runs out, whether or not anything has
swept it up, and what was called off counts no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.users.user import User

MAX_POINTS = 1000


class Interval(StrEnum):
    """How much time one point stands for."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        """The same as a span of time; a day is 24 hours."""
        return timedelta(**{f"{self.value}s": 1})


@dataclass(frozen=True, slots=True)
class SlotStatistics:
    """One slot: its places, the live bookings, those of them that are holds, and who waits."""

    slot_id: SlotId
    start: datetime
    places: int
    taken: int
    held: int
    waiting: int


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """One group: how many carry it and may take part, and what those who booked with it have.

    `bookings` is how many, `booked` how many people have any, `waiting` how many turns there are.
    """

    group: str
    people: int
    bookings: int
    booked: int
    waiting: int


@dataclass(frozen=True, slots=True)
class TimeSeriesPoint:
    """What happened from `at` until the next point, and how much is taken then."""

    at: datetime
    booked: int
    given_back: int
    taken: int


@dataclass(frozen=True, slots=True)
class CampaignStatistics:
    """All figures of a campaign as of one instant; `over_time` only if it was asked for."""

    at: datetime
    slots: tuple[SlotStatistics, ...]
    groups: tuple[GroupStatistics, ...]
    people: int
    time_series: tuple[TimeSeriesPoint, ...] | None = None

    @property
    def places(self) -> int:
        """Places in all."""
        return sum(slot.places for slot in self.slots)

    @property
    def taken(self) -> int:
        """Live bookings."""
        return sum(slot.taken for slot in self.slots)

    @property
    def held(self) -> int:
        """Live bookings that are holds."""
        return sum(slot.held for slot in self.slots)

    @property
    def waiting(self) -> int:
        """Turns in waiting lists."""
        return sum(slot.waiting for slot in self.slots)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A stretch of time in intervals, counted from `begin`; the last may be cut short by `end`.

    One that is `open` lasts until now, and whatever has happened is in it or before it.
    """

    start: datetime
    end: datetime
    interval: Interval
    ends_now: bool

    @property
    def point_count(self) -> int:
        """How many intervals there are."""
        return max(-((self.start - self.end) // self.interval.length), 0)


@dataclass(frozen=True, slots=True)
class TooManyPoints:
    """The span has more intervals than can be shown at once."""

    max_points: int


def to_time_window(
    interval: Interval,
    start: datetime | None,
    end: datetime | None,
    opens_at: datetime,
    now: datetime,
) -> TimeWindow | TooManyPoints:
    """The span that was asked for; from the opening until now where nothing is said.

    Nothing is known of the future. When a campaign opened longer ago than can be shown, what is
    shown ends before now, and before its opening the last interval is shown.
    """
    longest = MAX_POINTS * interval.length
    start = start or (opens_at if opens_at < now else now - interval.length)
    if end is None:
        end = now if now - start <= longest else start + longest
    end = min(end, now)
    found = TimeWindow(start, end, interval, ends_now=end == now)
    return TooManyPoints(MAX_POINTS) if found.point_count > MAX_POINTS else found


def to_time_series(
    window: TimeWindow, changes_by_interval: Mapping[int, tuple[int, int]]
) -> tuple[TimeSeriesPoint, ...]:
    """The points of a span, from how much was booked and given back in each interval.

    Intervals count from 0; what came before them is at -1.
    """
    booked, given_back = changes_by_interval.get(-1, (0, 0))
    taken = booked - given_back
    found = []
    for number in range(window.point_count):
        booked, given_back = changes_by_interval.get(number, (0, 0))
        taken += booked - given_back
        at = window.start + number * window.interval.length
        found.append(TimeSeriesPoint(at, booked, given_back, taken))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class UnplacedUser:
    """Somebody who has no place in any slot of a campaign, and the turns they wait for."""

    user: User
    waitlist_entries: tuple[WaitlistEntry, ...]


@dataclass(frozen=True, slots=True)
class UnplacedUserPage:
    """Some of them, by address; up to which address people were looked at, and if more follow.

    Where nearly everybody has a place, a page ends before it is full.
    """

    items: tuple[UnplacedUser, ...]
    searched_until: str | None
    has_more: bool
