"""Two published slots of one resource never overlap."""

from datetime import UTC, datetime, timedelta
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.resource_conflicts import ResourceUsage
from slotlock.domain.slots.series import split_conflicts
from tests.support.domain.builders import NOW, build_slot, with_facts

HOUR = timedelta(hours=1)


def use(name: str, begins: int, lasts: int = 1, resource: str | None = "Room 5") -> SlotState:
    """Return a slot that uses a resource for a number of hours from a given hour."""
    start = NOW + begins * HOUR
    times = {"start": start, "end": start + lasts * HOUR}
    return build_slot(1, id=SlotId(name), resource=resource, **times)


def course(name: str, begins: list[int], lasts: int, resource: str) -> SlotState:
    """Return a slot with a meeting from each of these hours, which ends when the next starts."""
    ends = [
        min(start + lasts, later) for start, later in zip(begins, [*begins[1:], 99], strict=True)
    ]
    meetings = tuple(
        Meeting(NOW + start * HOUR, NOW + end * HOUR)
        for start, end in zip(begins, ends, strict=True)
    )
    times = {"start": meetings[0].start, "end": meetings[-1].end}
    return build_slot(1, id=SlotId(name), resource=resource, meetings=meetings, **times)


def overlaps(one: SlotState, other: SlotState) -> bool:
    """Return whether two slots overlap."""
    return one.slot.start < other.slot.end and other.slot.start < one.slot.end


def test_adjacent_slots_do_not_conflict() -> None:
    occupied = ResourceUsage.from_slots([use("a", 1), use("b", 3)])
    assert occupied.conflict_with(use("c", 2).slot) is None
    assert occupied.conflict_with(use("c", 2, lasts=2).slot) is not None


def test_a_conflict_names_the_other_slot_and_both_meetings() -> None:
    long, short = use("long", 0, lasts=10), use("short", 4)
    clash = ResourceUsage.from_slots([long]).conflict_with(short.slot)
    assert clash is not None
    assert (clash.other, clash.meeting, clash.other_meeting) == (
        long,
        *short.slot.all_meetings,
        *long.slot.all_meetings,
    )


def test_drafts_cancelled_slots_and_other_resources_do_not_conflict() -> None:
    others = [
        with_facts(use("a", 1), status=SlotStatus.DRAFT),
        with_facts(use("b", 1), status=SlotStatus.CANCELLED),
        use("c", 1, resource="Room 6"),
        use("d", 1, resource=None),
    ]
    assert ResourceUsage.from_slots(others).conflict_with(use("e", 1).slot) is None
    draft = with_facts(use("e", 1), status=SlotStatus.DRAFT)
    assert ResourceUsage.from_slots([use("a", 1)]).conflict_with(draft.slot) is None


def test_a_slot_does_not_conflict_with_itself() -> None:
    assert ResourceUsage.from_slots([use("a", 1)]).conflict_with(use("a", 1).slot) is None


def test_a_course_uses_its_resource_only_during_its_meetings() -> None:
    mornings = tuple(
        Meeting(NOW + timedelta(days=day), NOW + timedelta(days=day) + HOUR) for day in range(30)
    )
    course = with_facts(use("course", 0), end=mornings[-1].end, meetings=mornings)
    occupied = ResourceUsage.from_slots([course])
    assert occupied.conflict_with(use("later that day", 24 * 3 + 2).slot) is None
    assert occupied.conflict_with(use("in the course", 24 * 3).slot) is not None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12))
def test_meetings_that_the_search_skips_never_conflict(spans: list[tuple[int, int]]) -> None:
    slots = [use(str(n), begins, lasts) for n, (begins, lasts) in enumerate(spans)]
    for number, one in enumerate(slots):
        others = slots[:number]
        overlap = any(overlaps(one, other) for other in others)
        assert (ResourceUsage.from_slots(others).conflict_with(one.slot) is not None) == overlap


courses = st.sets(st.integers(0, 20), min_size=1, max_size=4).map(sorted)


@given(st.lists(st.tuples(courses, st.integers(1, 3), st.sampled_from("AB")), max_size=8))
def test_the_search_finds_all_course_conflicts(made: list[tuple[list[int], int, str]]) -> None:
    slots = [course(str(n), *each) for n, each in enumerate(made)]
    for one in slots:
        others = [
            other
            for other in slots
            if other.id != one.id and other.slot.resource == one.slot.resource
        ]
        expected = [
            (own, other_meeting, other)
            for other in others
            for own, other_meeting in product(one.slot.all_meetings, other.slot.all_meetings)
            if own.start < other_meeting.end and other_meeting.start < own.end
        ]
        clash = ResourceUsage.from_slots(slots).conflict_with(one.slot)
        assert (clash is not None) == bool(expected)
        assert clash is None or (clash.meeting, clash.other_meeting, clash.other) in expected


FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("times", [(FIRST, LAST), (NOW, LAST), (FIRST, NOW + 2 * HOUR)])
def test_a_very_long_slot_conflicts_like_any_other(times: tuple[datetime, datetime]) -> None:
    ages = with_facts(use("ages", 0), start=times[0], end=times[1])
    usage = ResourceUsage.from_slots([ages, use("long over", -48)])
    clash = usage.conflict_with(use("a", 1).slot)
    assert clash is not None
    assert clash.other == ages
    assert ResourceUsage.from_slots([use("a", 1)]).conflict_with(ages.slot) is not None
    free, conflicts = split_conflicts([use("a", 0), use("b", 1), use("c", 24)], [ages])
    assert all(conflict.other == ages for conflict in conflicts)
    assert [slot.id for slot in free] == (["c"] if times[1] < LAST else [])


@given(st.lists(st.integers(0, 40), max_size=20), st.lists(st.integers(0, 40), max_size=5))
def test_the_free_slots_of_a_series_do_not_overlap(starts: list[int], taken: list[int]) -> None:
    series = [use(f"s{n}", begins, 3) for n, begins in enumerate(sorted(starts))]
    others = [use(f"o{n}", begins, 2) for n, begins in enumerate(taken)]
    free, conflicts = split_conflicts(series, others)
    assert len(free) + len(conflicts) == len(series)
    pairs = [*combinations(free, 2), *((one, other) for one in free for other in others)]
    assert not any(overlaps(one, other) for one, other in pairs)
