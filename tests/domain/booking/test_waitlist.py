"""The waiting list of a full slot: first come, first served."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import (
    EndedWaitlistEntry,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.booking_outcomes import WaitlistJoined, WaitlistLeft
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    AlreadyWaiting,
    LimitReached,
    NotWaiting,
    SlotCancelled,
    SlotNotFound,
    SlotNotFull,
    SlotStarted,
    WaitlistFull,
)
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.rules.waitlist import join, leave
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    NOW,
    book_place,
    book_users,
    booking_request,
    build_slot,
    change_request,
    in_choice_group,
    users_with_bookings,
    with_facts,
    with_waitlist,
)
from tests.support.domain.decisions import decide, expire_and_promote


def waitlist_entry(name: str) -> WaitlistEntry:
    """Return an entry for the waiting list."""
    return WaitlistEntry(
        WaitlistEntryId(f"w-{name}"), SlotId("s"), UserId(name), NOW - timedelta(hours=1)
    )


def full_slot(**facts: object) -> SlotState:
    """Return a slot with one place, which Ada has."""
    full, _ = book_users(build_slot(1), "ada")
    return with_facts(full, **facts)


def test_a_user_joins_at_the_end_and_learns_the_position() -> None:
    full = full_slot()
    first, outcome = decide(join, full, waitlist_entry("ben"), NOW)
    assert isinstance(outcome, WaitlistJoined)
    assert outcome == WaitlistJoined(first.id, first.waitlist[0], 1)
    second, outcome = decide(join, first, waitlist_entry("cleo"), NOW)
    assert isinstance(outcome, WaitlistJoined)
    assert outcome.position == 2
    assert [waiting.user_id for waiting in second.waitlist] == ["ben", "cleo"]
    assert second.bookings == full.bookings


def test_a_waitlist_entry_counts_from_its_decision() -> None:
    after, _ = decide(join, full_slot(), waitlist_entry("ben"), NOW)
    assert after.waitlist[0].since == NOW


def test_an_entry_never_starts_before_the_last_change_of_its_slot() -> None:
    changed_at = NOW + timedelta(seconds=1)  # by a process whose clock is ahead
    full = replace(full_slot(), changed_at=changed_at)
    after, outcome = decide(join, full, waitlist_entry("ben"), NOW)
    assert isinstance(outcome, WaitlistJoined)
    assert after.waitlist[0].since == outcome.entry.since == changed_at


def test_the_position_counts_entries_that_were_not_loaded() -> None:
    full = replace(full_slot(), waitlist_length=41)
    _, outcome = decide(join, full, waitlist_entry("ben"), NOW)
    assert isinstance(outcome, WaitlistJoined)
    assert outcome.position == 42


def test_a_slot_with_a_free_place_has_no_waiting_list() -> None:
    free = build_slot(1)
    assert decide(join, free, waitlist_entry("ben"), NOW) == (free, SlotNotFull(free.id))


def test_a_place_that_belongs_to_the_waiting_list_does_not_count_as_free() -> None:
    promised = replace(build_slot(1), waitlist_length=1)
    assert isinstance(decide(join, promised, waitlist_entry("ben"), NOW)[1], WaitlistJoined)


def test_a_user_with_a_booking_or_an_entry_cannot_join() -> None:
    waiting, _ = decide(join, full_slot(), waitlist_entry("ben"), NOW)
    assert decide(join, waiting, waitlist_entry("ben"), NOW)[1] == AlreadyWaiting(
        waiting.id, waiting.waitlist[0]
    )
    assert decide(join, waiting, waitlist_entry("ada"), NOW)[1] == AlreadyBooked(
        waiting.id, waiting.bookings[0]
    )


def test_a_full_waiting_list_refuses_more_users() -> None:
    short = full_slot(waitlist_capacity=1)
    waiting, _ = decide(join, short, waitlist_entry("ben"), NOW)
    assert decide(join, waiting, waitlist_entry("cleo"), NOW) == (
        waiting,
        WaitlistFull(waiting.id, 1),
    )
    none = full_slot(waitlist_capacity=0)
    assert decide(join, none, waitlist_entry("ben"), NOW) == (none, WaitlistFull(none.id, 0))


@pytest.mark.parametrize(
    ("facts", "refusal"),
    [
        ({"status": SlotStatus.CANCELLED}, SlotCancelled),
        ({"status": SlotStatus.DRAFT}, SlotNotFound),
        ({"start": NOW}, SlotStarted),
    ],
)
def test_nobody_joins_what_nobody_can_book(facts: dict[str, object], refusal: type) -> None:
    closed = full_slot(**facts)
    after, outcome = decide(join, closed, waitlist_entry("ben"), NOW)
    assert (after, type(outcome)) == (closed, refusal)


def test_a_user_with_a_booking_of_the_choice_group_cannot_join() -> None:
    _, (other,) = book_users(build_slot(id=SlotId("other")), "ben")
    full, users = in_choice_group(full_slot()), users_with_bookings("ben", other)
    after, outcome = decide(join, full, waitlist_entry("ben"), NOW, users=users)
    assert (after, outcome) == (full, LimitReached(full.id, 1, other))


def test_leaving_removes_one_entry_and_preserves_the_order() -> None:
    line = with_waitlist(full_slot(), "ben", "cleo", "dan")
    after, outcome = decide(leave, line, UserId("cleo"), NOW)
    assert outcome == WaitlistLeft(after.id)
    assert [waiting.user_id for waiting in after.waitlist] == ["ben", "dan"]
    assert after.change.ended_entries == (
        EndedWaitlistEntry(line.waitlist[1], NOW, UserId("cleo")),
    )
    assert (after.waitlist_length, after.loaded_waitlist) == (2, 2)


def test_an_entry_that_an_organizer_ends_names_the_organizer() -> None:
    after, _ = decide(leave, with_waitlist(full_slot(), "ben"), UserId("ben"), NOW, UserId("eve"))
    assert [(ended.entry.user_id, ended.by) for ended in after.change.ended_entries] == [
        ("ben", "eve")
    ]


def test_a_user_whom_a_draw_left_without_a_place_waits_until_the_slot_starts() -> None:
    full, entry = full_slot(), waitlist_entry("ben")
    for now, expected in ((NOW, WaitlistJoined), (full.slot.start, SlotStarted)):
        decision = join(full, NO_CONTEXTS, entry, now, is_drawn=True)
        assert isinstance(decision.outcome, expected)


def test_leaving_without_an_entry_is_refused() -> None:
    full = full_slot()
    assert decide(leave, full, UserId("ben"), NOW) == (full, NotWaiting(full.id))


def test_a_user_who_left_rejoins_at_the_end() -> None:
    left, _ = decide(leave, with_waitlist(full_slot(), "ben", "cleo"), UserId("ben"), NOW)
    back, _ = decide(join, left, waitlist_entry("ben"), NOW)
    assert [waiting.user_id for waiting in back.waitlist] == ["cleo", "ben"]


def test_users_can_leave_the_waiting_list_of_a_started_or_cancelled_slot() -> None:
    line = with_waitlist(full_slot(), "ben")
    for over in (with_facts(line, start=NOW), with_facts(line, status=SlotStatus.CANCELLED)):
        assert isinstance(decide(leave, over, UserId("ben"), NOW)[1], WaitlistLeft)


def test_an_entry_beyond_the_loaded_ones_is_not_promoted_early() -> None:
    # Ben is first; Zoe is at hand only because she asks; those between them are not.
    line = with_waitlist(build_slot(5), "ben", "zoe")
    after = expire_and_promote(replace(line, loaded_waitlist=1, waitlist_length=9), NOW)
    assert [booking.user_id for booking in after.bookings] == ["ben"]
    assert [waiting.user_id for waiting in after.waitlist] == ["zoe"]
    assert (after.loaded_waitlist, after.waitlist_length) == (0, 8)


def test_leaving_beyond_the_loaded_entries_shifts_nobody() -> None:
    line = replace(with_waitlist(build_slot(1), "ben", "zoe"), loaded_waitlist=1, waitlist_length=9)
    after, _ = decide(leave, line, UserId("zoe"), NOW)
    assert (after.loaded_waitlist, after.waitlist_length) == (1, 8)


def test_the_first_waiting_user_is_promoted_in_the_batch_that_frees_the_place() -> None:
    full = full_slot()
    waiting, _ = decide(join, full, waitlist_entry("ben"), NOW)
    freed, _ = decide(cancel, waiting, change_request(full.bookings[0]), NOW)
    assert [booking.user_id for booking in expire_and_promote(freed, NOW).bookings] == ["ben"]


def test_a_user_who_gets_a_booking_otherwise_leaves_the_waiting_list() -> None:
    # The slot begins, an organizer seats Ben, and then its beginning is put off.
    line = with_waitlist(build_slot(2, start=NOW), "ben")
    seated, _ = book_place(line, booking_request("ben", organizer="eve"))
    put_off = expire_and_promote(with_facts(seated, start=NOW + timedelta(hours=1)), NOW)
    assert [booking.user_id for booking in put_off.bookings] == ["ben"]


def test_a_place_that_goes_to_the_waiting_list_is_full_for_the_next_command() -> None:
    settled = expire_and_promote(with_waitlist(build_slot(1), "ben"), NOW)
    assert decide(book, settled, booking_request("ada"), NOW)[0] == settled
