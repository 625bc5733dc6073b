"""Timetables give meetings: in local time, sorted, without overlaps, and in bounds."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import (
    MAX_MEETINGS,
    Meeting,
    first_overlap,
    validate_meetings,
)
from slotlock.domain.schedule.timetables import Timetable, Weekday, WeeklyMeeting, to_meetings
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

BERLIN = "Europe/Berlin"
MONDAY_NINE = WeeklyMeeting(Weekday.MONDAY, time(9), time(10, 30))
MARCH = Timetable(date(2030, 3, 18), date(2030, 4, 8), (MONDAY_NINE,))
DAY = datetime(2030, 5, 17, tzinfo=UTC)


def instant(text: str) -> datetime:
    """Return an instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def starts(timetable: Timetable, zone: str = BERLIN) -> list[str]:
    """Return the starts of the meetings in UTC."""
    meetings = to_meetings(timetable, zone)
    assert isinstance(meetings, tuple)
    return [meeting.start.strftime("%m-%dT%H:%M") for meeting in meetings]


def invalid_fields(timetable: Timetable, zone: str = BERLIN) -> list[str]:
    """Return the names of the invalid fields."""
    outcome = to_meetings(timetable, zone)
    assert isinstance(outcome, InvalidInput)
    assert all(isinstance(problem, FieldProblem) for problem in outcome.problems)
    return [problem.field for problem in outcome.problems]


def test_a_weekly_meeting_has_the_same_local_time_on_both_sides_of_a_clock_change() -> None:
    assert starts(MARCH) == ["03-18T08:00", "03-25T08:00", "04-01T07:00", "04-08T07:00"]
    october = replace(MARCH, first=date(2030, 10, 21), last=date(2030, 10, 28))
    assert starts(october) == ["10-21T07:00", "10-28T08:00"]


def test_the_range_includes_its_first_and_last_date() -> None:
    one_day = replace(MARCH, last=MARCH.first)
    assert starts(one_day) == ["03-18T08:00"]


def test_no_weekly_meeting_starts_on_a_holiday() -> None:
    days = (date(2030, 3, 25), date(2030, 3, 25))
    assert starts(replace(MARCH, holidays=days)) == ["03-18T08:00", "04-01T07:00", "04-08T07:00"]


def test_a_holiday_without_a_meeting_is_valid() -> None:
    days = (date(2030, 3, 26), date(2031, 1, 1), date(1, 1, 1))
    assert starts(replace(MARCH, holidays=days)) == starts(MARCH)


def test_extra_meetings_are_sorted_in_and_take_place_on_holidays() -> None:
    extra = Meeting(instant("2030-03-25T12:00"), instant("2030-03-25T13:00"))
    before = Meeting(instant("2030-01-07T12:00"), instant("2030-01-07T13:00"))
    timetable = replace(MARCH, holidays=(date(2030, 3, 25),), extra=(extra, before))
    assert starts(timetable)[:3] == ["01-07T12:00", "03-18T08:00", "03-25T12:00"]


def test_a_timetable_can_have_only_extra_meetings() -> None:
    extra = Meeting(instant("2030-03-25T12:00"), instant("2030-03-25T13:00"))
    assert to_meetings(replace(MARCH, weekly=(), extra=(extra,)), BERLIN) == (extra,)


def test_a_class_that_ends_before_its_start_ends_on_the_next_day() -> None:
    night = WeeklyMeeting(Weekday.SATURDAY, time(22), time(4))
    timetable = Timetable(date(2030, 3, 23), date(2030, 3, 30), (night,))
    assert to_meetings(timetable, BERLIN) == (
        Meeting(instant("2030-03-23T21:00"), instant("2030-03-24T03:00")),
        # In the night when the clocks go forward, it ends at four, too.
        Meeting(instant("2030-03-30T21:00"), instant("2030-03-31T02:00")),
    )


def test_several_meetings_per_week_are_sorted_by_start() -> None:
    weekly = (
        WeeklyMeeting(Weekday.THURSDAY, time(14), time(15)),
        WeeklyMeeting(Weekday.MONDAY, time(14), time(15)),
        MONDAY_NINE,
    )
    timetable = Timetable(date(2030, 5, 13), date(2030, 5, 19), weekly)
    assert starts(timetable) == ["05-13T07:00", "05-13T12:00", "05-16T12:00"]


