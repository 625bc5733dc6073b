"""Statistics of a campaign, and the users who have no place in it.

Only published slots count; cancelled slots do not. A hold counts until it expires, whether or not
the sweeper has released it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.pagination import SearchedPage
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import User

MAX_POINTS = 1000


class Interval(DescribedEnum):
    """The length of one interval of a time series."""

    MINUTE = "minute", "One minute."
    HOUR = "hour", "One hour."
    DAY = "day", "24 hours."

    @property
    def length(self) -> timedelta:
        """Return the length of the interval; a day has 24 hours."""
        return timedelta(**{f"{self.value}s": 1})


@value_object
class SlotStatistics:
    """The numbers of one slot: `taken` counts live bookings, `held` the holds among them.

    `checked_in` and `no_shows` count the live bookings whose attendance is recorded. The latest of
    all was made at `last_booked_at`.
    """

    slot_id: SlotId
    start: datetime
    places: int
    taken: int
    held: int
    waiting: int
    checked_in: int = 0
    no_shows: int = 0
    last_booked_at: datetime | None = None

    @property
    def full_since(self) -> datetime | None:
        """Since when all places are taken; None while one is free."""
        return self.last_booked_at if self.taken >= self.places else None


@value_object
class GroupStatistics:
    """The numbers of one group of eligible users.

    `user_count` counts its users, `booked` those of them with a booking.
    `bookings` and `waiting` count the bookings and the waitlist entries that count for this group.
    """

    group: str
    user_count: int
    bookings: int
    booked: int
    waiting: int


@value_object
class TimeSeriesPoint:
    """The bookings made and given back from `at` until the next point, and the total then."""

    at: datetime
    booked: int
    given_back: int
    taken: int


@value_object
class BookingPeak:
    """The minute with the most bookings, and their number."""

    at: datetime
    booked: int


@value_object
class SomeUsers:
    """How many users there are of a kind, and the first of them."""

    count: int
    examples: tuple[User, ...]


@value_object
class UsersWithoutPassword:
    """Users for whom nobody can sign in, those of them without a valid invitation, and its end.

    `last_valid_until` is when the newest invitation of the others ends. Of a user who never signs
    in, the passwords and the invitations of the guardians count.
    """

    users: SomeUsers
    uninvited: SomeUsers
    last_valid_until: datetime | None


def _sum_over_slots(attribute: str) -> int:
    """Return a property of the statistics of a campaign: the sum of this number of its slots."""
    read = attrgetter(attribute)
    total: Any = property(lambda statistics: sum(map(read, statistics.slots)))
    number: int = total
    return number


@value_object
class CampaignStatistics:
    """All statistics of a campaign at one time.

    `user_count` counts the users with at least one booking. `time_series` is None unless requested.
    """

    terms: CampaignTerms
    at: datetime
    slots: tuple[SlotStatistics, ...]
    groups: tuple[GroupStatistics, ...]
    user_count: int
    time_series: tuple[TimeSeriesPoint, ...] | None = None

    places = _sum_over_slots("places")
    taken = _sum_over_slots("taken")
    held = _sum_over_slots("held")
    waiting = _sum_over_slots("waiting")
    checked_in = _sum_over_slots("checked_in")
    no_shows = _sum_over_slots("no_shows")

    @property
    def slot_count(self) -> int:
        """Return the number of slots."""
        return len(self.slots)

    @property
    def free(self) -> int:
        """Return the number of places that are not taken."""
        return self.places - self.taken


@value_object
class TimeWindow:
    """A range of time in intervals from `start` on; the last interval may end early, at `end`.

    If `ends_now`, everything that has happened lies in the window or before it.
    """

    start: datetime
    end: datetime
    interval: Interval
    ends_now: bool

    @property
    def point_count(self) -> int:
        """Return the number of intervals."""
        return max(-((self.start - self.end) // self.interval.length), 0)


@value_object
class TooManyPoints:
    """The window has more intervals than one response can show."""

    max_points: int


def to_time_window(
    interval: Interval,
    start: datetime | None,
    end: datetime | None,
    opens_at: datetime,
    now: datetime,
) -> TimeWindow | TooManyPoints:
    """Return the window from `start` until `end`; the defaults are the opening and now.

    The window never ends after now. If the time since `start` is too long to show, the default end
    is the last that fits. Before the campaign opens, the default start is one interval ago.
    """
    max_length = MAX_POINTS * interval.length
    start = start or (opens_at if opens_at < now else now - interval.length)
    if end is None:
        end = now if now - start <= max_length else start + max_length
    end = min(end, now)
    window = TimeWindow(start, end, interval, ends_now=end == now)
    return TooManyPoints(MAX_POINTS) if window.point_count > MAX_POINTS else window


def to_time_series(
    window: TimeWindow, changes_by_interval: Mapping[int, tuple[int, int]]
) -> tuple[TimeSeriesPoint, ...]:
    """Return the points of the window.

    `changes_by_interval` holds the numbers of bookings made and given back by the index of the
    interval; index -1 holds everything before the window.
    """
    booked, given_back = changes_by_interval.get(-1, (0, 0))
    taken = booked - given_back
    points = []
    for index in range(window.point_count):
        booked, given_back = changes_by_interval.get(index, (0, 0))
        taken += booked - given_back
        at = window.start + index * window.interval.length
        points.append(TimeSeriesPoint(at, booked, given_back, taken))
    return tuple(points)


@value_object
class UnplacedUser:
    """An eligible user without a booking in the campaign, and their waitlist entries in it."""

    user: User
    waitlist_entries: tuple[WaitlistEntry, ...]


# In the order of their e-mail addresses, the last of which was searched.
UnplacedUserPage = SearchedPage[UnplacedUser, str]
