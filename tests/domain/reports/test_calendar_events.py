"""Calendar events of bookings and slots, and how calendar programs recognize newer versions."""

from datetime import timedelta

from slotlock.domain.booking.rules.changes import BookingCommand, cancel, confirm
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
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.editing import cancel_slot, edit
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_caller,
    build_slot,
    with_facts,
)
from tests.support.domain.decisions import as_written, decide

ADA, OLGA = UserId("ada"), UserId("olga")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
COURSE_MEETINGS = tuple(Meeting(NOW + n * DAY, NOW + n * DAY + HOUR) for n in range(1, 5))


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


def edit_slot(before: SlotState, changes: SlotChanges) -> SlotState:
    after, _ = decide(edit, before, changes, NOW)
    return as_written(before, after, NOW + HOUR)


def test_each_meeting_of_a_booking_is_an_event() -> None:
    slot, _ = book_users(build_course(), "ada", "ben")
    events = events_of_ada(slot)
    assert [event.meeting for event in events] == list(COURSE_MEETINGS)
    assert len({event.uid for event in events}) == 4
    assert {event.status for event in events} == {EventStatus.CONFIRMED}
    assert events_of_ada(slot) == events


def test_an_edit_makes_the_same_events_newer() -> None:
    slot, _ = book_users(build_course(), "ada")
    before = events_of_ada(slot)
    later = tuple(Meeting(m.start + HOUR, m.end + HOUR) for m in COURSE_MEETINGS)
    moved = with_facts(slot, revision=1, meetings=later)
    for after in (
        edit_slot(slot, SlotChanges(title="Judo")),
        as_written(slot, moved, NOW + HOUR),
    ):
        events = events_of_ada(after)
        assert [event.uid for event in events] == [event.uid for event in before]
        assert all(new.sequence > old.sequence for new, old in zip(events, before, strict=True))
        assert all(new.revised_at > old.revised_at for new, old in zip(events, before, strict=True))


def test_changes_that_no_event_shows_make_no_event_newer() -> None:
    slot, _ = book_users(build_course(), "ada")
    before = events_of_ada(slot)
    others, _ = book_users(slot, "ben")
    assert events_of_ada(as_written(slot, others, NOW + HOUR)) == before
    assert events_of_ada(edit_slot(slot, SlotChanges(capacity=5, hold_minutes=7))) == before


def test_a_hold_is_tentative_until_it_is_confirmed_or_expires() -> None:
    slot, hold = book_place(build_slot(2), booking_request("ada", hold=True))
    (tentative,) = events_of_ada(slot)
    assert tentative.status is EventStatus.TENTATIVE
    after, _ = decide(confirm, slot, BookingCommand(hold.id, build_caller("ada")), NOW)
    (confirmed,) = events_of_ada(after)
    assert (confirmed.uid, confirmed.status) == (tentative.uid, EventStatus.CONFIRMED)
    assert confirmed.sequence > tentative.sequence
    (expired,) = events_of_user(slot, ADA, NOW + HOUR)
    assert (expired.uid, expired.status) == (tentative.uid, EventStatus.CANCELLED)
    assert expired.sequence > tentative.sequence


def test_a_cancelled_booking_is_shown_as_cancelled_for_30_days() -> None:
    slot, (booking,) = book_users(build_slot(2), "ada")
    (before,) = events_of_ada(slot)
    after, _ = decide(cancel, slot, BookingCommand(booking.id, build_caller("ada")), NOW)
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