def test_a_timetable_without_a_meeting_is_invalid() -> None:
    assert invalid_fields(replace(MARCH, weekly=())) == ["weekly"]
    assert invalid_fields(replace(MARCH, last=MARCH.first, holidays=(MARCH.first,))) == ["weekly"]


@pytest.mark.parametrize(
    ("first", "last", "fields"),
    [
        (date(2030, 3, 18), date(2030, 3, 17), ["last"]),
        (date(2030, 3, 18), date(2032, 3, 20), ["last"]),
        (date(2030, 3, 18), date(9999, 12, 31), ["last"]),
        (date(9999, 12, 31), date(9999, 12, 31), ["first", "last"]),
        (date(1, 1, 1), date(1, 12, 31), ["first", "last"]),
    ],
)
def test_an_invalid_range_names_its_fields(first: date, last: date, fields: list[str]) -> None:
    assert invalid_fields(replace(MARCH, first=first, last=last)) == fields


def test_a_range_can_have_two_years() -> None:
    assert len(starts(replace(MARCH, last=date(2032, 3, 18)))) == 105


def test_an_unknown_zone_is_named_with_the_other_problems() -> None:
    assert invalid_fields(MARCH, "Mars/Olympus") == ["timeZone"]
    assert invalid_fields(replace(MARCH, last=date(2030, 1, 1)), "../etc/passwd") == [
        "last",
        "timeZone",
    ]


def test_too_many_meetings_are_invalid() -> None:
    daily = tuple(WeeklyMeeting(day, time(9), time(10)) for day in Weekday)
    days = timedelta(days=MAX_MEETINGS - 1)
    assert len(starts(replace(MARCH, weekly=daily, last=MARCH.first + days))) == MAX_MEETINGS
    assert invalid_fields(replace(MARCH, weekly=daily, last=MARCH.first + timedelta(days=500))) == [
        "weekly"
    ]
    assert invalid_fields(replace(MARCH, weekly=(MONDAY_NINE,) * 51)) == ["weekly"]


def test_overlapping_meetings_are_invalid() -> None:
    late = WeeklyMeeting(Weekday.MONDAY, time(10), time(11))
    assert invalid_fields(replace(MARCH, weekly=(MONDAY_NINE, late))) == ["weekly"]
    over_midnight = WeeklyMeeting(Weekday.SUNDAY, time(22), time(21))
    assert invalid_fields(replace(MARCH, weekly=(MONDAY_NINE, over_midnight))) == ["weekly"]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("start", ["0001-01-01T00:00", "9999-12-31T20:00"])
def test_an_overlap_at_the_limits_of_datetime_is_named_in_any_zone(zone: str, start: str) -> None:
    hours = [instant(start) + timedelta(hours=n) for n in range(4)]
    extra = (Meeting(hours[0], hours[2]), Meeting(hours[1], hours[3]))
    assert invalid_fields(replace(MARCH, weekly=(), extra=extra), zone) == ["weekly"]


def test_a_meeting_without_a_duration_is_invalid() -> None:
    assert invalid_fields(
        replace(MARCH, weekly=(WeeklyMeeting(Weekday.MONDAY, time(9), time(9)),))
    ) == ["weekly"]
    extra = Meeting(instant("2030-03-25T12:00"), instant("2030-03-25T12:00"))
    assert invalid_fields(replace(MARCH, extra=(extra,))) == ["extra"]


def test_a_meeting_at_a_skipped_time_takes_place_after_the_change_with_its_usual_duration() -> None:
    skipped = WeeklyMeeting(Weekday.SUNDAY, time(2, 30), time(3))
    meetings = to_meetings(replace(MARCH, weekly=(skipped,)), "Europe/Berlin")
    assert isinstance(meetings, tuple)
    after_change = Meeting(instant("2030-03-31T01:30"), instant("2030-03-31T02:00"))
    assert after_change in meetings
    assert {meeting.end - meeting.start for meeting in meetings} == {timedelta(minutes=30)}


def test_an_overlap_is_named_in_local_time() -> None:
    weekly = (
        WeeklyMeeting(Weekday.MONDAY, time(9), time(11)),
        WeeklyMeeting(Weekday.MONDAY, time(10), time(12)),
    )
    outcome = to_meetings(replace(MARCH, weekly=weekly), "Europe/Berlin")
    assert isinstance(outcome, InvalidInput)
    assert " 09:00:00 Europe/Berlin and " in outcome.problems[0].message


