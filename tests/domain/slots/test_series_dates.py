"""The dates of a series, and what a reading selects of a slot."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotCancellation, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import GroupLimit, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.selected_slot import SelectedSlot
from slotlock.domain.slots.series import split_conflicts
from slotlock.domain.slots.series_dates import (
    PlannedDates,
    PlannedRemoval,
    SlotsHaveBookings,
    plan_added_dates,
    plan_removal,
)
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    minutes_from_now,
    with_facts,
)

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
START = NOW + DAY
NEW_IDS = [SlotId(f"new {number}") for number in range(500)]
OF_THE_COPY = {"id", "start", "end", "revised_at", "revision", "cancellation", "number"}


def on_day(day: int, hours: int = 1, **values: object) -> SlotState:
    """Return a slot some days after START."""
    start = START + day * DAY
    values = {"id": f"day {day}", "start": start, "end": start + hours * HOUR, **values}
    return with_facts(build_slot(), **values)


def plan(
    series: Sequence[SlotState], *days: float, allow_past: bool = False
) -> PlannedDates | InvalidInput:
    """Plan to add dates some days after START."""
    starts = [START + day * DAY for day in days]
    return plan_added_dates(series, starts, NEW_IDS, NOW, allow_past=allow_past)


def planned(series: Sequence[SlotState], *days: float) -> PlannedDates:
    """Plan to add dates that are valid."""
    dates = plan(series, *days)
    assert isinstance(dates, PlannedDates), dates
    return dates


def problem(series: Sequence[SlotState], *days: float) -> str:
    """Return the problem of dates."""
    invalid = plan(series, *days)
    assert isinstance(invalid, InvalidInput), invalid
    assert [each.field for each in invalid.problems] == ["startTimes"]
    return invalid.problems[0].message


def test_a_new_slot_has_every_setting_of_the_nearest_slot() -> None:
    nearest = on_day(
        7,
        hours=3,
        title="Judo",
        number="7",
        capacity=9,
        location="Gym",
        hold_minutes=9,
        cancel_cutoff_minutes=60,
        waitlist_capacity=3,
        waitlist_offer_minutes=30,
        choice_group="sports",
        group_limits=(GroupLimit("5a", 2),),
        resource="Room 1",
        several_resources=("Room 1", "Mats"),
        admission=SlotAdmission.QUEUE_ONLY,
        hold_cooldown_minutes=5,
        revision=4,
    )
    dates = planned([on_day(0), nearest], 9)
    (copy,) = dates.slots
    assert (copy.id, copy.start, copy.end - copy.start) == (NEW_IDS[0], START + 9 * DAY, 3 * HOUR)
    assert (copy.revision, copy.revised_at, copy.cancellation) == (0, NOW, None)
    assert copy.number is None
    names = {field.name for field in fields(Slot)} - OF_THE_COPY
    assert all(getattr(copy, name) == getattr(nearest.slot, name) for name in names)
    assert dates.template_ids == (nearest.id,)


def test_of_two_equally_near_slots_the_earlier_one_is_copied() -> None:
    dates = planned([on_day(0), on_day(4), on_day(8)], -0.5, 2, 5, 6, 7)
    assert dates.template_ids == ("day 0", "day 0", "day 4", "day 4", "day 8")


def test_dates_that_the_series_has_are_reported_and_get_no_second_slot() -> None:
    series = [on_day(0), on_day(7)]
    dates = planned(series, 7, 14, 0, 14)
    assert [slot.start for slot in dates.slots] == [START + 14 * DAY]
    assert dates.existing == tuple(series)


def test_a_cancelled_slot_does_not_occupy_its_date_and_is_not_copied() -> None:
    dates = planned([on_day(0), on_day(7, status=SlotStatus.CANCELLED)], 7)
    assert (dates.template_ids, dates.existing) == (("day 0",), ())
    assert dates.slots[0].status is SlotStatus.PUBLISHED


def test_if_all_slots_are_cancelled_the_copy_is_a_draft() -> None:
    cancellation = SlotCancellation(NOW, UserId("eve"))
    series = [on_day(0, status=SlotStatus.CANCELLED, cancellation=cancellation)]
    (copy,) = planned(series, 7).slots
    assert (copy.status, copy.cancellation) == (SlotStatus.DRAFT, None)


def test_a_course_in_the_series_is_not_copied() -> None:
    meetings = (Meeting(START + 7 * DAY, START + 7 * DAY + HOUR),)
    course = on_day(7, meetings=meetings)
    assert planned([on_day(0), course], 8).template_ids == ("day 0",)
    assert "timetable" in problem([course], 8)


def test_a_date_in_the_past_needs_permission() -> None:
    past = "The slot at 2030-05-16 16:00:00 Europe/Berlin lies in the past."
    assert problem([on_day(0)], -1, -2, 1) == past
    assert isinstance(plan([on_day(0)], -2, 1, allow_past=True), PlannedDates)


def test_a_series_has_at_most_500_slots_within_five_years() -> None:
    assert problem([on_day(0)]) == "Please enter 1 to 500 times."
    assert problem([on_day(0)], *range(501)) == "Please enter 1 to 500 times."
    assert len(planned([on_day(0)], *range(500)).slots) == 499
    assert "it has 2" in problem([on_day(0), on_day(600)], *range(1, 500))
    assert len(planned([on_day(0)], 5 * 366).slots) == 1
    assert "five years" in problem([on_day(0)], 5 * 366 + 1)
    assert "year" in problem([on_day(0)], 365 * 70)


def test_slots_of_different_lengths_cannot_share_a_resource_at_the_same_time() -> None:
    long = on_day(0, hours=50, resource="Room 1")
    within = [on_day(day, resource="Room 1") for day in (1, 2, 3)]
    free, conflicts = split_conflicts([long, *within], ())
    assert free == (long, within[2])
    assert [conflict.other for conflict in conflicts] == [long, long]


def test_slots_without_a_history_are_deleted_and_others_only_cancelled_on_request() -> None:
    booked, _ = book_users(on_day(0), "ada")
    unused, used, over = on_day(1), on_day(2), on_day(3, status=SlotStatus.CANCELLED)
    slots, history = [booked, unused, used, over], {used.id, over.id}
    refused = plan_removal(slots, history, cancel_booked=False)
    assert refused == SlotsHaveBookings((booked.id, used.id))
    removal = plan_removal(slots, history, cancel_booked=True)
    assert removal == PlannedRemoval((unused,), (booked, used), (over,))


@pytest.mark.parametrize("status", list(SlotStatus))
def test_a_slot_without_a_history_is_deleted_whatever_its_status(status: SlotStatus) -> None:
    slot = on_day(0, status=status)
    assert plan_removal([slot], (), cancel_booked=True) == PlannedRemoval((slot,), (), ())


def read_slot_with_a_hold() -> SelectedSlot:
    """Return the bookings of a slot, which are one hold for five minutes, and its status."""
    state, _ = book_place(build_slot(), booking_request("ada", hold=True))
    reading = SelectedSlot()
    reading.bookings = state.bookings
    for name, value in (("id", state.id), ("status", SlotStatus.PUBLISHED)):
        setattr(reading, name, value)
    return reading


def test_a_reading_without_expired_holds_has_its_other_attributes() -> None:
    reading = read_slot_with_a_hold()
    later = reading.without_expired(minutes_from_now(5))
    assert (later.id, later.status, later.bookings) == (reading.id, reading.status, ())
    assert len(reading.bookings) == 1
    assert reading.without_expired(minutes_from_now(4)) is reading


def test_an_attribute_that_was_not_selected_is_missing() -> None:
    reading = read_slot_with_a_hold()
    for each in (reading, reading.without_expired(minutes_from_now(5))):
        with pytest.raises(AttributeError):
            _ = each.title
        with pytest.raises(AttributeError):
            _ = each.remaining
