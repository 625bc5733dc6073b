"""Which states of a slot, and of the user's other bookings, explain a response."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bench.faults.checker.effects import Effect
from bench.faults.checker.invariants import CLOCK_AHEAD_S
from bench.faults.checker.versions import SlotVersion, to_seconds
from bench.faults.history import Json

# How far MongoDB's time in a process may be behind: by a round trip over slow links.
CLOCK_BEHIND_S = 2.0


@dataclass(frozen=True, slots=True)
class RuledBooking:
    """A booking in a slot with rules across slots, and when it may have been live."""

    id: str
    slot_id: str
    slot: Json
    since: float
    until: float


@dataclass(slots=True)
class ResponseModel:
    """What explains responses beside the slot itself.

    `bookings` has those of each user in slots with rules across slots.
    """

    clock_offset_s: float
    bookings: defaultdict[str, list[RuledBooking]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def explains(self, version: SlotVersion, effect: Effect) -> bool:
        """Return whether a slot in this version gives the response of an effect.

        The decision was made between the request and the response. A hold that ends before the
        response may count as expired already; one that ended before the request must.
        """
        return _explained_by_bookings(version, effect) or self._explained_by_terms(version, effect)

    def _explained_by_terms(self, version: SlotVersion, effect: Effect) -> bool:
        """Return whether the user's other bookings or the times of the slot give the response."""
        earliest, latest = effect.started_at - CLOCK_BEHIND_S, effect.finished_at + CLOCK_AHEAD_S
        document = version.document
        terms = document.get("campaign") or {}
        match effect.outcome:
            case "LimitReached":
                return self._is_limit_reached(version, effect)
            case "TimeConflict":
                return any(overlap(document, each.slot) for each in self._others(effect))
            case "GroupFull":
                return any(full_groups(document["bookings"], terms))
            case "HoldLimitReached":
                booking = version.bookings.get(effect.booking_id or "")
                if booking is None or booking.held_until is None:
                    return False
                is_fixed = booking.created_by is None or booking.moved_from is not None
                until = earliest + 60 * document.get("holdMinutes", 5)
                is_longest = booking.held_until >= min(until, self._seconds(document["start"]))
                is_overlapping = any(overlap(document, each.slot) for each in self._others(effect))
                is_ruled_out = is_overlapping or self._is_limit_reached(version, effect)
                return bool(is_fixed or is_longest or is_ruled_out)
            case "SlotStarted":
                return self._seconds(document["start"]) <= latest
            case "CutoffPassed":
                cutoff_s = 60 * document.get("cancelCutoffMinutes", 0)
                return bool(self._seconds(document["start"]) - cutoff_s <= latest)
            case "NotYetOpen":
                return bool(terms and self._seconds(terms["opensAt"]) >= earliest)
            case "Closed" | "SlotNotFound":
                is_closed = bool(terms) and self._seconds(terms["closesAt"]) <= latest
                return bool(terms) and (not terms["published"] or is_closed)
        return False

    def _is_limit_reached(self, version: SlotVersion, effect: Effect) -> bool:
        """Return whether the user may have had too many other bookings at one moment."""
        terms, group = version.document.get("campaign") or {}, version.document.get("choiceGroup")
        all_others = self._others(effect)
        if group and any(each.slot.get("choiceGroup") == group for each in all_others):
            return True
        if not terms.get("maxBookings"):
            return False
        others = [each for each in all_others if campaign_id_of(each.slot) == terms["id"]]
        # The most at one moment are there when one of them begins.
        moments = (max(each.since, effect.started_at) for each in others)
        return any(
            sum(each.since <= moment <= each.until for each in others) >= terms["maxBookings"]
            for moment in moments
        )

    def _others(self, effect: Effect) -> list[RuledBooking]:
        """Return the bookings of the user in other slots that may have been live."""
        return [
            each
            for each in self.bookings[effect.user_id]
            if each.slot_id != effect.slot_id
            and not (effect.name == "move" and each.id == effect.booking_id)
            and each.since <= effect.finished_at
            and each.until >= effect.started_at
        ]

    def _seconds(self, time: str) -> float:
        return to_seconds(time, self.clock_offset_s)


def campaign_id_of(slot: Json) -> str | None:
    """Return the campaign of a slot's document, or None."""
    campaign_id: str | None = (slot.get("campaign") or {}).get("id")
    return campaign_id


def overlap(slot: Json, other: Json) -> bool:
    """Return whether two slots are at the same time."""
    return bool(slot["start"] < other["end"] and other["start"] < slot["end"])


def full_groups(bookings: Iterable[Json], terms: Json, excess: int = 0) -> Iterator[str]:
    """Yield the groups with as many of the bookings of a slot as is allowed, or more by so many."""
    counts = Counter(group for each in bookings for group in each.get("groups", ()))
    for limit in terms.get("groupLimits", ()):
        for group, count in counts.items():
            # A limit of `class:*` is one for each class.
            is_limited = group.startswith(limit["group"].removesuffix("*"))
            if is_limited and count >= limit["limit"] + excess:
                yield group


def _explained_by_bookings(version: SlotVersion, effect: Effect) -> bool:  # noqa: C901 - a case each
    outcome, user_id = effect.outcome, effect.user_id
    earliest, latest = effect.started_at - CLOCK_BEHIND_S, effect.finished_at + CLOCK_AHEAD_S
    own = [id_ for id_, each in version.bookings.items() if each.user_id == user_id]
    is_waiting = any(user == user_id for _, user in version.waitlist)
    booking = version.bookings.get(effect.booking_id or "")
    match outcome:
        case "SlotFull":
            # An own booking is AlreadyBooked, unless it may count as expired.
            is_free = _free_at(version, earliest) > 0 and not version.waitlist
            return not is_free and not any(
                not _is_over(version.bookings[id_].held_until, latest) for id_ in own
            )
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
            return booking is not None and booking.held_until is not None
    return False


def _is_over(held_until: float | None, at: float) -> bool:
    return held_until is not None and held_until <= at


def _free_at(version: SlotVersion, at: float) -> int:
    return version.free + sum(_is_over(each.held_until, at) for each in version.bookings.values())
