"""Series around the real clock changes of every zone, computed a second time in another way.

Here an instant is asked what its clocks show, and never a clock which instant it means. Nothing is
shared with what is tested, and dateutil has no part in it.
"""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import occurrences

# SLOTLOCK_CAMPAIGN tries all years and not only some.
CAMPAIGN = "SLOTLOCK_CAMPAIGN" in os.environ
YEARS = (1975, 2085) if CAMPAIGN else (2011, 2016)
SINCE = range(2031, 1974 if CAMPAIGN else 2010, -1)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
# Changes of half an hour, at midnight, in a month that moves, over the date line, by a law of
# last week; and plain ones on both hemispheres.
REMARKABLE = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Caracas",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Fakaofo",
    "Pacific/Norfolk",
]


def shown(instant: datetime, zone: ZoneInfo) -> datetime:
    """What clocks show at an instant."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    """How far clocks are ahead of UTC at an instant."""
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def changes(zone: ZoneInfo, first: int, last: int) -> Iterator[datetime]:
    """The instants of the clock changes in these years; of two within 12 days it may miss both."""
    step = 12 * DAY
    before = datetime(first, 1, 1, tzinfo=UTC)
    while before.year <= last:
        after = before + step
        if offset(before, zone) != offset(after, zone):
            low, high = before, after
            while high - low > SECOND:
                middle = low + (high - low) // SECOND // 2 * SECOND
                if offset(middle, zone) == offset(before, zone):
                    low = middle
                else:
                    high = middle
            yield high
        before = after


def meant(wanted: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which clocks show this; if none, by the offset before the gap."""
    middle = wanted.replace(tzinfo=UTC)
    around = [middle + hours * HOUR for hours in range(-36, 37, 8)]
    candidates = {middle - offset(instant, zone) for instant in around}
    if showing := [instant for instant in candidates if shown(instant, zone) == wanted]:
        return min(showing)
    low, high = around[0], around[-1]
    while high - low > SECOND:
        instant = low + (high - low) // SECOND // 2 * SECOND
        if shown(instant, zone) < wanted:
            low = instant
        else:
            high = instant
    return middle - offset(low, zone)


def daily(day: date) -> list[date]:
    """From three days before to three days after."""
    return [day + days * DAY for days in range(-3, 4)]


def fortnightly(day: date) -> list[date]:
    """From four weeks before to four weeks after."""
    return [day + weeks * 7 * DAY for weeks in range(-4, 5, 2)]


def monthly(day: date) -> list[date]:
    """On that day of each month from the month before to the one after, as far as they have it."""
    days = [day + away * DAY for away in range(-31, 32)]
    return [each for each in days if each.day == day.day]


RULES = {"FREQ=DAILY": daily, "FREQ=WEEKLY;INTERVAL=2": fortnightly, "FREQ=MONTHLY": monthly}


def midst(change: datetime, zone: ZoneInfo) -> datetime:
    """The wall-clock time in the middle of what a change skips or repeats."""
    return change.replace(tzinfo=None) + (offset(change - SECOND, zone) + offset(change, zone)) / 2


def edges(change: datetime, zone: ZoneInfo) -> set[datetime]:
    """The wall-clock times at which a change begins and ends, and the seconds before."""
    both = {change.replace(tzinfo=None) + offset(at, zone) for at in (change - SECOND, change)}
    return both | {edge - SECOND for edge in both}


def compare(time: datetime, zone: ZoneInfo) -> int:
    """How many series with an occurrence at this time were found to be as they should be."""
    compared = 0
    for rule, days in RULES.items():
        times = [datetime.combine(day, time.time()) for day in days(time.date())]
        start = meant(times[0], zone)
        if shown(start, zone) != times[0]:
            continue  # It would begin in another change, which has its own turn.
        first = Meeting(start, start + HOUR)
        expected = sorted({meant(each, zone) for each in times})
        found = occurrences(first, f"{rule};COUNT={len(times)}", zone.key)
        assert found == tuple(Meeting(at, at + HOUR) for at in expected), (zone, rule, times)
        compared += 1
    return compared


@pytest.mark.parametrize("name", REMARKABLE)
def test_series_in_remarkable_zones_keep_their_wall_clock_times_over_every_change(
    name: str,
) -> None:
    zone = ZoneInfo(name)
    found = list(changes(zone, *YEARS))
    for change in found:
        times = {midst(change, zone), *edges(change, zone)}
        assert sum(compare(time, zone) for time in times)
    assert found


def test_series_in_every_zone_keep_their_wall_clock_times_over_its_last_change() -> None:
    compared = 0
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        last = next((found for year in SINCE if (found := list(changes(zone, year, year)))), [])
        compared += sum(compare(midst(change, zone), zone) for change in last) > 0
    assert compared > 200


def test_the_day_that_samoa_never_had_is_no_day_of_a_series() -> None:
    zone = ZoneInfo("Pacific/Apia")
    start = meant(datetime(2011, 12, 28, 9), zone)  # noqa: DTZ001
    found = occurrences(Meeting(start, start + HOUR), "FREQ=DAILY;UNTIL=20120101", zone.key)
    assert isinstance(found, tuple)
    assert [f"{shown(each.start, zone):%d %H}" for each in found] == [
        "28 09",
        "29 09",
        "31 09",
        "01 09",
    ]


@pytest.mark.parametrize(
    ("instant", "wanted"),
    [("2030-03-31T01:30", "2030-03-31T02:30"), ("2030-10-27T00:30", "2030-10-27T02:30")],
)
def test_the_second_way_knows_what_the_rfc_says_of_skipped_and_repeated_times(
    instant: str, wanted: str
) -> None:
    expected = datetime.fromisoformat(instant).replace(tzinfo=UTC)
    assert meant(datetime.fromisoformat(wanted), ZoneInfo("Europe/Berlin")) == expected
