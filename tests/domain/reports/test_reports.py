"""Campaign statistics, rosters and calendar events: what they contain, and when."""

from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import BookingId, BookingStatus
from slotlock.domain.booking.rules.booking_changes import cancel, confirm
from slotlock.domain.booking.slot import SlotCancellation, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.reports.calendar_events import (
    CANCELLED_SHOWN,
    HISTORY_SHOWN,
    PUBLISHED_SHOWN,
    CalendarEvent,
    EventStatus,
    events_of_booking,
    events_of_slot,
    events_of_user,
)
from slotlock.domain.reports.campaign_reports import (
    Interval,
    TimeSeriesPoint,
    TimeWindow,
    TooManyPoints,
    to_time_series,
    to_time_window,
)
from slotlock.domain.reports.roster import PlaceCounts, RosterUser, build_roster, user_ids_in
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.editing import cancel_slot, edit
from slotlock.domain.slots.slot_patch import SlotPatch
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_patch,
    build_slot,
    change_request,
    with_facts,
    with_waitlist,
)
from tests.support.domain.decisions import as_written, decide

HOUR = timedelta(hours=1)
ADA, BEN, OLGA = UserId("ada"), UserId("ben"), UserId("olga")
USERS = {
    ADA: RosterUser("Ada", "ada@slotlock.test", ("5a",)),
    BEN: RosterUser("Ben", "ben@slotlock.test"),
    OLGA: RosterUser("Olga", "olga@slotlock.test"),
}
DAY = timedelta(days=1)
COURSE_MEETINGS = tuple(Meeting(NOW + n * DAY, NOW + n * DAY + HOUR) for n in range(1, 5))


@pytest.mark.parametrize("interval", Interval)
def test_an_interval_has_the_length_of_its_name(interval: Interval) -> None:
    days = {Interval.MINUTE: 1 / 1440, Interval.HOUR: 1 / 24, Interval.DAY: 1}
    assert interval.length == timedelta(days=days[interval])


def test_a_window_lasts_from_the_opening_until_now_by_default() -> None:
    opened = NOW - timedelta(hours=2, minutes=30)
    window = to_time_window(Interval.HOUR, None, None, opened, NOW)
    assert window == TimeWindow(opened, NOW, Interval.HOUR, ends_now=True)
    assert window.point_count == 3


def test_a_window_of_whole_intervals_has_no_empty_one_at_its_end() -> None:
    window = to_time_window(Interval.HOUR, NOW - 3 * HOUR, NOW, NOW, NOW)
    assert isinstance(window, TimeWindow)
    assert window.point_count == 3


def test_the_window_of_a_campaign_that_has_just_opened_starts_with_the_opening() -> None:
    opened = NOW - timedelta(minutes=10)
    window = to_time_window(Interval.HOUR, None, None, opened, NOW)
    assert isinstance(window, TimeWindow)
    assert (window.start, window.point_count) == (opened, 1)


def test_before_the_opening_the_window_is_the_last_interval() -> None:
    assert to_time_window(Interval.HOUR, None, None, NOW + HOUR, NOW) == TimeWindow(
        NOW - HOUR, NOW, Interval.HOUR, ends_now=True
    )


def test_a_window_has_at_most_1000_intervals() -> None:
    start, length = NOW - timedelta(days=2), timedelta(minutes=1)
    window = to_time_window(Interval.MINUTE, start, start + 1000 * length, NOW, NOW)
    assert isinstance(window, TimeWindow)
    assert window.point_count == 1000
    later = start + 1000 * length + timedelta(milliseconds=1)
    assert to_time_window(Interval.MINUTE, start, later, NOW, NOW) == TooManyPoints(1000)
    assert to_time_window(Interval.MINUTE, start, None, NOW, NOW) == window


def test_bookings_before_the_window_count_in_its_totals() -> None:
    window = TimeWindow(NOW - 3 * HOUR, NOW, Interval.HOUR, ends_now=True)
    assert to_time_series(window, {-1: (5, 2), 0: (4, 1), 2: (0, 6)}) == (
        TimeSeriesPoint(NOW - 3 * HOUR, 4, 1, 6),
        TimeSeriesPoint(NOW - 2 * HOUR, 0, 0, 6),
        TimeSeriesPoint(NOW - HOUR, 0, 6, 0),
    )


