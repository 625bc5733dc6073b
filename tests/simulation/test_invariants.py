"""Each invariant of the simulation is broken by what it speaks of, and by that alone."""

from dataclasses import replace

import pytest

from slotlock.simulation.model.attempts import BookingAttempt, SimulatedSlot, SimulatedUser
from slotlock.simulation.model.invariants import CHECKS, Evidence, check_invariants
from slotlock.simulation.server_state import ServerState, SlotState

BED = SimulatedSlot("slot", "Bed 1")
ADA, BEN = (
    SimulatedUser("Ada", "ada@example.com", "ada"),
    SimulatedUser("Ben", "ben@example.com", "ben"),
)


def ask(
    person: SimulatedUser, outcome: str | None, booking_id: str | None = None
) -> BookingAttempt:
    """What somebody was told."""
    told = BookingAttempt(person, BED, "key", 0.0, 0.1, 0.1, outcome, booking_id)
    told.last_response = outcome or "Locked"
    return told


def evidence(
    *roster: tuple[str, str],
    told: tuple[BookingAttempt, ...] = (),
    capacity: int = 1,
    left: int | None = None,
) -> Evidence:
    """A bed with this roster; what was heard live is what is left of it."""
    remaining = capacity - len(roster) if left is None else left
    truth = ServerState({BED.id: SlotState(capacity, remaining, roster)})
    return Evidence([BED], told, {BED.id: remaining}, truth)


def broken(seen: Evidence) -> set[str]:
    """The names of those that do not hold."""
    return {each.name for each in check_invariants(seen) if not each.holds}


HAS, HAS_NOT = ask(ADA, "Booked", "b1"), ask(BEN, "SlotFull")
SOUND = evidence(("b1", "ada"), told=(HAS, HAS_NOT))


def again(one: BookingAttempt, told: dict[str, object] | None) -> Evidence:
    """The sound evidence, with what somebody is told when they ask again."""
    return replace(SOUND, server_state=replace(SOUND.server_state, retried=[(one, told)]))


def own(*booking_ids: str) -> Evidence:
    """The sound evidence, with what Ada finds in her own list."""
    return replace(
        SOUND,
        server_state=replace(SOUND.server_state, own_bookings=[(ADA, frozenset(booking_ids))]),
    )


def many_finals() -> Evidence:
    """A ticket that was answered twice."""
    return evidence(("b1", "ada"), told=(replace(HAS, extra_final_responses=1), HAS_NOT))


BOTH = (HAS, ask(BEN, "Booked", "b2"))
CASES = {
    "two in one bed": (evidence(("b1", "ada"), ("b2", "ben"), told=BOTH), {"notOverbooked"}),
    "a count that is wrong": (
        evidence(("b1", "ada"), told=(HAS, HAS_NOT), left=1),
        {"countsAgree"},
    ),
    "told but not written": (evidence(("b1", "ada"), told=BOTH), {"toldIsWritten"}),
    "written but not told": (
        evidence(("b1", "ada"), ("b2", "ben"), told=(HAS, HAS_NOT), capacity=2),
        {"toldIsWritten"},
    ),
    "another booking than told": (
        evidence(("b9", "ada"), told=(HAS, HAS_NOT)),
        {"toldIsWritten"},
    ),
    "twice in one bed": (
        evidence(("b1", "ada"), ("b2", "ada"), told=(HAS, ask(ADA, "Booked", "b2")), capacity=2),
        {"onceEach"},
    ),
    "never answered": (evidence(("b1", "ada"), told=(HAS, ask(BEN, None))), {"oneFinalAnswer"}),
    "set aside": (evidence(("b1", "ada"), told=(HAS, ask(BEN, "FAILED"))), {"oneFinalAnswer"}),
    "answered twice": (many_finals(), {"oneFinalAnswer"}),
    "another answer": (again(HAS_NOT, {"__typename": "AlreadyBooked"}), {"oneFinalAnswer"}),
    "no answer any more": (again(HAS, None), {"oneFinalAnswer"}),
    "another booking in the answer": (
        again(HAS, {"__typename": "Booked", "booking": {"id": "b9"}}),
        {"oneFinalAnswer"},
    ),
    "refused though a place is left": (evidence(told=(HAS_NOT,)), {"noneLeftOver"}),
    "refused for another reason though a place is left": (
        evidence(told=(ask(BEN, "NotEligible"),), capacity=2),
        {"noneLeftOver"},
    ),
    "left though enough asked": (evidence(told=(ask(BEN, "TimeConflict"),)), {"noneLeftOver"}),
    "live is late": (replace(SOUND, live_remaining={BED.id: 1}), {"liveIsTrue"}),
    "live is silent": (replace(SOUND, live_remaining={}), {"liveIsTrue"}),
    "not in her own list": (own(), {"ownListsAgree"}),
    "another in her own list": (own("b9"), {"ownListsAgree"}),
}


def test_sound_evidence_breaks_nothing() -> None:
    assert broken(SOUND) == set()
    assert broken(own("b1")) == set()
    assert broken(again(HAS, {"__typename": "Booked", "booking": {"id": "b1"}})) == set()
    assert broken(again(HAS_NOT, {"__typename": "SlotFull"})) == set()


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_breaks_its_invariant_alone(case: str) -> None:
    seen, expected = CASES[case]
    assert broken(seen) == expected


def test_every_invariant_is_broken_by_something() -> None:
    assert {name for _, names in CASES.values() for name in names} == {name for name, *_ in CHECKS}
