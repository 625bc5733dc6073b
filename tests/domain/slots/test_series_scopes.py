"""Which slots of a series a change applies to, and how they move together."""

from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.series import SeriesScope, changes_per_slot, is_in_scope, plan_edit
from slotlock.domain.slots.slot_patch import SlotPatch
from tests.support.domain.builders import HOUR, build_patch, build_slot, hour_from

# Mondays at nine in Berlin, across a clock change.
STARTS = ["2031-03-17T08:00", "2031-03-24T08:00", "2031-03-31T07:00", "2031-04-07T07:00"]
FIRST, SECOND, THIRD, LAST = (
    build_slot(
        id=SlotId(start), start=meeting.start, end=meeting.end, series_id=SeriesId("mondays")
    ).slot
    for start, meeting in ((start, hour_from(start)) for start in STARTS)
)
LONG_BEFORE = FIRST.start - timedelta(days=30)
OF_TIMETABLE = Timetable(FIRST.start.date(), FIRST.start.date(), extra=(hour_from(STARTS[0]),))


def starts_after(slots: list[Slot], **changes: object) -> list[str]:
    """Return the starts of slots after a change of the first of them."""
    by_slot = changes_per_slot(slots, build_patch(**changes))
    assert isinstance(by_slot, dict), by_slot
    moved = [by_slot[slot.id].apply_to(slot) for slot in slots]
    return [slot.start.isoformat()[5:16] for slot in moved]


def invalid_fields(slots: list[Slot], changes: SlotPatch) -> list[str]:
    """Return the names of the invalid fields of a change."""
    outcome = plan_edit(changes, slots)
    assert isinstance(outcome, InvalidInput)
    return [problem.field for problem in outcome.problems]


@pytest.mark.parametrize(
    ("scope", "others"),
    [(SeriesScope.THIS_AND_FOLLOWING, [THIRD, LAST]), (SeriesScope.ALL, [FIRST, THIRD, LAST])],
)
def test_a_change_applies_to_the_slots_in_its_scope(scope: SeriesScope, others: list[Slot]) -> None:
    series = (FIRST, THIRD, LAST)
    assert [slot for slot in series if is_in_scope(slot, SECOND, scope, LONG_BEFORE)] == others


def test_slots_that_are_over_or_cancelled_do_not_change_with_their_series() -> None:
    off = build_slot(start=LAST.start, end=LAST.end, status=SlotStatus.CANCELLED).slot
    assert not is_in_scope(off, FIRST, SeriesScope.ALL, LONG_BEFORE)
    assert not is_in_scope(FIRST, THIRD, SeriesScope.ALL, FIRST.end)
    assert is_in_scope(FIRST, THIRD, SeriesScope.ALL, FIRST.start)  # it has begun


def test_all_slots_move_by_as_many_days_as_the_changed_one() -> None:
    later = {"start": SECOND.start + 25 * HOUR, "end": SECOND.end + 26 * HOUR}
    moved = ["03-25T09:00", "03-18T09:00", "04-01T08:00"]
    assert starts_after([SECOND, FIRST, THIRD], **later) == moved


def test_a_new_zone_moves_slots_only_with_a_new_start() -> None:
    zone = {"time_zone": "America/New_York"}
    longer = {**zone, "end": FIRST.end + HOUR}
    assert starts_after([FIRST, THIRD], **longer) == ["03-17T08:00", "03-31T07:00"]
    nine = {**zone, "start": FIRST.start + 5 * HOUR, "end": FIRST.end + 5 * HOUR}
    assert starts_after([FIRST, THIRD], **nine) == ["03-17T13:00", "03-31T13:00"]


def test_a_series_that_contains_a_course_moves_only_slot_by_slot() -> None:
    meetings = (Meeting(LAST.start, LAST.end),)
    course = build_slot(start=LAST.start, end=LAST.end, meetings=meetings).slot
    moved = build_patch(start=SECOND.start + HOUR, end=SECOND.end + HOUR)
    assert invalid_fields([SECOND, course], moved) == ["startTime"]
    assert not isinstance(plan_edit(moved, [SECOND]), InvalidInput)
    assert not isinstance(plan_edit(build_patch(title="Choir"), [SECOND, course]), InvalidInput)


def test_a_timetable_is_for_one_slot() -> None:
    for timetable in (OF_TIMETABLE, None):
        changes = build_patch(timetable=timetable)
        assert invalid_fields([FIRST, SECOND], changes) == ["timetable"]
        assert not isinstance(plan_edit(changes, [FIRST]), InvalidInput)
