"""The promises that must hold at the end of a simulation, and the evidence for them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slotlock.simulation.model.attempts import (
    BOOKED,
    FAILED,
    BookingAttempt,
    Response,
    SimulatedSlot,
    SimulatedUser,
)

# Every other outcome is a refusal, and a full slot is the only reason for one in a simulation.
NOT_REFUSED_OUTCOMES = (BOOKED, FAILED, None)
# The refusals of a rehearsed campaign for other reasons: its rules, and those of its slots.
RULE_REFUSALS = frozenset({"GroupFull", "LimitReached", "QueueOnly", "TimeConflict"})


@dataclass(frozen=True, slots=True)
class SlotOnServer:
    """A slot on the server; the roster has the booking id and the user id of each taken place."""

    capacity: int
    remaining: int
    roster: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServerState:
    """The slots by id, and for a sample of users and attempts what the server returns.

    `own_bookings` holds the live booking ids of a user, `retried` the response to a repeated
    request.
    """

    slots: Mapping[str, SlotOnServer]
    own_bookings: Sequence[tuple[SimulatedUser, frozenset[str]]] = field(default_factory=list)
    retried: Sequence[tuple[BookingAttempt, Response | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The attempts, the last live number of places left by slot id, and the server's state.

    `rule_refusals` are outcomes after which a place may stay free.
    """

    slots: Sequence[SimulatedSlot]
    attempts: Sequence[BookingAttempt]
    live_remaining: Mapping[str, int]
    server_state: ServerState
    rule_refusals: Collection[str] = ()

    def slots_with_state(self) -> Iterator[tuple[SimulatedSlot, SlotOnServer]]:
        """Yield each slot with its state on the server."""
        return ((slot, self.server_state.slots[slot.id]) for slot in self.slots)


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """The result of checking one promise."""

    name: str
    text: str
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Return whether the check found no problem."""
        return not self.problems


def _not_overbooked(evidence: Evidence) -> Iterator[str]:
    for slot, state in evidence.slots_with_state():
        if len(state.roster) > state.capacity:
            yield f"{slot.title} has {len(state.roster)} bookings and {state.capacity} places"


def _counts_agree(evidence: Evidence) -> Iterator[str]:
    for slot, state in evidence.slots_with_state():
        if state.remaining != state.capacity - len(state.roster):
            yield (
                f"{slot.title} reports {state.remaining} of {state.capacity} places left, "
                f"but has {len(state.roster)} bookings"
            )


def _bookings_match_responses(evidence: Evidence) -> Iterator[str]:
    acknowledged = defaultdict(list)
    for attempt in evidence.attempts:
        if attempt.outcome == BOOKED:
            acknowledged[attempt.slot.id].append((attempt.booking_id or "", attempt.user.user_id))
    names = {attempt.user.user_id: attempt.user.name for attempt in evidence.attempts}
    for slot, state in evidence.slots_with_state():
        expected, stored = Counter(acknowledged[slot.id]), Counter(state.roster)
        for booking_id, user_id in (expected - stored).elements():
            yield f"{names[user_id]} received {BOOKED}, but {slot.title} lacks {booking_id}"
        for booking_id, user_id in (stored - expected).elements():
            name = names.get(user_id, user_id)
            yield f"{slot.title} has {booking_id} of {name}, who received no {BOOKED}"


def _one_booking_per_user(evidence: Evidence) -> Iterator[str]:
    for slot, state in evidence.slots_with_state():
        bookings = Counter(user_id for _, user_id in state.roster)
        for user_id, count in bookings.items():
            if count > 1:
                yield f"{slot.title} has {count} bookings of {user_id}"


def _one_final_response(evidence: Evidence) -> Iterator[str]:
    for attempt in evidence.attempts:
        label = f"{attempt.user.name} at {attempt.slot.title}"
        if attempt.outcome is None:
            yield f"{label} has no final response; the last one was {attempt.last_response}"
        elif attempt.outcome == FAILED:
            yield f"{label} has a failed ticket instead of a response"
        if attempt.extra_final_responses:
            yield f"{label} received {1 + attempt.extra_final_responses} final responses"
    for attempt, response in evidence.server_state.retried:
        name = response["__typename"] if response else "nothing"
        booking_id = response["booking"]["id"] if response and name == BOOKED else None
        if (name, booking_id) != (attempt.outcome, attempt.booking_id):
            yield (
                f"{attempt.user.name} at {attempt.slot.title} received {attempt.outcome} "
                f"{attempt.booking_id or ''} and, for the same key, {name} {booking_id or ''}"
            )


def _no_place_unused(evidence: Evidence) -> Iterator[str]:
    attempts = [each for each in evidence.attempts if each.outcome not in evidence.rule_refusals]
    requested = Counter(attempt.slot.id for attempt in attempts)
    refused = Counter(
        attempt.slot.id for attempt in attempts if attempt.outcome not in NOT_REFUSED_OUTCOMES
    )
    for slot, state in evidence.slots_with_state():
        unused = state.capacity - len(state.roster)
        if unused > 0 and (refused[slot.id] or requested[slot.id] >= state.capacity):
            yield (
                f"{slot.title} has {unused} of {state.capacity} places left after "
                f"{requested[slot.id]} attempts, of which {refused[slot.id]} were refused"
            )


def _live_counts_agree(evidence: Evidence) -> Iterator[str]:
    for slot, state in evidence.slots_with_state():
        live = evidence.live_remaining.get(slot.id)
        if live != state.remaining:
            yield f"{slot.title} has {state.remaining} places left, and the live number is {live}"


def _own_lists_agree(evidence: Evidence) -> Iterator[str]:
    acknowledged = defaultdict(set)
    for attempt in evidence.attempts:
        if attempt.booking_id is not None:
            acknowledged[attempt.user.user_id].add(attempt.booking_id)
    for user, listed in evidence.server_state.own_bookings:
        if listed != acknowledged[user.user_id]:
            yield (
                f"{user.name} received {len(acknowledged[user.user_id])} bookings, "
                f"but myBookings lists {len(listed)}"
            )


# The name in the JSON, the text of the summary, and the check.
CHECKS: Sequence[tuple[str, str, Callable[[Evidence], Iterator[str]]]] = (
    ("notOverbooked", "no slot has more bookings than places", _not_overbooked),
    ("countsAgree", "the places left are the capacity without the roster", _counts_agree),
    (
        "bookingsMatchResponses",
        "the rosters contain exactly the bookings that users received",
        _bookings_match_responses,
    ),
    ("oneBookingPerUser", "no user is twice in one slot", _one_booking_per_user),
    (
        "oneFinalResponse",
        "every attempt has one final response, and the same one when it is repeated",
        _one_final_response,
    ),
    ("noPlaceUnused", "no place is left in a slot that refused a user", _no_place_unused),
    ("liveCountsAgree", "the last live availability is correct", _live_counts_agree),
    ("ownListsAgree", "myBookings contains what the user received", _own_lists_agree),
)


def check_invariants(evidence: Evidence) -> list[InvariantResult]:
    """Check every promise and return its problems."""
    return [InvariantResult(name, text, tuple(check(evidence))) for name, text, check in CHECKS]
