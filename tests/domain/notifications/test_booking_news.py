"""What a mail says follows from the booking when it leaves, whichever entries are sent with it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingRef,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.booking.slot import Slot, SlotCancellation, SlotStatus
from slotlock.domain.notifications.booking_news import BookingNews, Place, current_news
from slotlock.domain.notifications.mail_kinds import (
    BOOKING_KINDS,
    EDITED,
    REMINDER,
    MailKind,
    booking_mail,
)
from slotlock.domain.notifications.optional_mails import reminder
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import NOW, build_slot, with_values

ADA, OLGA = UserId("ada"), UserId("olga")
MINUTE = timedelta(minutes=1)
B = BookingAction
STATUS = {
    B.HELD: BookingStatus.HELD,
    B.OFFERED: BookingStatus.HELD,
    B.EXTENDED: BookingStatus.HELD,
    B.EXPIRED: BookingStatus.EXPIRED,
    B.CANCELLED: BookingStatus.CANCELLED,
    B.WAITLIST_LEFT: BookingStatus.CANCELLED,
}


def slot_named(name: str, *, is_cancelled: bool = False) -> Slot:
    slot = build_slot(id=SlotId(name), title=name).slot
    if not is_cancelled:
        return slot
    cancellation = SlotCancellation(NOW + 9 * MINUTE, OLGA)
    return with_values(slot, status=SlotStatus.CANCELLED, cancellation=cancellation)


def booking_with(
    *actions: BookingAction,
    at: str = "a",
    moved_from: str | None = None,
    moved_to: str | None = None,
    by: UserId = ADA,
) -> Booking:
    """Build a booking with a history of these actions; its id is that of its slot in capitals."""
    history = [
        HistoryEntry(NOW + n * MINUTE, by, action, STATUS.get(action, BookingStatus.CONFIRMED))
        for n, action in enumerate(actions)
    ]
    if moved_to is not None:
        history[-1] = HistoryEntry(history[-1].at, by, B.MOVED, BookingStatus.CANCELLED)
    origin, goal = (
        BookingRef(SlotId(name), BookingId(name.upper())) if name else None
        for name in (moved_from, moved_to)
    )
    return Booking(
        BookingId(at.upper()),
        SlotId(at),
        ADA,
        tuple(history),
        moved_from=origin,
        moved_to=goal,
    )


def place(booking: Booking, *, is_cancelled: bool = False) -> Place:
    return Place(slot_named(booking.slot_id, is_cancelled=is_cancelled), booking)


def entry_of(kind: MailKind, at: Place) -> OutboxEntry:
    """Return the entry of this kind about a booking; about a later change, if it has none yet."""
    slot, booking = at.slot, at.booking
    if kind is REMINDER:
        return reminder(slot, booking, NOW, NOW)
    # The booking that it was moved to has the entry about the move.
    history = list(booking.history[: -1 if booking.moved_to else None])
    if slot.cancellation is not None and booking.status.is_live:
        history.append(slot.cancellation.to_history_entry())
    found = [n for n, each in enumerate(history) if each.action in kind.actions]
    version = "edit" if kind is EDITED else str(max(found, default=99))
    by = history[found[-1]].by if found else OLGA
    return booking_mail(kind, booking, NOW, version, by, {})


STATES = {
    "confirmed": place(booking_with(B.BOOKED)),
    "confirmed, and the user came": place(booking_with(B.BOOKED, B.CHECKED_IN)),
    "held": place(booking_with(B.HELD)),
    "held for longer": place(booking_with(B.HELD, B.EXTENDED)),
    "held, then confirmed": place(booking_with(B.HELD, B.CONFIRMED)),
    "offered": place(booking_with(B.OFFERED)),
    "offered, then expired": place(booking_with(B.OFFERED, B.EXPIRED)),
    "promoted": place(booking_with(B.PROMOTED)),
    "held, then expired": place(booking_with(B.HELD, B.EXPIRED)),
    "moved on": place(booking_with(B.BOOKED, B.MOVED, moved_to="b")),
    "promoted, then moved on": place(booking_with(B.PROMOTED, B.MOVED, moved_to="b")),
    "moved here": place(booking_with(B.MOVED, at="b", moved_from="a")),
    "moved here, then confirmed": place(booking_with(B.MOVED, B.CONFIRMED, at="b")),
    "moved here and on": place(booking_with(B.MOVED, B.MOVED, at="b", moved_to="c")),
    "cancelled": place(booking_with(B.BOOKED, B.CANCELLED)),
    "cancelled, then the slot": place(booking_with(B.BOOKED, B.CANCELLED), is_cancelled=True),
    "cancelled with the slot": place(booking_with(B.BOOKED), is_cancelled=True),
    "held in a cancelled slot": place(booking_with(B.HELD), is_cancelled=True),
    "the list ended": place(booking_with(B.WAITLIST_LEFT)),
}
# Of each state, the entries that say something if they are sent alone, and what that is.
SAID = {
    "confirmed": "booked=booked edited=edited reminder=reminder",
    "confirmed, and the user came": "booked=booked edited=edited reminder=reminder",
    "held": "held=held edited=edited",
    "held for longer": "held=held edited=edited",
    "held, then confirmed": "booked=booked edited=edited reminder=reminder",
    "offered": "offered=offered edited=edited",
    "offered, then expired": "expired=expired",
    "promoted": "promoted=promoted edited=edited reminder=reminder",
    "held, then expired": "expired=expired",
    "moved on": "",
    "promoted, then moved on": "",
    # The booking before is not found: it is a place as any other.
    "moved here": "moved=booked edited=edited reminder=reminder",
    "moved here, then confirmed": "booked=booked edited=edited reminder=reminder",
    "moved here and on": "",
    "cancelled": "cancelled=cancelled",
    "cancelled, then the slot": "cancelled=cancelled",
    "cancelled with the slot": "cancelled=cancelled",
    "held in a cancelled slot": "cancelled=cancelled",
    "the list ended": "waitlist_ended=waitlist_ended",
}


@pytest.mark.parametrize("state", STATES)
def test_an_entry_alone_says_what_is_true_or_nothing(state: str) -> None:
    said = {}
    for kind in BOOKING_KINDS:
        if news := current_news([entry_of(kind, STATES[state])], [STATES[state]]):
            said[kind.name] = news.kind
            is_live = state not in ("cancelled with the slot", "held in a cancelled slot")
            is_live = is_live and STATES[state].booking.status.is_live
            assert (news.added is not None) <= is_live
            assert not (news.removed and is_live)
    assert said == dict(pair.split("=") for pair in SAID[state].split())


def joined(*places: Place, without: Sequence[str] = ()) -> BookingNews | None:
    """Return what all entries about these bookings say together, but for those of some."""
    entries = [
        entry_of(kind, each)
        for each in places
        if each.booking.id not in without
        for kind in BOOKING_KINDS
        if any(
            entry.action in kind.actions
            for entry in each.booking.history[: -1 if each.booking.moved_to else None]
        )
        or (kind.name == "cancelled" and each.slot.cancellation and each.booking.status.is_live)
    ]
    return current_news(entries, places)


MOVED_ON = place(booking_with(B.BOOKED, B.MOVED, moved_to="b"))
HOLD_MOVED_ON = place(booking_with(B.HELD, B.MOVED, moved_to="b"))
HERE = place(booking_with(B.MOVED, at="b", moved_from="a", by=OLGA))
ON = place(booking_with(B.MOVED, B.MOVED, at="b", moved_from="a", moved_to="c"))
LAST = place(booking_with(B.MOVED, at="c", moved_from="b"))
BACK = place(replace(booking_with(B.MOVED, at="a", moved_from="b"), id=BookingId("D")))


def held_here() -> Place:
    moved = HistoryEntry(NOW + MINUTE, ADA, B.MOVED, BookingStatus.HELD, NOW + 5 * MINUTE)
    ref = BookingRef(SlotId("a"), BookingId("A"))
    return place(Booking(BookingId("B"), SlotId("b"), ADA, (moved,), moved_from=ref))


def test_a_place_that_was_moved_within_the_minute_is_one_move_that_removes_nothing() -> None:
    assert joined(MOVED_ON, HERE) == BookingNews("moved", HERE, OLGA, before=MOVED_ON, added=HERE)
    assert joined(MOVED_ON, ON, LAST) == BookingNews(
        "moved", LAST, ADA, before=MOVED_ON, added=LAST
    )


def test_a_move_removes_the_place_of_which_the_user_knows() -> None:
    assert joined(MOVED_ON, HERE, without=["A"]) == BookingNews(
        "moved", HERE, OLGA, before=MOVED_ON, added=HERE, removed=(MOVED_ON,)
    )
    assert joined(MOVED_ON, ON, LAST, without=["A"]) == BookingNews(
        "moved", LAST, ADA, before=MOVED_ON, added=LAST, removed=(MOVED_ON,)
    )
    # The mail about the place between them waits for a retry, or has just left.
    assert joined(MOVED_ON, ON, LAST, without=["A", "B"]) == BookingNews(
        "moved", LAST, ADA, before=MOVED_ON, added=LAST, removed=(MOVED_ON, ON)
    )
    # It was confirmed after the move, too: the calendar loses the old place, and the text says so.
    confirmed = place(booking_with(B.MOVED, B.CONFIRMED, at="b", moved_from="a", by=OLGA))
    assert joined(HOLD_MOVED_ON, confirmed, without=["A"]) == BookingNews(
        "moved", confirmed, OLGA, before=HOLD_MOVED_ON, added=confirmed, removed=(HOLD_MOVED_ON,)
    )


def test_a_move_there_and_back_is_a_place_as_before() -> None:
    on = place(booking_with(B.MOVED, B.MOVED, at="b", moved_from="a", moved_to="a"))
    assert joined(MOVED_ON, on, BACK, without=["A"]) == BookingNews(
        "booked", BACK, ADA, added=BACK, removed=(MOVED_ON,)
    )


def test_a_hold_of_which_the_user_does_not_know_says_its_deadline_though_it_was_moved() -> None:
    here = held_here()
    assert joined(HOLD_MOVED_ON, here) == BookingNews("held", here, ADA, added=here)
    known = joined(HOLD_MOVED_ON, here, without=["A"])
    assert known == BookingNews(
        "moved", here, ADA, HOLD_MOVED_ON, added=here, removed=(HOLD_MOVED_ON,)
    )


def test_a_move_and_a_cancellation_are_the_end_of_the_place_of_which_the_user_knows() -> None:
    cancelled = place(booking_with(B.MOVED, B.CANCELLED, at="b", moved_from="a", by=OLGA))
    known = joined(MOVED_ON, cancelled, without=["A"])
    assert known == BookingNews("cancelled", MOVED_ON, OLGA, removed=(MOVED_ON,))
    assert joined(MOVED_ON, cancelled) == BookingNews("cancelled", cancelled, OLGA)


def test_who_cancelled_is_who_ended_the_booking() -> None:
    own, slot_too = STATES["cancelled"], STATES["cancelled, then the slot"]
    for each in (own, slot_too):
        news = joined(each, without=[])
        assert news == BookingNews("cancelled", each, ADA)
        assert not news.is_for_all
    with_slot = joined(STATES["cancelled with the slot"])
    assert with_slot is not None
    assert (with_slot.by, with_slot.is_for_all) == (OLGA, True)


def test_a_place_that_is_news_and_its_edit_are_one_place() -> None:
    here = STATES["confirmed"]
    edit = entry_of(EDITED, here)
    news = current_news([*(entry_of(kind, here) for kind in BOOKING_KINDS[:1]), edit], [here])
    assert news == BookingNews("booked", here, ADA, added=here)
    cancelled = STATES["cancelled"]
    [of_cancelled] = [kind for kind in BOOKING_KINDS if kind.name == "cancelled"]
    entries = [entry_of(EDITED, cancelled), entry_of(of_cancelled, cancelled)]
    assert current_news(entries, [cancelled]) == BookingNews(
        "cancelled", cancelled, ADA, removed=(cancelled,)
    )
