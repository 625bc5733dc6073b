"""Local times around clock changes, shifts of series, and the changes of UTC offsets."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zone_transitions import YearlyRule, clock_changes, yearly_rule
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
    assert shift_all(nine, ["Europe/Berlin"] * 3, ten) == tuple(
        Meeting(instant(start), instant(start) + 1.5 * HOUR)
        for start in ("2030-03-22T09:00", "2030-03-29T09:00", "2030-04-05T08:00")
    )


def test_a_series_can_move_to_another_day_across_a_clock_change() -> None:
    sundays = hour_long_meetings("2030-03-31T07:00", "2030-03-24T08:00")
    monday = hour_long_meetings("2030-04-01T07:00")[0]
    moved = shift_all(sundays, ["Europe/Berlin"] * 2, monday)
    assert moved == hour_long_meetings("2030-04-01T07:00", "2030-03-25T08:00")


def test_a_change_of_the_duration_moves_no_start() -> None:
    # Also for the second 02:30 of the day, which no naive local time can name.
    before = hour_long_meetings("2030-10-20T00:30", "2030-10-27T01:30")
    longer = Meeting(before[0].start, before[0].end + HOUR)
    moved = shift_all(before, ["Europe/Berlin"] * 2, longer)
    assert moved == tuple(Meeting(meeting.start, meeting.end + HOUR) for meeting in before)


def test_each_duration_changes_by_the_same_amount() -> None:
    before = (
        Meeting(instant("2030-01-01T09:00"), instant("2030-01-01T10:00")),
        Meeting(instant("2030-01-02T09:00"), instant("2030-01-02T10:30")),
    )
    after = Meeting(instant("2030-01-01T08:00"), instant("2030-01-01T08:45"))
    assert shift_all(before, ["UTC"] * 2, after) == (
        after,
        Meeting(instant("2030-01-02T08:00"), instant("2030-01-02T09:15")),
    )
    half = Meeting(before[0].start, before[0].start + HOUR / 2)
    outcome = shift_all((before[0], half), ["UTC"] * 2, half)
    assert isinstance(outcome, InvalidInput)
    assert outcome.problems[0].field == "endTime"


def test_the_edited_meeting_is_exactly_the_new_one() -> None:
    before = hour_long_meetings("2030-10-27T12:00", "2030-10-26T12:00")
    second_half_past_two = hour_long_meetings("2030-10-27T01:30")[0]
    moved = shift_all(before, ["Europe/Berlin"] * 2, second_half_past_two)
    assert isinstance(moved, tuple)
    assert moved[0] == second_half_past_two


# Their clocks change by half an hour, a day or two hours, around a fast, or never.
ODD_ZONES = ["Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Kathmandu",
             "Antarctica/Troll", "Pacific/Chatham", "Europe/Berlin", "Asia/Tehran"]  # fmt: skip
odd_zones = st.sampled_from(ODD_ZONES)
local_times = st.datetimes(datetime(2010, 1, 1), datetime(2032, 1, 1))  # noqa: DTZ001


@given(zones=st.tuples(odd_zones, odd_zones, odd_zones), start=local_times, new_start=local_times,
       day_numbers=st.lists(st.integers(0, 400), min_size=1, max_size=8))  # fmt: skip
def test_the_wall_clock_of_each_old_zone_becomes_that_of_the_new_one(
    zones: tuple[str, str, str], start: datetime, new_start: datetime, day_numbers: list[int]
) -> None:
    one, other, new = map(ZoneInfo, zones)
    olds = [one] + [other if number % 2 else one for number in day_numbers]
    starts = [
        to_instant(start + timedelta(days=number), old)
        for number, old in zip([0, *day_numbers], olds, strict=True)
    ]
    before = [Meeting(each, each + HOUR) for each in starts]
    first = Meeting(to_instant(new_start, new), to_instant(new_start, new) + 2 * HOUR)
    moved = shift_all(before, [old.key for old in olds], first, new.key)
    assert isinstance(moved, tuple)
    assert moved[0] == first
    shift = to_wall_clock(first.start, new) - to_wall_clock(before[0].start, one)
    for meeting, after, old in zip(before, moved, olds, strict=True):
        wanted, found = to_wall_clock(meeting.start, old) + shift, to_wall_clock(after.start, new)
        assert after.end - after.start == 2 * HOUR
        if skipped := found - wanted:  # the clock goes forward over this time
            assert to_wall_clock(after.start - skipped, new) < wanted < found


def test_a_meeting_at_the_second_of_two_equal_times_moves_to_a_zone_with_the_same_clock() -> None:
    before = hour_long_meetings("2030-10-20T00:30", "2030-10-27T01:30")
    moved = shift_all(before, ["Europe/Berlin"] * 2, before[0], "Europe/Paris")
    assert moved == before


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
    outcome = shift_all(before, ["Europe/Berlin"] * 2, after, zone)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [field]
    assert all(isinstance(problem, FieldProblem) for problem in outcome.problems)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("limit", ["0001-01-01T00:00", "9999-12-31T22:00"])
def test_shortening_at_the_limits_of_datetime_is_invalid_in_any_zone(zone: str, limit: str) -> None:
    start = instant("2030-05-17T09:00")
    old, new = Meeting(start, start + 3 * HOUR), Meeting(start, start + HOUR)
    outcome = shift_all([old, *hour_long_meetings(limit)], [zone] * 2, new)
    assert isinstance(outcome, InvalidInput)


def offset_at(changes: list[tuple[datetime, timedelta]], instant: datetime) -> timedelta:
    """Return the offset at an instant by the changes before it."""
    return [offset_after for at, offset_after in changes if at <= instant][-1]


def test_the_changes_of_every_zone_give_its_offset_at_any_instant() -> None:
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        first, *later = clock_changes(zone, 2024, 2028)
        changes = [(datetime(2024, 1, 1, tzinfo=UTC), first.offset_after)]
        changes += [
            ((c.wall_time - c.offset_before).replace(tzinfo=UTC), c.offset_after) for c in later
        ]
        assert all(
            c.offset_before == before for c, (_, before) in zip(later, changes, strict=False)
        )
        instant = datetime(2024, 1, 1, tzinfo=UTC)
        while instant.year < 2029:
            assert offset_at(changes, instant) == instant.astimezone(zone).utcoffset(), name
            instant += timedelta(hours=13)
        for at, after in changes[1:]:
            assert at.astimezone(zone).utcoffset() == after, name
            assert (at - timedelta(seconds=1)).astimezone(zone).utcoffset() != after, name


@pytest.mark.parametrize(
    ("name", "forward", "back"),
    [
        ("Europe/Berlin", YearlyRule(3, -1, 6), YearlyRule(10, -1, 6)),
        ("America/New_York", YearlyRule(3, 2, 6), YearlyRule(11, 1, 6)),
        ("Australia/Sydney", YearlyRule(10, 1, 6), YearlyRule(4, 1, 6)),
        ("Pacific/Auckland", YearlyRule(9, -1, 6), YearlyRule(4, 1, 6)),
        ("Africa/Casablanca", None, None),
    ],
)
def test_changes_that_come_every_year_give_a_rule(
    name: str, forward: YearlyRule | None, back: YearlyRule | None
) -> None:
    _, *changes = clock_changes(ZoneInfo(name), 2026, 2040)
    for rule, is_forward in ((forward, True), (back, False)):
        same_direction = [
            change
            for change in changes
            if (change.offset_after > change.offset_before) is is_forward
        ]
        assert yearly_rule(same_direction, 2040) == rule
