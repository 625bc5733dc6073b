"""The meetings of a series by its recurrence rule, in local time."""

from datetime import date, timedelta

import pytest

from slotlock.domain.schedule.recurrence import occurrences
from slotlock.domain.shared.validation import InvalidInput
from tests.support.domain.builders import BERLIN, HOUR, hour_from


def starts(start: str, rule: str, zone: str = BERLIN) -> list[str]:
    """Return the starts of a series in UTC."""
    found = occurrences(hour_from(start), rule, zone)
    assert isinstance(found, tuple), found
    return [occurrence.start.strftime("%m-%dT%H:%M") for occurrence in found]


def days(start: str, rule: str) -> list[str]:
    """Return the dates of a series."""
    return [text[:5] for text in starts(start, rule, "UTC")]


def test_a_weekly_meeting_has_the_same_local_time_on_both_sides_of_a_clock_change() -> None:
    assert starts("2030-03-18T08:00", "FREQ=WEEKLY;COUNT=3") == [
        "03-18T08:00",
        "03-25T08:00",
        "04-01T07:00",
    ]
    assert starts("2030-10-21T07:00", "FREQ=WEEKLY;COUNT=2") == ["10-21T07:00", "10-28T08:00"]


def test_a_skipped_local_time_is_read_with_the_offset_before_the_gap() -> None:
    # RFC 5545, 3.3.5: 02:30 does not exist on the 31st and means 03:30 of summer time.
    assert starts("2030-03-30T01:30", "FREQ=DAILY;COUNT=3") == [
        "03-30T01:30",
        "03-31T01:30",
        "04-01T00:30",
    ]


def test_a_repeated_local_time_means_its_first_occurrence() -> None:
    assert starts("2030-10-26T00:30", "FREQ=DAILY;COUNT=3") == [
        "10-26T00:30",
        "10-27T00:30",
        "10-28T01:30",
    ]


def test_the_first_meeting_may_be_at_the_second_of_two_equal_local_times() -> None:
    assert starts("2030-10-27T01:30", "FREQ=WEEKLY;COUNT=2") == ["10-27T01:30", "11-03T01:30"]


def test_no_occurrence_starts_before_the_start_in_a_repeated_hour() -> None:
    rule = "FREQ=DAILY;COUNT=3;BYMINUTE=30,45"
    assert starts("2030-10-27T01:30", rule) == ["10-27T01:30", "10-28T01:30", "10-28T01:45"]


def test_an_occurrence_on_a_holiday_counts_but_does_not_take_place() -> None:
    first, easter = hour_from("2030-04-15T07:00"), date(2030, 4, 22)
    found = occurrences(first, "FREQ=WEEKLY;COUNT=3", BERLIN, [easter])
    assert isinstance(found, tuple)
    assert [occurrence.start.day for occurrence in found] == [15, 29]
    assert occurrences(first, "FREQ=WEEKLY;COUNT=3", BERLIN, [date(2030, 4, 16)]) == occurrences(
        first, "FREQ=WEEKLY;COUNT=3", BERLIN
    )


def test_a_holiday_is_a_day_in_the_zone_of_the_series() -> None:
    late = hour_from("2030-04-15T22:30")  # 00:30 of the 16th in Berlin
    found = occurrences(late, "FREQ=DAILY;COUNT=2", BERLIN, [date(2030, 4, 16)])
    assert isinstance(found, tuple)
    assert [occurrence.start for occurrence in found] == [late.start + timedelta(days=1)]


def test_holidays_that_exclude_every_meeting_are_invalid() -> None:
    first = hour_from("2030-04-15T07:00")
    outcome = occurrences(first, "FREQ=DAILY;COUNT=1", BERLIN, [date(2030, 4, 15)])
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == ["holidays"]


def test_every_occurrence_has_the_duration_of_the_first_meeting() -> None:
    found = occurrences(hour_from("2030-03-30T00:30"), "FREQ=DAILY;COUNT=3", BERLIN)
    assert isinstance(found, tuple)
    assert {occurrence.end - occurrence.start for occurrence in found} == {HOUR}


def test_two_local_times_that_mean_one_instant_are_one_meeting() -> None:
    rule = "FREQ=DAILY;COUNT=4;BYHOUR=2,3"
    assert starts("2030-03-30T01:30", rule) == ["03-30T01:30", "03-30T02:30", "03-31T01:30"]


