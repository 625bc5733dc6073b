"""What has to hold in the end: what people were told held against what is so."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slotlock.simulation.model.attempts import BOOKED, FAILED, BookingAttempt, SimulatedSlot
from slotlock.simulation.server_state import ServerState, SlotState

# Nobody has a reason to refuse whom the simulation sends but that no place is left.
NOT_REFUSED_OUTCOMES = (BOOKED, FAILED, None)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The slots, what everybody was told, what was heard live last by slot, and what is so."""

    slots: Sequence[SimulatedSlot]
    attempts: Sequence[BookingAttempt]
    live_remaining: Mapping[str, int]
    server_state: ServerState

    def slots_with_state(self) -> Iterator[tuple[SimulatedSlot, SlotState]]:
        """Each slot with the truth about it."""
        return ((slot, self.server_state.slots[slot.id]) for slot in self.slots)


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """One that was looked at; it holds if there is no problem."""

    name: str
    text: str
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was found against it."""
        return not self.problems


def _not_overbooked(evidence: Evidence) -> Iterator[str]:
    for slot, truth in evidence.slots_with_state():
        if len(truth.roster) > truth.capacity:
            yield f"{slot.title} has {len(truth.roster)} bookings and {truth.capacity} places"


def _counts_agree(evidence: Evidence) -> Iterator[str]:
    for slot, truth in evidence.slots_with_state():
        if truth.remaining != truth.capacity - len(truth.roster):
            yield (
                f"{slot.title} says that {truth.remaining} of {truth.capacity} places are left, "
                f"and {len(truth.roster)} are booked"
            )


def _bookings_match_responses(evidence: Evidence) -> Iterator[str]:
    told = defaultdict(list)
    for ask in evidence.attempts:
        if ask.outcome == BOOKED:
            told[ask.slot.id].append((ask.booking_id or "", ask.user.user_id))
    names = {ask.user.user_id: ask.user.name for ask in evidence.attempts}
    for slot, truth in evidence.slots_with_state():
        missing, unheard = Counter(told[slot.id]), Counter(truth.roster)
        for booking, user in (missing - unheard).elements():
            yield f"{names[user]} was told {BOOKED}, but {slot.title} has no booking {booking}"
        for booking, user in (unheard - missing).elements():
            yield f"{slot.title} has {booking} of {names.get(user, user)}, who was not told so"


def _one_booking_per_user(evidence: Evidence) -> Iterator[str]:
    for slot, truth in evidence.slots_with_state():
        times = Counter(user for _, user in truth.roster)
        for user, count in times.items():
            if count > 1:
                yield f"{slot.title} has {count} bookings of {user}"


def _one_final_response(evidence: Evidence) -> Iterator[str]:
    for ask in evidence.attempts:
        who = f"{ask.user.name} at {ask.slot.title}"
        if ask.outcome is None:
            yield f"{who} has no final answer; told last: {ask.last_response}"
        elif ask.outcome == FAILED:
            yield f"{who} has a ticket that was set aside instead of an answer"
        if ask.extra_final_responses:
            yield f"{who} heard {1 + ask.extra_final_responses} final answers"
    for ask, told in evidence.server_state.retried:
        name = told["__typename"] if told else "nothing"
        booking_id = told["booking"]["id"] if told and name == BOOKED else None
        if (name, booking_id) != (ask.outcome, ask.booking_id):
            yield (
                f"{ask.user.name} at {ask.slot.title} was told {ask.outcome} "
                f"{ask.booking_id or ''} and, asked again, {name} {booking_id or ''}"
            )


def _no_place_unused(evidence: Evidence) -> Iterator[str]:
    wanted = Counter(ask.slot.id for ask in evidence.attempts)
    refused = Counter(
        ask.slot.id for ask in evidence.attempts if ask.outcome not in NOT_REFUSED_OUTCOMES
    )
    for slot, truth in evidence.slots_with_state():
        left = truth.capacity - len(truth.roster)
        if left > 0 and (refused[slot.id] or wanted[slot.id] >= truth.capacity):
            yield (
                f"{slot.title} has {left} of {truth.capacity} places left, though "
                f"{wanted[slot.id]} asked and {refused[slot.id]} were refused"
            )


def _live_counts_agree(evidence: Evidence) -> Iterator[str]:
    for slot, truth in evidence.slots_with_state():
        heard = evidence.live_remaining.get(slot.id)
        if heard != truth.remaining:
            yield f"{slot.title} has {truth.remaining} places left, and live {heard} was heard last"


def _own_lists_agree(evidence: Evidence) -> Iterator[str]:
    told = defaultdict(set)
    for ask in evidence.attempts:
        if ask.booking_id is not None:
            told[ask.user.user_id].add(ask.booking_id)
    for person, own in evidence.server_state.own_bookings:
        if own != told[person.user_id]:
            yield (
                f"{person.name} was told of {len(told[person.user_id])} bookings and finds "
                f"{len(own)} in their own list"
            )


# What each is called in the JSON, what it says, and what looks for problems.
CHECKS: Sequence[tuple[str, str, Callable[[Evidence], Iterator[str]]]] = (
    ("notOverbooked", "no slot has more bookings than places", _not_overbooked),
    ("countsAgree", "places left are the places that nobody has", _counts_agree),
    (
        "toldIsWritten",
        "the rosters hold whom was told Booked, and nobody else",
        _bookings_match_responses,
    ),
    ("onceEach", "nobody is twice in one slot", _one_booking_per_user),
    ("oneFinalAnswer", "every ask has one final answer, the same asked again", _one_final_response),
    ("noneLeftOver", "no place is left over where somebody was refused one", _no_place_unused),
    ("liveIsTrue", "what was heard live last is so", _live_counts_agree),
    ("ownListsAgree", "people find in their own lists what they were told", _own_lists_agree),
)


def check_invariants(evidence: Evidence) -> list[InvariantResult]:
    """Every invariant, with what was found against it."""
    return [InvariantResult(name, text, tuple(look(evidence))) for name, text, look in CHECKS]
