"""Which states of a slot explain a response."""

from datetime import datetime

from bench.faults.checker.effects import Effect
from bench.faults.checker.versions import SlotVersion

# A process whose clock is ahead of the others ends holds early.
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


def explains(  # noqa: C901 - a case for each response
    version: SlotVersion, effect: Effect, latest: datetime | None
) -> bool:
    """Return whether a slot in this version gives the response of an effect.

    `latest` is the latest time that the clock of a process may have shown: a hold that ends before
    may count as expired already. None means that any hold may have.
    """
    outcome, user_id = effect.outcome, effect.user_id
    own = [id_ for id_, each in version.bookings.items() if each.user_id == user_id]
    is_waiting = any(user == user_id for _, user in version.waitlist)
    booking = version.bookings.get(effect.booking_id or "")
    match outcome:
        case "SlotFull":
            return version.free <= 0 or bool(version.waitlist)
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
            return booking is None or _may_have_expired(booking.held_until, latest)
        case "SlotCancelled":
            return version.status == "cancelled"
        case "NotHeld" | "BookingConfirmed":
            return booking is not None and booking.held_until is None
        case "HoldExtended":
            return booking is not None
    return outcome in ALWAYS_EXPLAINED


def _may_have_expired(held_until: datetime | None, latest: datetime | None) -> bool:
    return held_until is not None and (latest is None or held_until <= latest)


def _free_at(version: SlotVersion, latest: datetime | None) -> int:
    held = sum(_may_have_expired(each.held_until, latest) for each in version.bookings.values())
    return version.free + held