dates = st.dates() | st.dates(date(2029, 1, 1), date(2031, 12, 31))
weekly_meetings = st.builds(WeeklyMeeting, st.sampled_from(Weekday), st.times(), st.times())
extra_meetings = st.builds(
    Meeting, st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC))
)


@given(
    timetable=st.builds(
        Timetable,
        dates,
        dates,
        st.lists(weekly_meetings, max_size=5).map(tuple),
        st.lists(dates, max_size=5).map(tuple),
        st.lists(extra_meetings, max_size=2).map(tuple),
    ),
    zone=st.sampled_from([BERLIN, "America/Santiago", "Pacific/Apia", "Nowhere", ""]),
)
def test_any_timetable_gives_valid_meetings_or_problems(timetable: Timetable, zone: str) -> None:
    outcome = to_meetings(timetable, zone)
    if isinstance(outcome, InvalidInput):
        assert outcome.problems
    else:
        assert validate_meetings(outcome, UTC) is None


def meeting(start: int, end: int) -> Meeting:
    """Return a meeting between two hours of one day."""
    return Meeting(DAY + timedelta(hours=start), DAY + timedelta(hours=end))


hour_ranges = st.tuples(st.integers(0, 60), st.integers(1, 12))
sorted_meetings = st.lists(
    hour_ranges.map(lambda hours: meeting(hours[0], hours[0] + hours[1])), max_size=12
).map(lambda meetings: sorted(meetings, key=lambda item: item.start))


def overlap(one: Meeting, other: Meeting) -> bool:
    """Return whether both meetings include the same instant."""
    return max(one.start, other.start) < min(one.end, other.end)


def test_meetings_that_touch_do_not_overlap() -> None:
    assert first_overlap([meeting(9, 10), meeting(11, 12)], [meeting(10, 11)]) is None


def test_the_first_overlapping_pair_is_returned_in_argument_order() -> None:
    one, other = [meeting(8, 9), meeting(10, 12)], [meeting(9, 10), meeting(11, 13)]
    assert first_overlap(one, other) == (meeting(10, 12), meeting(11, 13))
    assert first_overlap(other, one) == (meeting(11, 13), meeting(10, 12))


def test_a_long_meeting_overlaps_a_meeting_within_it() -> None:
    assert first_overlap([meeting(0, 23)], [meeting(5, 6)]) == (meeting(0, 23), meeting(5, 6))


@given(one=sorted_meetings, other=sorted_meetings)
def test_first_overlap_finds_a_pair_if_any(one: list[Meeting], other: list[Meeting]) -> None:
    found = first_overlap(one, other)
    assert (found is not None) == any(overlap(a, b) for a in one for b in other)
    if found:
        assert found[0] in one
        assert found[1] in other
        assert overlap(*found)


def test_a_slot_needs_1_to_500_meetings() -> None:
    too_many = [meeting(hour, hour + 1) for hour in range(MAX_MEETINGS + 1)]
    assert validate_meetings(too_many[:-1], UTC) is None
    for meetings in ([], too_many):
        assert validate_meetings(meetings, UTC) == "A slot needs 1 to 500 meetings."


@pytest.mark.parametrize(
    ("meetings", "problem"),
    [
        ([meeting(9, 9)], "The meeting at 2030-05-17 09:00:00 UTC must end after it starts."),
        ([meeting(9, 8)], "The meeting at 2030-05-17 09:00:00 UTC must end after it starts."),
        (
            [meeting(9, 10), meeting(7, 8)],
            "Please sort the meetings by start: the one at 2030-05-17 07:00:00 UTC comes too late.",
        ),
        (
            [meeting(9, 11), meeting(10, 12)],
            "The meetings at 2030-05-17 09:00:00 UTC and 2030-05-17 10:00:00 UTC overlap.",
        ),
        (
            [meeting(9, 10), meeting(9, 10)],
            "The meetings at 2030-05-17 09:00:00 UTC and 2030-05-17 09:00:00 UTC overlap.",
        ),
    ],
)
def test_invalid_meetings_are_named_in_the_problem(meetings: list[Meeting], problem: str) -> None:
    assert validate_meetings(meetings, UTC) == problem
    assert validate_meetings([meeting(9, 10), meeting(10, 11)], UTC) is None
