"""Conversion of local times around clock changes, and shifts of series in local time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zones import find_zone, shift_all, to_instant, to_wall_clock
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

HOUR = timedelta(hours=1)


def instant(text: str) -> datetime:
    """Return an instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local_time(text: str) -> datetime:
    """Return a naive local time."""
    return datetime.fromisoformat(text)


def hour_long_meetings(*starts: str) -> tuple[Meeting, ...]:
    """Return meetings of one hour from these starts in UTC."""
    return tuple(Meeting(instant(start), instant(start) + HOUR) for start in starts)


@settings(deadline=None)
@given(name=st.text(max_size=30) | st.sampled_from(["", ".", "/", "..", "/etc/passwd", "a\0b"]))
def test_an_unknown_zone_is_not_found_for_any_name(name: str) -> None:
    zone = find_zone(name)
    assert zone is None or zone.key == name


def test_a_skipped_local_time_is_read_with_the_offset_before_the_gap() -> None:
    zone = find_zone("Europe/Berlin")
    assert zone is not None
    assert to_instant(local_time("2030-03-31T02:30"), zone) == instant("2030-03-31T01:30")
    assert to_wall_clock(instant("2030-03-31T01:30"), zone) == local_time("2030-03-31T03:30")


def test_a_repeated_local_time_means_its_first_occurrence() -> None:
    zone = find_zone("Europe/Berlin")
    assert zone is not None
    assert to_instant(local_time("2030-10-27T02:30"), zone) == instant("2030-10-27T00:30")


def test_a_shift_is_in_local_time_on_both_sides_of_a_clock_change() -> None:
    nine = hour_long_meetings("2030-03-22T08:00", "2030-03-29T08:00", "2030-04-05T07:00")
    ten = Meeting(instant("2030-03-22T09:00"), instant("2030-03-22T10:30"))
    assert shift_all(nine, nine[0], ten, "Europe/Berlin") == tuple(
        Meeting(instant(start), instant(start) + 1.5 * HOUR)
        for start in ("2030-03-22T09:00", "2030-03-29T09:00", "2030-04-05T08:00")
    )


def test_a_series_can_move_to_another_day_across_a_clock_change() -> None:
    sundays = hour_long_meetings("2030-03-24T08:00", "2030-03-31T07:00")
    monday = hour_long_meetings("2030-04-01T07:00")[0]
    moved = shift_all(sundays, sundays[1], monday, "Europe/Berlin")
    assert moved == hour_long_meetings("2030-03-25T08:00", "2030-04-01T07:00")


def test_a_change_of_the_duration_moves_no_start() -> None:
    # Also for the second 02:30 of the day, which no naive local time can name.
    before = hour_long_meetings("2030-10-20T00:30", "2030-10-27T01:30")
    longer = Meeting(before[0].start, before[0].end + HOUR)
    moved = shift_all(before, before[0], longer, "Europe/Berlin")
    assert moved == tuple(Meeting(meeting.start, meeting.end + HOUR) for meeting in before)


def test_each_duration_changes_by_the_same_amount() -> None:
    before = (
        Meeting(instant("2030-01-01T09:00"), instant("2030-01-01T10:00")),
        Meeting(instant("2030-01-02T09:00"), instant("2030-01-02T10:30")),
    )
    after = Meeting(instant("2030-01-01T08:00"), instant("2030-01-01T08:45"))
    assert shift_all(before, before[0], after, "UTC") == (
        after,
        Meeting(instant("2030-01-02T08:00"), instant("2030-01-02T09:15")),
    )
    half = Meeting(before[0].start, before[0].start + HOUR / 2)
    outcome = shift_all((before[0], half), before[0], half, "UTC")
    assert isinstance(outcome, InvalidInput)
    assert outcome.problems[0].field == "endTime"


def test_the_edited_meeting_is_exactly_the_new_one() -> None:
    before = hour_long_meetings("2030-10-26T12:00", "2030-10-27T12:00")
    second_half_past_two = hour_long_meetings("2030-10-27T01:30")[0]
    moved = shift_all(before, before[1], second_half_past_two, "Europe/Berlin")
    assert isinstance(moved, tuple)
    assert moved[1] == second_half_past_two


@pytest.mark.parametrize(
    ("new", "zone", "field"),
    [
        (("2030-01-01T10:00", "2030-01-01T10:00"), "Europe/Berlin", "endTime"),
        (("2030-01-01T10:00", "2030-01-01T11:00"), "Europe/Nowhere", "timeZone"),
        (("9999-12-31T22:00", "9999-12-31T23:59"), "Asia/Tokyo", "startTime"),
        (("0001-01-01T00:00", "0001-01-01T01:00"), "America/New_York", "startTime"),
    ],
)
def test_an_invalid_shift_names_the_field(new: tuple[str, str], zone: str, field: str) -> None:
    before = hour_long_meetings("2030-01-01T09:00", "2031-01-01T09:00")
    after = Meeting(instant(new[0]), instant(new[1]))
    outcome = shift_all(before, before[0], after, zone)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [field]
    assert all(isinstance(problem, FieldProblem) for problem in outcome.problems)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("limit", ["0001-01-01T00:00", "9999-12-31T22:00"])
def test_shortening_at_the_limits_of_datetime_is_invalid_in_any_zone(zone: str, limit: str) -> None:
    start = instant("2030-05-17T09:00")
    old, new = Meeting(start, start + 3 * HOUR), Meeting(start, start + HOUR)
    outcome = shift_all([old, *hour_long_meetings(limit)], old, new, zone)
    assert isinstance(outcome, InvalidInput)
