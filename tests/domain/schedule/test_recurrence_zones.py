"""Series across the real clock changes of every zone, compared with a second implementation.

The second implementation only converts instants to local times and searches for the instant of a
local time. It shares no code with the tested module and does not use dateutil.
"""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import occurrences

# TEST_CAMPAIGN tests all years instead of some.
CAMPAIGN = "TEST_CAMPAIGN" in os.environ
YEARS = (1975, 2085) if CAMPAIGN else (2011, 2016)
YEARS_NEWEST_FIRST = range(2031, 1974 if CAMPAIGN else 2010, -1)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
# Changes of half an hour, at midnight, in a lunar month, across the date line, and at short notice;
# and ordinary ones on both hemispheres.
UNUSUAL_ZONES = [
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


def to_local_time(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time of an instant."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    """Return the UTC offset at an instant."""
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def offset_changes(zone: ZoneInfo, first: int, last: int) -> Iterator[datetime]:
    """Yield the instants of offset changes in these years; two within 12 days may be missed."""
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


def first_instant_of(local_time: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant with this local time; in a gap, use the offset before it."""
    middle = local_time.replace(tzinfo=UTC)
    around = [middle + hours * HOUR for hours in range(-36, 37, 8)]
    candidates = {middle - offset(instant, zone) for instant in around}
    if matches := [instant for instant in candidates if to_local_time(instant, zone) == local_time]:
        return min(matches)
    low, high = around[0], around[-1]
    while high - low > SECOND:
        instant = low + (high - low) // SECOND // 2 * SECOND
        if to_local_time(instant, zone) < local_time:
            low = instant
        else:
            high = instant
    return middle - offset(low, zone)


def daily(day: date) -> list[date]:
    """Return the days from three days before to three days after."""
    return [day + days * DAY for days in range(-3, 4)]


def fortnightly(day: date) -> list[date]:
    """Return every second week from four weeks before to four weeks after."""
    return [day + weeks * 7 * DAY for weeks in range(-4, 5, 2)]


def monthly(day: date) -> list[date]:
    """Return the same day of the previous and the next month, where it exists, and the day."""
    days = [day + number * DAY for number in range(-31, 32)]
    return [other for other in days if other.day == day.day]


RULES = {"FREQ=DAILY": daily, "FREQ=WEEKLY;INTERVAL=2": fortnightly, "FREQ=MONTHLY": monthly}


def middle_of_change(change: datetime, zone: ZoneInfo) -> datetime:
    """Return the middle of the local times that a change skips or repeats."""
    return change.replace(tzinfo=None) + (offset(change - SECOND, zone) + offset(change, zone)) / 2


def edges_of_change(change: datetime, zone: ZoneInfo) -> set[datetime]:
    """Return the local times at which a change begins and ends, and one second before each."""
    both = {change.replace(tzinfo=None) + offset(at, zone) for at in (change - SECOND, change)}
    return both | {edge - SECOND for edge in both}


def count_matching_series(time: datetime, zone: ZoneInfo) -> int:
    """Compare the series with an occurrence at this local time. Return how many were compared."""
    count = 0
    for rule, days in RULES.items():
        times = [datetime.combine(day, time.time()) for day in days(time.date())]
        start = first_instant_of(times[0], zone)
        if to_local_time(start, zone) != times[0]:
            continue  # the series would start in another change, which is tested separately
        first = Meeting(start, start + HOUR)
        expected = sorted({first_instant_of(local_time, zone) for local_time in times})
        found = occurrences(first, f"{rule};COUNT={len(times)}", zone.key)
        assert found == tuple(Meeting(at, at + HOUR) for at in expected), (zone, rule, times)
        count += 1
    return count


@pytest.mark.parametrize("name", UNUSUAL_ZONES)
def test_series_have_the_same_local_times_across_every_change_of_unusual_zones(name: str) -> None:
    zone = ZoneInfo(name)
    found = list(offset_changes(zone, *YEARS))
    for change in found:
        times = {middle_of_change(change, zone), *edges_of_change(change, zone)}
        assert sum(count_matching_series(time, zone) for time in times)
    assert found


def test_series_have_the_same_local_times_across_the_last_change_of_every_zone() -> None:
    compared = 0
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        last = next(
            (
                found
                for year in YEARS_NEWEST_FIRST
                if (found := list(offset_changes(zone, year, year)))
            ),
            [],
        )
        compared += (
            sum(count_matching_series(middle_of_change(change, zone), zone) for change in last) > 0
        )
    assert compared > 200


def test_the_day_that_samoa_skipped_is_not_in_a_series() -> None:
    zone = ZoneInfo("Pacific/Apia")
    start = first_instant_of(datetime(2011, 12, 28, 9), zone)  # noqa: DTZ001
    found = occurrences(Meeting(start, start + HOUR), "FREQ=DAILY;UNTIL=20120101", zone.key)
    assert isinstance(found, tuple)
    assert [f"{to_local_time(occurrence.start, zone):%d %H}" for occurrence in found] == [
        "28 09",
        "29 09",
        "31 09",
        "01 09",
    ]


@pytest.mark.parametrize(
    ("instant", "local_time"),
    [("2030-03-31T01:30", "2030-03-31T02:30"), ("2030-10-27T00:30", "2030-10-27T02:30")],
)
def test_the_second_implementation_follows_the_rfc_for_skipped_and_repeated_times(
    instant: str, local_time: str
) -> None:
    expected = datetime.fromisoformat(instant).replace(tzinfo=UTC)
    assert (
        first_instant_of(datetime.fromisoformat(local_time), ZoneInfo("Europe/Berlin")) == expected
    )
