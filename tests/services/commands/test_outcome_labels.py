"""The label `outcome` of the metrics has the same values whatever the classes are called."""

from typing import get_args

from slotlock.domain.admission.tickets import RequestBookingOutcome, RequestLost
from slotlock.domain.booking import outcomes
from slotlock.services.commands.outcome_labels import OUTCOME_LABELS, outcome_label

PUBLISHED = """
    AllBooked AlreadyBooked AlreadyWaiting Booked BookingCancelled BookingConfirmed BookingMoved
    AlreadyCheckedIn CheckInNotOpen CheckInUndone CheckedIn NoShowMarked NoShowUndone NotConfirmed
    SlotNotStarted TooManyNoShows WrongSlot
    BookingNotFound Closed CutoffPassed GroupFull HoldCooldown HoldExpired HoldExtended
    HoldLimitReached KeyReused LimitReached Locked NoneBooked NotEligible NotHeld NotTeammate
    NotWaiting NotYetOpen NothingToBook QueueFull QueueOnly RequestLost SeriesBooked
    SeriesNotFound SeriesTooLong SlotCancelled SlotFull SlotNotFound SlotNotFull SlotStarted
    Ticket TimeConflict UserBanned UserNotFound WaitlistFull WaitlistJoined WaitlistLeft
"""
COUNTED = (
    outcomes.BookOutcome
    | outcomes.BookAllOutcome
    | outcomes.BookSeriesOutcome
    | outcomes.CancelOutcome
    | outcomes.ConfirmOutcome
    | outcomes.ExtendOutcome
    | outcomes.MoveOutcome
    | outcomes.JoinWaitlistOutcome
    | outcomes.LeaveWaitlistOutcome
    | outcomes.CheckInOutcome
    | outcomes.UndoCheckInOutcome
    | outcomes.MarkNoShowOutcome
    | outcomes.UndoNoShowOutcome
    | RequestBookingOutcome
    | RequestLost
)


def test_every_outcome_that_is_counted_has_a_label() -> None:
    assert set(OUTCOME_LABELS) == set(get_args(COUNTED))


def test_the_labels_are_the_published_ones() -> None:
    assert sorted(OUTCOME_LABELS.values()) == sorted(PUBLISHED.split())
    assert outcome_label(RequestLost()) == "RequestLost"
