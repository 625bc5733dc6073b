"""Each fault breaks exactly the invariants that describe it."""

from dataclasses import replace

import pytest

from slotlock.simulation.model.attempts import BookingAttempt, SimulatedSlot, SimulatedUser
from slotlock.simulation.model.invariants import (
    CHECKS,
    Evidence,
    ServerState,
    SlotOnServer,
    check_invariants,
)

BED = SimulatedSlot("slot", "Bed 1")
ADA = SimulatedUser("Ada", "ada@example.com", "ada")
BEN = SimulatedUser("Ben", "ben@example.com", "ben")


def attempt_with(
    user: SimulatedUser, outcome: str | None, booking_id: str | None = None
) -> BookingAttempt:
    """Return a user's attempt with its final outcome, or without one."""
    attempt = BookingAttempt(user, BED, "key", 0.0, 0.1, 0.1, outcome, booking_id)
    attempt.last_response = outcome or "Locked"
    return attempt


def evidence(
    *roster: tuple[str, str],
    attempts: tuple[BookingAttempt, ...] = (),
    capacity: int = 1,
    remaining: int | None = None,
) -> Evidence:
    """Return evidence for one bed with this roster, whose live number is correct."""
    if remaining is None:
        remaining = capacity - len(roster)
    state = ServerState({BED.id: SlotOnServer(capacity, remaining, roster)})
    return Evidence([BED], attempts, {BED.id: remaining}, state)


def broken_invariants(checked: Evidence) -> set[str]:
    """Return the names of the invariants that do not hold."""
    return {invariant.name for invariant in check_invariants(checked) if not invariant.holds}


ADA_BOOKED = attempt_with(ADA, "Booked", "b1")
BEN_BOOKED = attempt_with(BEN, "Booked", "b2")
BEN_REFUSED = attempt_with(BEN, "SlotFull")
SOUND = evidence(("b1", "ada"), attempts=(ADA_BOOKED, BEN_REFUSED))


def with_retry(attempt: BookingAttempt, response: dict[str, object] | None) -> Evidence:
    """Return the sound evidence with this response to a repeated attempt."""
    return replace(SOUND, server_state=replace(SOUND.server_state, retried=[(attempt, response)]))


def with_own_list(*booking_ids: str) -> Evidence:
    """Return the sound evidence with these bookings in Ada's own list."""
    own_bookings = [(ADA, frozenset(booking_ids))]
    return replace(SOUND, server_state=replace(SOUND.server_state, own_bookings=own_bookings))


CASES = {
    "two users in one bed": (
        evidence(("b1", "ada"), ("b2", "ben"), attempts=(ADA_BOOKED, BEN_BOOKED)),
        {"notOverbooked"},
    ),
    "a wrong count": (
        evidence(("b1", "ada"), attempts=(ADA_BOOKED, BEN_REFUSED), remaining=1),
        {"countsAgree"},
    ),
    "acknowledged but not stored": (
        evidence(("b1", "ada"), attempts=(ADA_BOOKED, BEN_BOOKED)),
        {"bookingsMatchResponses"},
    ),
    "stored but not acknowledged": (
        evidence(("b1", "ada"), ("b2", "ben"), attempts=(ADA_BOOKED, BEN_REFUSED), capacity=2),
        {"bookingsMatchResponses"},
    ),
    "another booking than acknowledged": (
        evidence(("b9", "ada"), attempts=(ADA_BOOKED, BEN_REFUSED)),
        {"bookingsMatchResponses"},
    ),
    "a user twice in one bed": (
        evidence(
            ("b1", "ada"),
            ("b2", "ada"),
            attempts=(ADA_BOOKED, attempt_with(ADA, "Booked", "b2")),
            capacity=2,
        ),
        {"oneBookingPerUser"},
    ),
    "no final response": (
        evidence(("b1", "ada"), attempts=(ADA_BOOKED, attempt_with(BEN, None))),
        {"oneFinalResponse"},
    ),
    "a failed ticket": (
        evidence(("b1", "ada"), attempts=(ADA_BOOKED, attempt_with(BEN, "FAILED"))),
        {"oneFinalResponse"},
    ),
    "two final responses": (
        evidence(
            ("b1", "ada"), attempts=(replace(ADA_BOOKED, extra_final_responses=1), BEN_REFUSED)
        ),
        {"oneFinalResponse"},
    ),
    "another response to a retry": (
        with_retry(BEN_REFUSED, {"__typename": "AlreadyBooked"}),
        {"oneFinalResponse"},
    ),
    "no response to a retry": (with_retry(ADA_BOOKED, None), {"oneFinalResponse"}),
    "another booking in the response to a retry": (
        with_retry(ADA_BOOKED, {"__typename": "Booked", "booking": {"id": "b9"}}),
        {"oneFinalResponse"},
    ),
    "refused while a place is left": (evidence(attempts=(BEN_REFUSED,)), {"noPlaceUnused"}),
    "refused for another reason while a place is left": (
        evidence(attempts=(attempt_with(BEN, "NotEligible"),), capacity=2),
        {"noPlaceUnused"},
    ),
    "a place left after enough attempts": (
        evidence(attempts=(attempt_with(BEN, "TimeConflict"),)),
        {"noPlaceUnused"},
    ),
    "an old live number": (replace(SOUND, live_remaining={BED.id: 1}), {"liveCountsAgree"}),
    "no live number": (replace(SOUND, live_remaining={}), {"liveCountsAgree"}),
    "missing in her own list": (with_own_list(), {"ownListsAgree"}),
    "another booking in her own list": (with_own_list("b9"), {"ownListsAgree"}),
}


def test_sound_evidence_breaks_nothing() -> None:
    booked: dict[str, object] = {"__typename": "Booked", "booking": {"id": "b1"}}
    assert broken_invariants(SOUND) == set()
    assert broken_invariants(with_own_list("b1")) == set()
    assert broken_invariants(with_retry(ADA_BOOKED, booked)) == set()
    assert broken_invariants(with_retry(BEN_REFUSED, {"__typename": "SlotFull"})) == set()


@pytest.mark.parametrize("case", CASES)
def test_a_fault_breaks_its_invariant_and_no_other(case: str) -> None:
    checked, expected = CASES[case]
    assert broken_invariants(checked) == expected


def test_every_invariant_is_broken_by_a_fault() -> None:
    assert {name for _, names in CASES.values() for name in names} == {name for name, *_ in CHECKS}
