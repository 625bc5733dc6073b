"""Over which time figures are told, and what they add up to."""

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
from tests.domain.booking.test_book import NOW

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("interval", Interval)
def test_an_interval_is_as_long_as_its_name_says(interval: Interval) -> None:
    days = {Interval.MINUTE: 1 / 1440, Interval.HOUR: 1 / 24, Interval.DAY: 1}
    assert interval.length == timedelta(days=days[interval])


def test_a_span_lasts_from_the_opening_until_now() -> None:
    opened = NOW - timedelta(hours=2, minutes=30)
    found = to_time_window(Interval.HOUR, None, None, opened, NOW)
    assert found == TimeWindow(opened, NOW, Interval.HOUR, ends_now=True)
    assert found.point_count == 3


def test_a_span_of_whole_intervals_has_no_empty_one_at_its_end() -> None:
    found = to_time_window(Interval.HOUR, NOW - 3 * HOUR, NOW, NOW, NOW)
    assert isinstance(found, TimeWindow)
    assert found.point_count == 3


def test_a_campaign_that_opened_a_moment_ago_is_told_from_its_opening() -> None:
    opened = NOW - timedelta(minutes=10)
    found = to_time_window(Interval.HOUR, None, None, opened, NOW)
    assert isinstance(found, TimeWindow)
    assert (found.start, found.point_count) == (opened, 1)


def test_before_the_opening_the_last_interval_is_told() -> None:
    assert to_time_window(Interval.HOUR, None, None, NOW + HOUR, NOW) == TimeWindow(
        NOW - HOUR, NOW, Interval.HOUR, ends_now=True
    )


def test_a_thousand_intervals_are_told_and_not_one_more() -> None:
    begin, length = NOW - timedelta(days=2), timedelta(minutes=1)
    found = to_time_window(Interval.MINUTE, begin, begin + 1000 * length, NOW, NOW)
    assert isinstance(found, TimeWindow)
    assert found.point_count == 1000
    later = begin + 1000 * length + timedelta(milliseconds=1)
    assert to_time_window(Interval.MINUTE, begin, later, NOW, NOW) == TooManyPoints(1000)
    assert to_time_window(Interval.MINUTE, begin, None, NOW, NOW) == found


def test_what_was_taken_before_a_span_is_taken_in_it() -> None:
    asked = TimeWindow(NOW - 3 * HOUR, NOW, Interval.HOUR, ends_now=True)
    assert to_time_series(asked, {-1: (5, 2), 0: (4, 1), 2: (0, 6)}) == (
        TimeSeriesPoint(NOW - 3 * HOUR, 4, 1, 6),
        TimeSeriesPoint(NOW - 2 * HOUR, 0, 0, 6),
        TimeSeriesPoint(NOW - HOUR, 0, 6, 0),
    )
