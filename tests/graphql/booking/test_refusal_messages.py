"""The message of a refusal speaks to its reader, or says that it is about another user."""

import re
from datetime import timedelta
from typing import get_args

import pytest

from slotlock.domain.admission import tickets
from slotlock.domain.admission.tickets import TicketRef, TicketStatus
from slotlock.domain.booking import booking_outcomes, booking_refusals
from slotlock.domain.booking.booking import BookingLimit, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.declare import declarations
from slotlock.domain.users.user import Role, UserId
from slotlock.graphql.booking.tickets import Ticket, ticket_view
from slotlock.graphql.core.outcomes import ResultView, present
from slotlock.graphql.core.refusals import Refusal
from tests.support.domain.builders import NOW, book_place, booking_request, build_caller
from tests.support.domain.campaign_builders import build_campaign_slot

ADA = build_caller("ada")
ORGANIZER = build_caller("organizer", Role.ORGANIZER)
SLOT, BOOKING = book_place(build_campaign_slot(), booking_request("ada"))
AT = NOW + timedelta(microseconds=123_456)
MEETING = Meeting(NOW, NOW + timedelta(hours=1))
ENTRY = WaitlistEntry(WaitlistEntryId("entry"), SLOT.id, ADA.user_id, NOW)
# What each refusal says to Ada about her own request, and to an organizer about hers.
MESSAGES: dict[booking_refusals.BookingRefusal, tuple[str, str]] = {
    booking_refusals.AlreadyBooked(SLOT.id, BOOKING): (
        "You already have a booking in this slot.",
        "This user already has a booking in this slot.",
    ),
    booking_refusals.NotEligible(SLOT.id): (
        "This slot is for groups that you are not in.",
        "This slot is for groups that this user is not in.",
    ),
    booking_refusals.EmailNotVerified(SLOT.id): (
        "Please confirm your email address first.",
        "This user has not confirmed their email address.",
    ),
    booking_refusals.TooManyNoShows(SLOT.id, 2, NOW): (
        "After several missed bookings, you may book again from 2030-05-17 14:00:00 UTC.",
        "After several missed bookings, this user may book again from 2030-05-17 14:00:00 UTC.",
    ),
    booking_refusals.GroupFull(SLOT.id, "5a", 2): (
        "All places for your group 5a are taken.",
        "All places for this user's group 5a are taken.",
    ),
    booking_refusals.HoldCooldown(SLOT.id, NOW): (
        "Your reservation here ran out. "
        "Please book the place, or reserve it from 2030-05-17 14:00:00 UTC on.",
        "A reservation of this user ran out here. "
        "They can reserve again from 2030-05-17 14:00:00 UTC on.",
    ),
    booking_refusals.LimitReached(SLOT.id, 2, None): (
        "You have reached the maximum number of bookings: 2.",
        "This user has reached the maximum number of bookings: 2.",
    ),
    booking_refusals.LimitReached(SLOT.id, 1, BOOKING): (
        "You have reached the maximum number of bookings: 1.",
        "This user has reached the maximum number of bookings: 1.",
    ),
    booking_refusals.TimeConflict(SLOT.id, BOOKING, MEETING, MEETING): (
        "This slot overlaps another booking of yours.",
        "This slot overlaps another booking of this user.",
    ),
    booking_refusals.TimeConflict(SLOT.id, None, MEETING, MEETING): (
        "This slot overlaps another booking of yours.",
        "This slot overlaps another booking of this user.",
    ),
}
# What these say does not depend on whom a place is for.
ABOUT_NOBODY: list[object] = [
    booking_refusals.SlotNotFound(SLOT.id),
    booking_refusals.SlotFull(SLOT.id),
    booking_refusals.SlotCancelled(SLOT.id),
    booking_refusals.SlotStarted(SLOT.id),
    booking_refusals.NotYetOpen(SLOT.id, NOW),
    booking_refusals.Closed(SLOT.id, NOW),
    booking_refusals.UserNotFound(UserId("bo")),
    booking_refusals.UserBanned(UserId("bo")),
    booking_refusals.Locked(SLOT.id, 1),
    booking_refusals.KeyReused("key"),
    booking_refusals.QueueFull(SLOT.id, 1),
    booking_refusals.QueueOnly(SLOT.id),
    booking_refusals.DrawOnly(SLOT.id),
    booking_refusals.BookingNotFound(SLOT.id, BOOKING.id),
    booking_refusals.HoldExpired(SLOT.id, BOOKING),
    booking_refusals.HoldLimitReached(SLOT.id, BOOKING),
    booking_refusals.NotHeld(SLOT.id, BOOKING),
    booking_refusals.SlotNotFull(SLOT.id),
    booking_refusals.WaitlistFull(SLOT.id, 1),
]
# What these say is about the caller, for any user of the place.
ABOUT_THE_CALLER: list[object] = [
    booking_refusals.NotTeammate(UserId("bo")),
    booking_refusals.CutoffPassed(SLOT.id, NOW),
    booking_refusals.AlreadyWaiting(SLOT.id, ENTRY),
    booking_refusals.NotWaiting(SLOT.id),
]
COMMANDS = (
    tickets.RequestBookingOutcome
    | booking_outcomes.BookOutcome
    | booking_outcomes.ConfirmOutcome
    | booking_outcomes.ExtendOutcome
    | booking_outcomes.CancelOutcome
    | booking_outcomes.JoinWaitlistOutcome
    | booking_outcomes.LeaveWaitlistOutcome
)
YOU = re.compile(r"\b(you|your|yours|yourself)\b", re.IGNORECASE)


