"""Which states of a slot explain a response."""

from bench.faults.checker.effects import Effect
from bench.faults.checker.invariants import CLOCK_AHEAD_S
from bench.faults.checker.versions import SlotVersion

# How far MongoDB's time in a process may be behind: by a round trip over slow links.
CLOCK_BEHIND_S = 2.0
# What depends on more than one slot, or on its facts.
ALWAYS_EXPLAINED = {
    "LimitReached",
    "TimeConflict",
    "SlotStarted",
    "CutoffPassed",
    "NotYetOpen",
    "Closed",
    "GroupFull",
    "NotEligible",
    "HoldLimitReached",
}


def explains(version: SlotVersion, effect: Effect) -> bool:  # noqa: C901 - a case for each response
    """Return whether a slot in this version gives the response of an effect.

    The decision was made between the request and the response. A hold that ends before the response
    may count as expired already; one that ended before the request must.
    """
    outcome, user_id = effect.outcome, effect.user_id
    own = [id_ for id_, each in version.bookings.items() if each.user_id == user_id]
    is_waiting = any(user == user_id for _, user in version.waitlist)
    booking = version.bookings.get(effect.booking_id or "")
    latest = effect.finished_at + CLOCK_AHEAD_S
    match outcome:
        case "SlotFull":
            earliest = effect.started_at - CLOCK_BEHIND_S
            return _free_at(version, earliest) <= 0 or bool(version.waitlist)
        case "AlreadyBooked":
            shown = effect.shown_booking_id
            return shown in own if shown else bool(own)
        case "SlotNotFull":
            return _free_at(version, latest) > 0
        case "AlreadyWaiting":
            return is_waiting
        case "NotWaiting" | "WaitlistLeft":
            return not is_waiting
        case "WaitlistFull":
            return len(version.waitlist) >= version.waitlist_capacity
        case "BookingNotFound" | "HoldExpired":
            return booking is None or _is_over(booking.held_until, latest)
        case "SlotCancelled":
            return version.status == "cancelled"
        case "NotHeld" | "BookingConfirmed":
            return booking is not None and booking.held_until is None
        case "HoldExtended":
            return booking is not None
    return outcome in ALWAYS_EXPLAINED


def _is_over(held_until: float | None, at: float) -> bool:
    return held_until is not None and held_until <= at


def _free_at(version: SlotVersion, at: float) -> int:
    return version.free + sum(_is_over(each.held_until, at) for each in version.bookings.values())
