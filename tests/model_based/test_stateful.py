"""Whatever is done at two desks, in whatever order and with whatever misfortune, the promises hold.

Hypothesis plays people, organisers, the clock and accidents against the real servers and a plain
model. SLOTLOCK_STATEFUL_EXAMPLES makes a campaign of it, with _STEPS for the length of an example
and _SEED to begin elsewhere; its counts are logged (`--log-cli-level=INFO`).
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.operations import PlannedOperation
from tests.support.model.planning import (
    OPERATION_KINDS,
    OPERATIONS_WITH_KEY,
    DrawnNumbers,
    pick,
    plan_operation,
)
from tests.support.model.service_pair import ServicePair, open_service_pair

log = logging.getLogger("stateful")

CAMPAIGN = "SLOTLOCK_STATEFUL_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("SLOTLOCK_STATEFUL_EXAMPLES", "20"))
STEPS = int(os.environ.get("SLOTLOCK_STATEFUL_STEPS", "40"))
SEED = int(os.environ.get("SLOTLOCK_STATEFUL_SEED", "1"))
SHRINK = "SLOTLOCK_STATEFUL_SHRINK" in os.environ
MOST_SLOTS = 4

small = st.integers(0, 40)
numbers = st.builds(
    DrawnNumbers,
    **dict.fromkeys(
        ("kind", "caller", "slot", "user", "booking", "target_slot", "claims", "service_index"),
        small,
    ),
    key=st.integers(0, 15),
    hold=st.booleans(),
    waits=st.booleans(),
)
shapes = st.builds(
    SlotShape,
    capacity=st.integers(1, 3),
    starts_in_minutes=st.sampled_from([30, 240, 600]),
    hold_minutes=st.sampled_from([5, 40]),
    cutoff_minutes=st.sampled_from([0, 60]),
    waitlist_capacity=st.integers(1, 3),
    offer_minutes=st.sampled_from([None, 10, 90]),
    choice_group=st.sampled_from([None, "one of these"]),
)


class Desks(RuleBasedStateMachine):
    """What can happen at the desks."""

    pair: ServicePair
    counts: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.play = ModelChecker(self.pair, self.counts)
        self.counts["examples"] += 1

    def _do(self, verb: str, n: DrawnNumbers) -> None:
        act = plan_operation(self.play, verb, n)
        self.play.run(act, n.service_index % 2)

    def _any(self, n: DrawnNumbers) -> PlannedOperation:
        return plan_operation(
            self.play, pick(OPERATION_KINDS, n.kind), n, allow_unknown_slots=False
        )

    @initialize(first=shapes, second=shapes)
    def open(self, first: SlotShape, second: SlotShape) -> None:
        """Two slots and a team to begin with."""
        self.play.add_slot(first)
        self.play.add_slot(second)
        one, other = (caller.user_id for caller in self.pair.callers[:2])
        self.play.run(PlannedOperation("team_create", "team", one))
        self.play.run(PlannedOperation("team_invite", "", one, booking="team", user_id=other))
        self.play.run(PlannedOperation("team_accept", "", other, booking="team"))

    @rule(shape=shapes)
    def add_slot(self, shape: SlotShape) -> None:
        """One more slot."""
        if len(self.play.model.slots) < MOST_SLOTS:
            self.play.add_slot(shape)

    @rule(n=numbers)
    def book(self, n: DrawnNumbers) -> None:
        """Somebody wants a place for somebody."""
        self._do("book", n)

    @rule(n=numbers)
    def fill(self, n: DrawnNumbers) -> None:
        """One member after the other books or joins the line."""
        for by in range(1, 4):
            for verb in ("book", "join"):
                someone = pick(self.pair.callers[:-1], n.caller + by).user_id
                act = replace(
                    plan_operation(self.play, verb, n),
                    caller_id=someone,
                    as_organizer=False,
                    key=None,
                )
                self.play.run(replace(act, user_id=someone if verb == "book" else ""))

    @rule(n=numbers)
    def book_several(self, n: DrawnNumbers) -> None:
        """Several places, all or none."""
        self._do("book_all", n)

    @rule(n=numbers, verb=st.sampled_from(["confirm", "extend", "extend", "cancel"]))
    def act_on_a_booking(self, n: DrawnNumbers, verb: str) -> None:
        """Confirm, extend or cancel."""
        self._do(verb, n)

    @rule(
        n=numbers,
        minutes=st.sampled_from([1, 4, 5, 39]),
        verb=st.sampled_from(["extend", "confirm", "move", "cancel"]),
    )
    def hold_and_go_on(self, n: DrawnNumbers, minutes: float, verb: str) -> None:
        """A hold, and what its owner does a little later, mostly while it lasts."""
        held = replace(plan_operation(self.play, "book", n), hold=True, key=None)
        if self.play.run(held)[0] == "Booked":
            self.play.advance_clock(minutes)
            owner = replace(
                held, kind=verb, token=self.play.new_token(), caller_id=held.user_id, user_id=""
            )
            to = pick(list(self.play.model.slots), n.target_slot) if verb == "move" else ""
            organises = held.user_id == self.pair.organizer.user_id
            act = replace(
                owner, booking=held.token, hold=False, target_slot_id=to, as_organizer=organises
            )
            self.play.run(act, n.service_index % 2)

    @rule(n=numbers)
    def move(self, n: DrawnNumbers) -> None:
        """From one slot to another."""
        self._do("move", n)

    @rule(n=numbers, verb=st.sampled_from(["join", "join", "leave"]))
    def wait_in_line(self, n: DrawnNumbers, verb: str) -> None:
        """Join a line or leave it."""
        self._do(verb, n)

    @rule(n=numbers, verb=st.sampled_from(["edit", "edit", "postpone", "call_off"]))
    def keep(self, n: DrawnNumbers, verb: str) -> None:
        """The organiser changes a slot; one in three is called off when it comes to that."""
        self._do(verb if verb != "call_off" or n.target_slot % 3 == 0 else "edit", n)

    @rule(n=numbers, verb=st.sampled_from(["create", "invite", "invite", "accept", "leave"]))
    def team(self, n: DrawnNumbers, verb: str) -> None:
        """Somebody and their teams."""
        self._do(f"team_{verb}", n)

    @rule(n=numbers, verb=st.sampled_from(["sweep", "flush", "lose_locks"]))
    def mishap(self, n: DrawnNumbers, verb: str) -> None:
        """A sweep comes by, Redis loses all it has, or locks run out."""
        self._do(verb, n)

    @rule(minutes=st.sampled_from([0.01, 1, 1, 4, 9, 30, 61]))
    def jump(self, minutes: float) -> None:
        """Time passes."""
        self.play.advance_clock(minutes)

    @rule(n=small, early_ms=st.sampled_from([0, 1]))
    def jump_to_the_instant(self, n: int, early_ms: int) -> None:
        """It is the very instant, or one millisecond before it, at which something changes."""
        slots = self.play.model.slots.values()
        instants = [
            place.held_until for slot in slots for place in slot.bookings if place.held_until
        ]
        instants += [slot.start for slot in slots] + [slot.start - slot.cutoff for slot in slots]
        if coming := sorted(instant for instant in instants if instant > self.play.now):
            until = pick(coming[:3], n) - timedelta(milliseconds=early_ms)
            self.play.advance_clock(max((until - self.play.now).total_seconds(), 0) / 60)

    @rule(n=numbers, other=st.booleans())
    def send_again(self, n: DrawnNumbers, other: bool) -> None:
        """A former request under its key, or another one under the same key."""
        if self.play.sent_with_key:
            old = pick(self.play.sent_with_key[-8:], n.booking)
            new = self._any(n)
            again = replace(
                new, key=old.key, caller_id=old.caller_id, as_organizer=old.as_organizer
            )
            sent = again if other and new.kind in OPERATIONS_WITH_KEY else old
            self.play.run(sent, n.service_index % 2)

    @rule(several=st.lists(numbers, min_size=2, max_size=4), again=st.booleans())
    def together(self, several: list[DrawnNumbers], again: bool) -> None:
        """Two to four acts at once at both desks, at times the same one twice."""
        acts = [(n.service_index % 2, self._any(n)) for n in several]
        if again:
            acts[-1] = (1 - acts[0][0], acts[0][1])
        self.play.run_concurrently(acts)

    @rule(slow=numbers, quick=numbers, minutes=st.sampled_from([0, 5, 10, 40]), again=st.booleans())
    def late(self, slow: DrawnNumbers, quick: DrawnNumbers, minutes: float, again: bool) -> None:
        """A lock runs out under an act whose write then comes after another's."""
        first, second = self._any(slow), self._any(quick)
        self.play.run_with_lost_lock(first, minutes, first if again and first.key else second)


@pytest.fixture(scope="module")
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Two desks on a database of their own."""
    with open_service_pair(servers, "stateful") as opened:
        yield opened


@pytest.mark.timeout(0 if CAMPAIGN else 120)
def test_whatever_happens_at_two_desks_the_promises_hold(pair: ServicePair) -> None:
    counts: Counter[str] = Counter()
    machine = type("Machine", (Desks,), {"pair": pair, "counts": counts})
    try:
        run_state_machine_as_test(
            seed(SEED)(machine) if CAMPAIGN else machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                derandomize=not CAMPAIGN,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
                report_multiple_bugs=False,
                # Shrinking is a hunt of minutes; whoever wants it asks for it.
                phases=[Phase.generate, *[Phase.shrink] * SHRINK],
            ),
        )
    finally:
        log.info("\n".join(f"{count:7} {what}" for what, count in sorted(counts.items())))
