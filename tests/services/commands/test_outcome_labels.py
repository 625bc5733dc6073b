"""The label `outcome` of the metrics is the name of the class of an outcome."""

from typing import get_args

from slotlock.domain.admission.tickets import RequestBookingOutcome, RequestLost
from slotlock.domain.booking import booking_outcomes

PUBLISHED = """
    AllBooked AlreadyBooked AlreadyWaiting Booked BookingCancelled BookingConfirmed BookingMoved
    AlreadyCheckedIn CheckInNotOpen CheckInUndone CheckedIn NoShowMarked NoShowUndone NotConfirmed
    EmailNotVerified SlotNotStarted TooManyNoShows WrongSlot
    BookingNotFound Closed CutoffPassed DrawOnly GroupFull HoldCooldown HoldExpired HoldExtended
    HoldLimitReached KeyReused LimitReached Locked NoneBooked NotEligible NotHeld NotTeammate
    NotWaiting NotYetOpen NothingToBook QueueFull QueueOnly RequestLost SeriesBooked
    SeriesNotFound SeriesTooLong SlotCancelled SlotFull SlotNotFound SlotNotFull SlotStarted
    Ticket TimeConflict UserBanned UserNotFound WaitlistFull WaitlistJoined WaitlistLeft
"""
COUNTED = (
    booking_outcomes.BookOutcome
    | booking_outcomes.BookAllOutcome
    | booking_outcomes.BookSeriesOutcome
    | booking_outcomes.CancelOutcome
    | booking_outcomes.ConfirmOutcome
    | booking_outcomes.ExtendOutcome
    | booking_outcomes.MoveOutcome
    | booking_outcomes.JoinWaitlistOutcome
    | booking_outcomes.LeaveWaitlistOutcome
    | booking_outcomes.CheckInOutcome
    | booking_outcomes.UndoCheckInOutcome
    | booking_outcomes.MarkNoShowOutcome
    | booking_outcomes.UndoNoShowOutcome
    | RequestBookingOutcome
    | RequestLost
)


def test_a_published_label_is_the_name_of_an_outcome() -> None:
    assert set(PUBLISHED.split()) <= {each.__name__ for each in get_args(COUNTED)}
