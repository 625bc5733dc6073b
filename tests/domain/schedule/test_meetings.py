"""Overlaps between meetings, and the validation of a slot's meetings."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import (
    MAX_MEETINGS,
    Meeting,
    first_overlap,
    validate_meetings,
)

DAY = datetime(2030, 5, 17, tzinfo=UTC)


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


@settings(deadline=None)
@given(one=sorted_meetings, other=sorted_meetings)
def test_first_overlap_finds_a_pair_exactly_if_one_exists(
    one: list[Meeting], other: list[Meeting]
) -> None:
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
        ([meeting(9, 9)], "The meeting at 2030-05-17T09:00:00+00:00 must end after it starts."),
        ([meeting(9, 8)], "The meeting at 2030-05-17T09:00:00+00:00 must end after it starts."),
        (
            [meeting(9, 10), meeting(7, 8)],
            "Please sort the meetings by start: "
            "the one at 2030-05-17T07:00:00+00:00 comes too late.",
        ),
        (
            [meeting(9, 11), meeting(10, 12)],
            "The meetings at 2030-05-17T09:00:00+00:00 and 2030-05-17T10:00:00+00:00 overlap.",
        ),
        (
            [meeting(9, 10), meeting(9, 10)],
            "The meetings at 2030-05-17T09:00:00+00:00 and 2030-05-17T09:00:00+00:00 overlap.",
        ),
    ],
)
def test_invalid_meetings_are_named_in_the_problem(meetings: list[Meeting], problem: str) -> None:
    assert validate_meetings(meetings, UTC) == problem
    assert validate_meetings([meeting(9, 10), meeting(10, 11)], UTC) is None