def test_a_roster_names_the_users_and_the_creators_of_their_bookings() -> None:
    slot, _ = book_users(build_slot(3), "ada")
    slot, _ = book_place(slot, booking_request("ben", organizer="olga"))
    assert user_ids_in(slot) == {ADA, BEN, OLGA}
    roster = build_roster(slot, USERS, NOW)
    assert [(row.name, row.groups, row.made_by) for row in roster.rows] == [
        ("Ada", ("5a",), None),
        ("Ben", (), "Olga"),
    ]
    assert roster.counts == PlaceCounts(places=3, confirmed=2, free=1)


def test_a_hold_is_in_the_roster_until_it_expires() -> None:
    slot, hold = book_place(build_slot(2), booking_request("ada", hold=True))
    until = hold.held_until
    assert until is not None
    before = build_roster(slot, USERS, until - timedelta(milliseconds=1))
    assert [row.booking for row in before.rows] == [hold]
    assert before.counts == PlaceCounts(places=2, held=1, free=1)
    assert build_roster(slot, USERS, until).counts == PlaceCounts(places=2, free=2)


def test_a_place_for_the_waitlist_is_not_free() -> None:
    slot, _ = book_place(build_slot(1), booking_request("ada", hold=True))
    slot = with_waitlist(slot, "ben")
    later = NOW + timedelta(hours=1)
    assert build_roster(slot, USERS, later).counts == PlaceCounts(places=1, waiting=1)


def test_bookings_of_a_cancelled_slot_are_cancelled_and_no_place_is_free() -> None:
    slot, _ = book_users(build_slot(3), "ada", "ben")
    cancelled_slot = with_facts(
        slot, status=SlotStatus.CANCELLED, cancellation=SlotCancellation(NOW, OLGA)
    )
    roster = build_roster(cancelled_slot, USERS, NOW)
    assert {row.status for row in roster.rows} == {BookingStatus.CANCELLED}
    assert roster.counts == PlaceCounts(places=3, cancelled=2)


def test_an_unknown_user_has_an_empty_name() -> None:
    slot, (booking,) = book_users(build_slot(1), "nobody")
    assert booking.id != BookingId("")
    (row,) = build_roster(slot, USERS, NOW).rows
    assert (row.name, row.login_name, row.made_by) == ("", "", None)


def build_course(**fields: object) -> SlotState:
    return build_slot(
        3,
        meetings=COURSE_MEETINGS,
        start=COURSE_MEETINGS[0].start,
        end=COURSE_MEETINGS[-1].end,
        **fields,
    )


def events_of_ada(slot: SlotState) -> list[CalendarEvent]:
    return list(events_of_user(slot, ADA, NOW))


def edit_slot(before: SlotState, changes: SlotPatch) -> SlotState:
    after, _ = decide(edit, before, changes, NOW)
    return as_written(before, after, NOW + HOUR)


def test_a_booking_is_an_event_with_all_meetings_and_a_published_slot_has_one_for_each() -> None:
    slot, [booking, _] = book_users(build_course(), "ada", "ben")
    [event] = events_of_ada(slot)
    assert event.meetings == COURSE_MEETINGS
    assert (event.uid, event.status) == (f"{booking.id}-1@slotlock", EventStatus.CONFIRMED)
    assert events_of_ada(slot) == [event]
    published = list(events_of_slot(slot, NOW))
    assert [each.meetings for each in published] == [(meeting,) for meeting in COURSE_MEETINGS]
    assert len({each.uid for each in published}) == 4


