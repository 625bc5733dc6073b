"""When two people's meetings collide, and what can be the meetings of one thing."""

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
    """A meeting between two hours of one day."""
    return Meeting(DAY + timedelta(hours=start), DAY + timedelta(hours=end))


spans = st.tuples(st.integers(0, 60), st.integers(1, 12))
sorted_meetings = st.lists(
    spans.map(lambda span: meeting(span[0], span[0] + span[1])), max_size=12
).map(lambda meetings: sorted(meetings, key=lambda each: each.start))


def collide(one: Meeting, other: Meeting) -> bool:
    """Whether there is an instant at which both are going on."""
    return max(one.start, other.start) < min(one.end, other.end)


def test_meetings_that_touch_do_not_overlap() -> None:
    assert first_overlap([meeting(9, 10), meeting(11, 12)], [meeting(10, 11)]) is None


def test_the_two_that_collide_are_named_each_on_its_side() -> None:
    mine, theirs = [meeting(8, 9), meeting(10, 12)], [meeting(9, 10), meeting(11, 13)]
    assert first_overlap(mine, theirs) == (meeting(10, 12), meeting(11, 13))
    assert first_overlap(theirs, mine) == (meeting(11, 13), meeting(10, 12))


def test_a_long_meeting_collides_with_what_goes_on_within_it() -> None:
    assert first_overlap([meeting(0, 23)], [meeting(5, 6)]) == (meeting(0, 23), meeting(5, 6))


@settings(deadline=None)
@given(one=sorted_meetings, other=sorted_meetings)
def test_an_overlap_is_found_exactly_if_there_is_one(
    one: list[Meeting], other: list[Meeting]
) -> None:
    found = first_overlap(one, other)
    assert (found is not None) == any(collide(mine, theirs) for mine in one for theirs in other)
    if found:
        assert found[0] in one
        assert found[1] in other
        assert collide(*found)


def test_nothing_and_too_much_cannot_be_the_meetings_of_one_thing() -> None:
    many = [meeting(hour, hour + 1) for hour in range(MAX_MEETINGS + 1)]
    assert validate_meetings(many[:-1], UTC) is None
    for meetings in ([], many):
        assert validate_meetings(meetings, UTC) == "From 1 to 500 meetings."


@pytest.mark.parametrize(
    ("meetings", "problem"),
    [
        ([meeting(9, 9)], "A meeting must end after its start: 2030-05-17T09:00:00+00:00."),
        ([meeting(9, 8)], "A meeting must end after its start: 2030-05-17T09:00:00+00:00."),
        (
            [meeting(9, 10), meeting(7, 8)],
            "Meetings are in order of their start: 2030-05-17T07:00:00+00:00.",
        ),
        (
            [meeting(9, 11), meeting(10, 12)],
            "Meetings overlap: 2030-05-17T09:00:00+00:00 and 2030-05-17T10:00:00+00:00.",
        ),
        (
            [meeting(9, 10), meeting(9, 10)],
            "Meetings overlap: 2030-05-17T09:00:00+00:00 and 2030-05-17T09:00:00+00:00.",
        ),
    ],
)
def test_meetings_that_cannot_be_are_named(meetings: list[Meeting], problem: str) -> None:
    assert validate_meetings(meetings, UTC) == problem
    assert validate_meetings([meeting(9, 10), meeting(10, 11)], UTC) is None
