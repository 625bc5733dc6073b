"""The values of the label `outcome` of the metrics: published, whatever the classes are called."""

from collections.abc import Mapping

from slotlock.domain.admission.tickets import RequestLost, Ticket
from slotlock.domain.booking import outcomes, refusals

OUTCOME_LABELS: Mapping[type, str] = {
    outcomes.Booked: "Booked",
    outcomes.AllBooked: "AllBooked",
    outcomes.NoneBooked: "NoneBooked",
    outcomes.SeriesBooked: "SeriesBooked",
    outcomes.BookingConfirmed: "BookingConfirmed",
    outcomes.HoldExtended: "HoldExtended",
    outcomes.BookingCancelled: "BookingCancelled",
    outcomes.BookingMoved: "BookingMoved",
    outcomes.CheckedIn: "CheckedIn",
    outcomes.CheckInUndone: "CheckInUndone",
    outcomes.NoShowMarked: "NoShowMarked",
    outcomes.NoShowUndone: "NoShowUndone",
    outcomes.WaitlistJoined: "WaitlistJoined",
    outcomes.WaitlistLeft: "WaitlistLeft",
    Ticket: "Ticket",
    RequestLost: "RequestLost",
    refusals.AlreadyBooked: "AlreadyBooked",
    refusals.AlreadyCheckedIn: "AlreadyCheckedIn",
    refusals.AlreadyWaiting: "AlreadyWaiting",
    refusals.BookingNotFound: "BookingNotFound",
    refusals.CheckInNotOpen: "CheckInNotOpen",
    refusals.Closed: "Closed",
    refusals.CutoffPassed: "CutoffPassed",
    refusals.GroupFull: "GroupFull",
    refusals.HoldCooldown: "HoldCooldown",
    refusals.HoldExpired: "HoldExpired",
    refusals.HoldLimitReached: "HoldLimitReached",
    refusals.KeyReused: "KeyReused",
    refusals.LimitReached: "LimitReached",
    refusals.Locked: "Locked",
    refusals.NotEligible: "NotEligible",
    refusals.NotConfirmed: "NotConfirmed",
    refusals.NotHeld: "NotHeld",
    refusals.NotTeammate: "NotTeammate",
    refusals.NotWaiting: "NotWaiting",
    refusals.NotYetOpen: "NotYetOpen",
    refusals.NothingToBook: "NothingToBook",
    refusals.QueueFull: "QueueFull",
    refusals.QueueOnly: "QueueOnly",
    refusals.SeriesNotFound: "SeriesNotFound",
    refusals.SeriesTooLong: "SeriesTooLong",
    refusals.SlotCancelled: "SlotCancelled",
    refusals.SlotFull: "SlotFull",
    refusals.SlotNotFound: "SlotNotFound",
    refusals.SlotNotFull: "SlotNotFull",
    refusals.SlotNotStarted: "SlotNotStarted",
    refusals.SlotStarted: "SlotStarted",
    refusals.TimeConflict: "TimeConflict",
    refusals.TooManyNoShows: "TooManyNoShows",
    refusals.UserBanned: "UserBanned",
    refusals.UserNotFound: "UserNotFound",
    refusals.WaitlistFull: "WaitlistFull",
    refusals.WrongSlot: "WrongSlot",
}


def outcome_label(outcome: object) -> str:
    """Return the label of an outcome of a command.

    Raises:
        KeyError: the outcome is of a type without a label.
    """
    return OUTCOME_LABELS[type(outcome)]