def message(refusal: object, view: ResultView) -> str:
    """Return what a refusal says."""
    text: str = present(refusal, view).message
    return text


@pytest.mark.parametrize("refusal", MESSAGES, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_speaks_to_the_user_it_is_about_and_to_others_about_that_user(
    refusal: booking_refusals.BookingRefusal,
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
def test_a_ticket_reads_as_the_direct_answer(refusal: booking_refusals.BookingRefusal) -> None:
    slots = {SLOT.id: SLOT}
    direct = present(refusal, ticket_view(ADA, slots))
    ref = TicketRef(SLOT.id, ADA.user_id, "0" * 32, "0" * 16, NOW)
    result = CommandResult[booking_outcomes.BookOutcome](refusal, slots)
    ticket = Ticket.from_domain(tickets.Ticket(ref, TicketStatus.ANSWERED, result=result), ADA)
    assert isinstance(ticket.outcome, Refusal)
    assert ticket.outcome.message == direct.message == MESSAGES[refusal][0]


@pytest.mark.parametrize("refusal", ABOUT_NOBODY, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_about_a_slot_or_a_booking_says_the_same_to_everybody(refusal: object) -> None:
    slots = {SLOT.id: SLOT}
    views = (ResultView(ADA, slots, ADA.user_id), ResultView(ORGANIZER, slots, ADA.user_id))
    (text,) = {message(refusal, view) for view in views}
    assert not YOU.search(text)


@pytest.mark.parametrize("refusal", ABOUT_THE_CALLER, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_about_the_caller_speaks_to_the_caller(refusal: object) -> None:
    assert YOU.search(message(refusal, ResultView(ADA, {SLOT.id: SLOT}, ADA.user_id)))


@pytest.mark.parametrize(
    "refusal",
    [
        booking_refusals.NotYetOpen(SLOT.id, AT),
        booking_refusals.CheckInNotOpen(SLOT.id, AT),
        booking_refusals.TooManyNoShows(SLOT.id, 2, AT),
        booking_refusals.HoldCooldown(SLOT.id, AT),
        booking_refusals.CutoffPassed(SLOT.id, AT),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
def test_a_message_names_the_time_to_wait_for_to_the_second_with_its_zone(refusal: object) -> None:
    text = message(refusal, ResultView(ADA, {SLOT.id: SLOT}, ADA.user_id))
    assert re.findall(r"\d{4}-.* UTC", text) == ["2030-05-17 14:00:00 UTC"]


def test_each_limit_that_organizers_override_has_the_code_of_its_refusal() -> None:
    codes = {limit.refusal_code for limit in BookingLimit if limit is not BookingLimit.OTHER}
    assert codes <= {each.code for each in declarations.values() if each.message}


def test_every_refusal_of_a_booking_is_in_one_of_the_lists() -> None:
    listed = {type(refusal) for refusal in (*MESSAGES, *ABOUT_NOBODY, *ABOUT_THE_CALLER)}
    declared = {each for each in get_args(COMMANDS) if each in declarations}
    assert listed == {each for each in declared if declarations[each].message}
