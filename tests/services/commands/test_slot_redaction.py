"""Redacted slots: each user sees their own rows, also if others were shown the slot."""

from slotlock.domain.booking.booking import SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import KeyReused
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId
from slotlock.services.commands.slot_redaction import SlotRedactor, redacted_slots
from tests.support.domain.builders import NOW, book_users, build_slot

NAMES = ("ada", "ben", "eve")


def full_slot(capacity: int = 3) -> SlotState:
    """Return a slot with a booking of each user and a waitlist entry of one of them."""
    state, _ = book_users(build_slot(capacity), *NAMES[:capacity])
    entry = WaitlistEntry(WaitlistEntryId("w"), state.id, UserId("eve"), NOW)
    return state.with_waitlist_entry(entry)


def outcome_for(state: SlotState, name: str) -> Booked:
    """Return the outcome that shows the slot to a user."""
    booking = state.booking_of(UserId(name)) or state.bookings[0]
    return Booked(state.id, booking)


def test_each_of_many_users_sees_only_their_own_rows() -> None:
    state = full_slot()
    redactor = SlotRedactor({state.id: state})
    for name in NAMES:
        (shown,) = redactor.shown_slots(outcome_for(state, name), (UserId(name),))
        assert [booking.user_id for booking in shown.bookings] == [name]
        assert [entry.user_id for entry in shown.waitlist] == (["eve"] if name == "eve" else [])
        assert shown.booked_count == 3
        assert shown.change.is_empty


def test_the_rows_of_several_users_are_in_the_order_of_the_slot() -> None:
    state = full_slot()
    users = (UserId("eve"), UserId("ada"), UserId("eve"))
    (shown,) = redacted_slots(CommandResult(outcome_for(state, "ada"), {state.id: state}), users)
    assert [booking.user_id for booking in shown.bookings] == ["ada", "eve"]


def test_everyone_sees_who_booked_a_slot_with_one_place() -> None:
    state = full_slot(capacity=1)
    redactor = SlotRedactor({state.id: state})
    (shown,) = redactor.shown_slots(outcome_for(state, "ada"), (UserId("ben"),))
    assert [booking.user_id for booking in shown.bookings] == ["ada"]
    assert shown.waitlist == ()


def test_an_outcome_that_shows_no_slot_has_none() -> None:
    slots = {SlotId("s"): full_slot()}
    assert redacted_slots(CommandResult(KeyReused("key"), slots), (UserId("ada"),)) == ()
