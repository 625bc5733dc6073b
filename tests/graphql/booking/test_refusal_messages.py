"""The message of a refusal speaks to its reader, or says that it is about another user."""

import re
from datetime import timedelta
from types import UnionType
from typing import get_args

import pytest

from slotlock.domain.admission import tickets
from slotlock.domain.admission.tickets import TicketRef, TicketStatus
from slotlock.domain.booking import refusals
from slotlock.domain.booking.booking import WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.outcomes import BookOutcome
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import Role, UserId
from slotlock.graphql.booking.refusals.present import BookingCommandRefusal, present_booking_refusal
from slotlock.graphql.booking.ticket_types import Ticket, ticket_view
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.result_view import ResultView
from tests.support.domain.builders import NOW, book_place, booking_request, build_caller
from tests.support.domain.campaign_builders import build_campaign_slot

ADA = build_caller("ada")
ORGANIZER = build_caller("organizer", Role.ORGANIZER)
SLOT, BOOKING = book_place(build_campaign_slot(), booking_request("ada"))
MEETING = Meeting(NOW, NOW + timedelta(hours=1))
ENTRY = WaitlistEntry(WaitlistEntryId("entry"), SLOT.id, ADA.user_id, NOW)
# What each refusal says to Ada about her own request, and to an organizer about hers.
MESSAGES: dict[refusals.BookingRefusal, tuple[str, str]] = {
    refusals.AlreadyBooked(SLOT.id, BOOKING): (
        "You already have a booking in this slot.",
        "This user already has a booking in this slot.",
    ),
    refusals.NotEligible(SLOT.id): (
        "This slot is for groups that you are not in.",
        "This slot is for groups that this user is not in.",
    ),
    refusals.TooManyNoShows(SLOT.id, 2, NOW): (
        "You have missed too many bookings. You may book again from 2030-05-17 14:00 UTC on.",
        "This user has missed too many bookings and may book from 2030-05-17 14:00 UTC on.",
    ),
    refusals.GroupFull(SLOT.id, "5a", 2): (
        "All places for your group 5a are taken.",
        "All places for this user's group 5a are taken.",
    ),
    refusals.HoldCooldown(SLOT.id, NOW): (
        "You held a place in this slot recently. Please book it, or hold it later.",
        "This user held a place in this slot recently.",
    ),
    refusals.LimitReached(SLOT.id, 2, None): (
        "You have reached the maximum number of bookings: 2.",
        "This user has reached the maximum number of bookings: 2.",
    ),
    refusals.LimitReached(SLOT.id, 1, BOOKING): (
        "You have reached the maximum number of bookings: 1.",
        "This user has reached the maximum number of bookings: 1.",
    ),
    refusals.TimeConflict(SLOT.id, BOOKING, MEETING, MEETING): (
        "This slot overlaps another booking of yours.",
        "This slot overlaps another booking of this user.",
    ),
    refusals.TimeConflict(SLOT.id, None, MEETING, MEETING): (
        "This slot overlaps another booking of yours.",
        "This slot overlaps another booking of this user.",
    ),
}
# What these say does not depend on whom a place is for.
ABOUT_NOBODY: list[BookingCommandRefusal] = [
    refusals.SlotNotFound(SLOT.id),
    refusals.SlotFull(SLOT.id),
    refusals.SlotCancelled(SLOT.id),
    refusals.SlotStarted(SLOT.id),
    refusals.NotYetOpen(SLOT.id, NOW),
    refusals.Closed(SLOT.id, NOW),
    refusals.UserNotFound(UserId("bo")),
    refusals.UserBanned(UserId("bo")),
    refusals.Locked(SLOT.id, 1),
    refusals.KeyReused("key"),
    refusals.QueueFull(SLOT.id, 1),
    refusals.QueueOnly(SLOT.id),
    refusals.BookingNotFound(SLOT.id, BOOKING.id),
    refusals.HoldExpired(SLOT.id, BOOKING),
    refusals.HoldLimitReached(SLOT.id, BOOKING),
    refusals.NotHeld(SLOT.id, BOOKING),
    refusals.SlotNotFull(SLOT.id),
    refusals.WaitlistFull(SLOT.id),
]
# What these say is about the caller, for any user of the place.
ABOUT_THE_CALLER: list[BookingCommandRefusal] = [
    refusals.NotTeammate(UserId("bo")),
    refusals.CutoffPassed(SLOT.id, NOW),
    refusals.AlreadyWaiting(SLOT.id, ENTRY),
    refusals.NotWaiting(SLOT.id),
]
YOU = re.compile(r"\b(you|your|yours|yourself)\b", re.IGNORECASE)


def message(refusal: BookingCommandRefusal, view: ResultView) -> str:
    """Return what a refusal says."""
    return present_booking_refusal(refusal, view).message


@pytest.mark.parametrize("refusal", MESSAGES, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_speaks_to_the_user_it_is_about_and_to_others_about_that_user(
    refusal: refusals.BookingRefusal,
) -> None:
    slots = {SLOT.id: SLOT}
    own, other = MESSAGES[refusal]
    assert message(refusal, ResultView(ADA, slots, ADA.user_id)) == own
    assert message(refusal, ResultView(ORGANIZER, slots, ADA.user_id)) == other
    if "booking" not in type(refusal).__match_args__ or refusal.booking is None:  # type: ignore[union-attr]
        unknown = message(refusal, ResultView(ADA, slots))
        assert not YOU.search(unknown)
        assert "this user" not in unknown.lower()


@pytest.mark.parametrize("refusal", MESSAGES, ids=lambda refusal: type(refusal).__name__)
def test_a_ticket_reads_the_same_as_the_direct_answer(refusal: refusals.BookingRefusal) -> None:
    slots = {SLOT.id: SLOT}
    direct = present_booking_refusal(refusal, ticket_view(ADA, slots))
    ref = TicketRef(SLOT.id, ADA.user_id, "0" * 32, "0" * 16, NOW)
    result = CommandResult[BookOutcome](refusal, slots)
    ticket = Ticket.from_domain(tickets.Ticket(ref, TicketStatus.ANSWERED, result=result), ADA)
    assert isinstance(ticket.outcome, Refusal)
    assert ticket.outcome.message == direct.message == MESSAGES[refusal][0]


@pytest.mark.parametrize("refusal", ABOUT_NOBODY, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_about_a_slot_or_a_booking_says_the_same_to_everybody(
    refusal: BookingCommandRefusal,
) -> None:
    slots = {SLOT.id: SLOT}
    views = (ResultView(ADA, slots, ADA.user_id), ResultView(ORGANIZER, slots, ADA.user_id))
    (text,) = {message(refusal, view) for view in views}
    assert not YOU.search(text)


@pytest.mark.parametrize("refusal", ABOUT_THE_CALLER, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_about_the_caller_speaks_to_the_caller(refusal: BookingCommandRefusal) -> None:
    assert YOU.search(message(refusal, ResultView(ADA, {SLOT.id: SLOT}, ADA.user_id)))


def test_every_refusal_of_a_booking_is_in_one_of_the_lists() -> None:
    listed = {type(refusal) for refusal in (*MESSAGES, *ABOUT_NOBODY, *ABOUT_THE_CALLER)}
    assert listed == set(_members(BookingCommandRefusal))


def _members(union: object) -> list[type]:
    if isinstance(union, UnionType):
        return [member for part in get_args(union) for member in _members(part)]
    assert isinstance(union, type)
    return [union]