def test_an_edit_makes_the_same_events_newer() -> None:
    slot, _ = book_users(build_course(), "ada")
    before = events_of_ada(slot)
    later = tuple(Meeting(m.start + HOUR, m.end + HOUR) for m in COURSE_MEETINGS)
    moved = with_facts(slot, revision=1, meetings=later)
    for after in (edit_slot(slot, build_patch(title="Judo")), as_written(slot, moved, NOW + HOUR)):
        events = events_of_ada(after)
        assert [event.uid for event in events] == [event.uid for event in before]
        assert all(new.sequence > old.sequence for new, old in zip(events, before, strict=True))
        assert all(new.revised_at > old.revised_at for new, old in zip(events, before, strict=True))


def test_changes_that_no_event_shows_make_no_event_newer() -> None:
    slot, _ = book_users(build_course(), "ada")
    before = events_of_ada(slot)
    others, _ = book_users(slot, "ben")
    assert events_of_ada(as_written(slot, others, NOW + HOUR)) == before
    assert events_of_ada(edit_slot(slot, build_patch(capacity=5, hold_minutes=7))) == before


def test_a_hold_is_tentative_until_it_is_confirmed_or_expires() -> None:
    slot, hold = book_place(build_slot(2), booking_request("ada", hold=True))
    (tentative,) = events_of_ada(slot)
    assert tentative.status is EventStatus.TENTATIVE
    after, _ = decide(confirm, slot, change_request(hold), NOW)
    (confirmed,) = events_of_ada(after)
    assert (confirmed.uid, confirmed.status) == (tentative.uid, EventStatus.CONFIRMED)
    assert confirmed.sequence > tentative.sequence
    (expired,) = events_of_user(slot, ADA, NOW + HOUR)
    assert (expired.uid, expired.status) == (tentative.uid, EventStatus.CANCELLED)
    assert expired.sequence > tentative.sequence


def test_a_cancelled_booking_is_shown_as_cancelled_for_30_days() -> None:
    slot, (booking,) = book_users(build_slot(2), "ada")
    (before,) = events_of_ada(slot)
    after, _ = decide(cancel, slot, change_request(booking), NOW)
    (ended_booking,) = after.change.ended
    (cancelled,) = events_of_booking(after.slot, ended_booking, NOW + CANCELLED_SHOWN)
    assert (cancelled.uid, cancelled.status) == (before.uid, EventStatus.CANCELLED)
    assert cancelled.sequence > before.sequence
    long_after = NOW + CANCELLED_SHOWN + HOUR
    assert list(events_of_booking(after.slot, ended_booking, long_after)) == []
    cancelled_slot, _ = decide(cancel_slot, after, OLGA, long_after)
    assert list(events_of_booking(cancelled_slot.slot, ended_booking, long_after)) == []


def test_a_cancelled_slot_is_cancelled_in_every_calendar() -> None:
    slot, _ = book_users(build_course(), "ada")
    cancelled_slot, _ = decide(cancel_slot, slot, OLGA, NOW + HOUR)
    cancelled_slot = as_written(slot, cancelled_slot, NOW + HOUR)
    for events_before, events_after in (
        (events_of_ada(slot), events_of_ada(cancelled_slot)),
        (events_of_slot(slot, NOW), events_of_slot(cancelled_slot, NOW)),
    ):
        for before, after in zip(events_before, events_after, strict=True):
            assert (after.uid, after.status) == (before.uid, EventStatus.CANCELLED)
            assert after.sequence > before.sequence
            assert after.revised_at >= NOW + HOUR


def test_old_meetings_are_left_out() -> None:
    slot, _ = book_users(build_slot(2), "ada")
    end = slot.slot.end
    assert len(list(events_of_user(slot, ADA, end + HISTORY_SHOWN))) == 1
    assert list(events_of_user(slot, ADA, end + HISTORY_SHOWN + HOUR)) == []
    assert len(list(events_of_slot(slot, end + PUBLISHED_SHOWN))) == 1
    assert list(events_of_slot(slot, end + PUBLISHED_SHOWN + HOUR)) == []


def test_a_public_event_names_no_user_and_is_not_busy() -> None:
    slot, (booking,) = book_users(build_slot(2), "ada")
    (event,) = events_of_slot(slot, NOW)
    assert not event.busy
    assert event.uid != events_of_ada(slot)[0].uid
    assert "ada" not in repr(event)
    assert str(booking.id) not in repr(event)
