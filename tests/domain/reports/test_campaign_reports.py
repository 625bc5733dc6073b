"""The time window of campaign statistics, and the points of their time series."""

from datetime import timedelta

import pytest

from slotlock.domain.reports.campaign_reports import (
    Interval,
    TimeSeriesPoint,
    TimeWindow,
    TooManyPoints,
    to_time_series,
    to_time_window,
)
from tests.support.domain.builders import NOW

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("interval", Interval)
def test_an_interval_has_the_length_of_its_name(interval: Interval) -> None:
    days = {Interval.MINUTE: 1 / 1440, Interval.HOUR: 1 / 24, Interval.DAY: 1}
    assert interval.length == timedelta(days=days[interval])


def test_a_window_lasts_from_the_opening_until_now_by_default() -> None:
    opened = NOW - timedelta(hours=2, minutes=30)
    window = to_time_window(Interval.HOUR, None, None, opened, NOW)
    assert window == TimeWindow(opened, NOW, Interval.HOUR, ends_now=True)
    assert window.point_count == 3


def test_a_window_of_whole_intervals_has_no_empty_one_at_its_end() -> None:
    window = to_time_window(Interval.HOUR, NOW - 3 * HOUR, NOW, NOW, NOW)
    assert isinstance(window, TimeWindow)
    assert window.point_count == 3


def test_the_window_of_a_campaign_that_has_just_opened_starts_with_the_opening() -> None:
    opened = NOW - timedelta(minutes=10)
    window = to_time_window(Interval.HOUR, None, None, opened, NOW)
    assert isinstance(window, TimeWindow)
    assert (window.start, window.point_count) == (opened, 1)


def test_before_the_opening_the_window_is_the_last_interval() -> None:
    assert to_time_window(Interval.HOUR, None, None, NOW + HOUR, NOW) == TimeWindow(
        NOW - HOUR, NOW, Interval.HOUR, ends_now=True
    )


def test_a_window_has_at_most_1000_intervals() -> None:
    start, length = NOW - timedelta(days=2), timedelta(minutes=1)
    window = to_time_window(Interval.MINUTE, start, start + 1000 * length, NOW, NOW)
    assert isinstance(window, TimeWindow)
    assert window.point_count == 1000
    later = start + 1000 * length + timedelta(milliseconds=1)
    assert to_time_window(Interval.MINUTE, start, later, NOW, NOW) == TooManyPoints(1000)
    assert to_time_window(Interval.MINUTE, start, None, NOW, NOW) == window


def test_bookings_before_the_window_count_in_its_totals() -> None:
    window = TimeWindow(NOW - 3 * HOUR, NOW, Interval.HOUR, ends_now=True)
    assert to_time_series(window, {-1: (5, 2), 0: (4, 1), 2: (0, 6)}) == (
        TimeSeriesPoint(NOW - 3 * HOUR, 4, 1, 6),
        TimeSeriesPoint(NOW - 2 * HOUR, 0, 0, 6),
        TimeSeriesPoint(NOW - HOUR, 0, 6, 0),
    )