def test_occurrences_preserve_the_milliseconds_of_the_start() -> None:
    first = hour_from("2030-03-18T08:00:01.250")
    found = occurrences(first, "FREQ=WEEKLY;COUNT=2", BERLIN)
    assert isinstance(found, tuple)
    assert found[0] == first
    assert found[1].start - first.start == timedelta(days=7)


def test_a_start_that_matches_the_rule_is_the_first_occurrence() -> None:
    rule = "FREQ=WEEKLY;BYDAY=MO,WE;COUNT=3"
    assert days("2030-03-18T08:00", rule) == ["03-18", "03-20", "03-25"]


def test_a_start_that_does_not_match_the_rule_is_not_an_occurrence() -> None:
    rule = "FREQ=WEEKLY;BYDAY=MO;COUNT=2"
    assert days("2030-03-19T08:00", rule) == ["03-25", "04-01"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=DAILY;INTERVAL=10;COUNT=3", "03-18 03-28 04-07"),
        ("RRULE:FREQ=DAILY;COUNT=2", "03-18 03-19"),
        (" rrule:freq=daily;count=2\n", "03-18 03-19"),
        ("FREQ=DAILY;COUNT=2;BYMONTHDAY=1,-1", "03-31 04-01"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;COUNT=4", "03-18 03-24 04-01 04-07"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU;COUNT=4", "03-18 03-31 04-01 04-14"),
        ("FREQ=WEEKLY;BYDAY=SU,MO,TU;WKST=SU;BYSETPOS=2,3;COUNT=3", "03-18 03-19 03-25"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;COUNT=3", "03-31 05-31 07-31"),
        ("FREQ=MONTHLY;BYDAY=2TU,-1FR;COUNT=3", "03-29 04-09 04-26"),
        ("FREQ=MONTHLY;BYDAY=MO,1TU;BYMONTH=4;COUNT=6", "04-01 04-02 04-08 04-15 04-22 04-29"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=2", "03-29 04-30"),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=2", "09-13 12-13"),
        ("FREQ=YEARLY;COUNT=3", "03-18 03-18 03-18"),
        ("FREQ=YEARLY;BYMONTH=4,5;BYMONTHDAY=1;COUNT=3", "04-01 05-01 04-01"),
        ("FREQ=YEARLY;BYDAY=53TU;COUNT=1", "12-31"),
        ("FREQ=YEARLY;BYYEARDAY=-1,100;COUNT=2", "04-10 12-31"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=1", "02-29"),
    ],
)
def test_the_parts_of_a_rule_have_their_meaning_in_the_rfc(rule: str, expected: str) -> None:
    assert days("2030-03-18T08:00", rule) == expected.split()


def test_bysetpos_counts_from_the_start_of_a_week_even_if_the_series_starts_later() -> None:
    # The first of the three days is Monday the 18th, which is before the start.
    rule = "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1;COUNT=1"
    assert days("2030-03-20T08:00", rule) == ["03-25"]


def test_byhour_and_byminute_give_several_times_per_day() -> None:
    rule = "FREQ=DAILY;BYHOUR=9,14;BYMINUTE=0,30;COUNT=5"
    assert starts("2030-06-03T07:15", rule) == [
        "06-03T07:30",
        "06-03T12:00",
        "06-03T12:30",
        "06-04T07:00",
        "06-04T07:30",
    ]


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("20300401", 3),
        ("20300331", 2),
        ("20300401T090000", 3),
        ("20300401T085959", 2),
        ("20300401T070000Z", 3),
        ("20300401T065959Z", 2),
        ("20300318", 1),
    ],
)
def test_until_is_inclusive_as_date_local_time_and_instant(until: str, expected: int) -> None:
    assert len(starts("2030-03-18T08:00", f"FREQ=WEEKLY;UNTIL={until}")) == expected


def test_until_as_a_date_includes_the_whole_day_in_the_zone() -> None:
    # 22:45 on the 19th in New York is the 20th in UTC.
    rule = "FREQ=DAILY;UNTIL=20300319"
    assert starts("2030-03-19T02:45", rule, "America/New_York") == ["03-19T02:45", "03-20T02:45"]
