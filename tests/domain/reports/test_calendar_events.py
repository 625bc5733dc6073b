"""What calendars show of bookings and slots, and how programs know what is new."""

from dataclasses import replace
from datetime import timedelta

from slotlock.domain.booking.changes import BookingCommand, cancel, confirm
from slotlock.domain.booking.promotion import next_version
from slotlock.domain.booking.slot import Slot
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
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.editing import cancel_slot, edit
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_caller,
    build_slot,
)
from tests.support.domain.decisions import decide

ADA, OLGA = UserId("ada"), UserId("olga")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
COURSE = tuple(Meeting(NOW + n * DAY, NOW + n * DAY + HOUR) for n in range(1, 5))


def course(**fields: object) -> Slot:
    return build_slot(3, meetings=COURSE, start=COURSE[0].start, end=COURSE[-1].end, **fields)


def adas(seats: Slot) -> list[CalendarEvent]:
    return list(events_of_user(seats, ADA, NOW))


def edited(before: Slot, **changes: object) -> Slot:
    after, _ = decide(edit, before, changes)
    return next_version(before, after, NOW + HOUR)


def test_each_meeting_of_a_booking_is_an_event_of_its_own() -> None:
    seats, _ = book_users(course(), "ada", "ben")
    events = adas(seats)
    assert [event.meeting for event in events] == list(COURSE)
    assert len({event.uid for event in events}) == 4
    assert {event.status for event in events} == {EventStatus.CONFIRMED}
    assert adas(seats) == events


def test_an_edit_keeps_the_events_and_makes_them_newer() -> None:
    seats, _ = book_users(course(), "ada")
    before = adas(seats)
    later = tuple(Meeting(m.start + HOUR, m.end + HOUR) for m in COURSE)
    moved = replace(seats, revision=1, meetings=later)
    for after in (
        edited(seats, title="Judo"),
        next_version(seats, moved, NOW + HOUR),
    ):
        events = adas(after)
        assert [event.uid for event in events] == [event.uid for event in before]
        assert all(new.sequence > old.sequence for new, old in zip(events, before, strict=True))
        assert all(new.revised_at > old.revised_at for new, old in zip(events, before, strict=True))


def test_what_no_calendar_shows_makes_nothing_newer() -> None:
    seats, _ = book_users(course(), "ada")
    before = adas(seats)
    others, _ = book_users(seats, "ben")
    assert adas(next_version(seats, others, NOW + HOUR)) == before
    assert adas(edited(seats, capacity=5, hold_minutes=7)) == before


def test_a_hold_is_tentative_until_it_is_confirmed_or_runs_out() -> None:
    seats, hold = book_place(build_slot(2), booking_request("ada", hold=True))
    (tentative,) = adas(seats)
    assert tentative.status is EventStatus.TENTATIVE
    after, _ = decide(confirm, seats, BookingCommand(hold.id, build_caller("ada")), NOW)
    (confirmed,) = adas(after)
    assert (confirmed.uid, confirmed.status) == (tentative.uid, EventStatus.CONFIRMED)
    assert confirmed.sequence > tentative.sequence
    (expired,) = events_of_user(seats, ADA, NOW + HOUR)
    assert (expired.uid, expired.status) == (tentative.uid, EventStatus.CANCELLED)
    assert expired.sequence > tentative.sequence


def test_a_cancelled_booking_is_shown_as_such_for_a_month() -> None:
    seats, (booking,) = book_users(build_slot(2), "ada")
    (before,) = adas(seats)
    after, _ = decide(cancel, seats, BookingCommand(booking.id, build_caller("ada")), NOW)
    (ended,) = after.change.ended
    (cancelled,) = events_of_booking(after, ended, NOW + CANCELLED_SHOWN)
    assert (cancelled.uid, cancelled.status) == (before.uid, EventStatus.CANCELLED)
    assert cancelled.sequence > before.sequence
    long_after = NOW + CANCELLED_SHOWN + HOUR
    assert list(events_of_booking(after, ended, long_after)) == []
    off, _ = decide(cancel_slot, after, OLGA, long_after)
    assert list(events_of_booking(off, ended, long_after)) == []


def test_a_called_off_slot_is_cancelled_in_every_calendar() -> None:
    seats, _ = book_users(course(), "ada")
    off, _ = decide(cancel_slot, seats, OLGA, NOW + HOUR)
    off = next_version(seats, off, NOW + HOUR)
    for befores, afters in (
        (adas(seats), adas(off)),
        (events_of_slot(seats, NOW), events_of_slot(off, NOW)),
    ):
        for before, after in zip(befores, afters, strict=True):
            assert (after.uid, after.status) == (before.uid, EventStatus.CANCELLED)
            assert after.sequence > before.sequence
            assert after.revised_at >= NOW + HOUR


def test_what_is_long_over_is_left_out() -> None:
    seats, _ = book_users(build_slot(2), "ada")
    end = seats.end
    assert len(list(events_of_user(seats, ADA, end + HISTORY_SHOWN))) == 1
    assert list(events_of_user(seats, ADA, end + HISTORY_SHOWN + HOUR)) == []
    assert len(list(events_of_slot(seats, end + PUBLISHED_SHOWN))) == 1
    assert list(events_of_slot(seats, end + PUBLISHED_SHOWN + HOUR)) == []


def test_a_published_event_names_nobody_and_takes_nobodys_time() -> None:
    seats, (booking,) = book_users(build_slot(2), "ada")
    (event,) = events_of_slot(seats, NOW)
    assert not event.busy
    assert event.uid != adas(seats)[0].uid
    assert "ada" not in repr(event)
    assert str(booking.id) not in repr(event)
