"""Random operations on two sets of services, compared with the rules alone after each step.

Hypothesis chooses the users, organizers, times and failures. The real services run on real servers.
TEST_STATEFUL_EXAMPLES sets the number of examples, _STEPS their length and _SEED the random
seed. _SHRINK minimizes failures. `--log-cli-level=INFO` shows how often each outcome occurred.
"""

import logging
import os
from collections import Counter
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

from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.operations import PlannedOperation
from tests.support.model.planning import (
    OPERATION_KINDS,
    OPERATIONS_WITH_KEY,
    DrawnNumbers,
    pick,
    plan_operation,
)
from tests.support.model.service_pair import ServicePair

log = logging.getLogger("stateful")

LONG_RUN = "TEST_STATEFUL_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("TEST_STATEFUL_EXAMPLES", "8"))
STEPS = int(os.environ.get("TEST_STATEFUL_STEPS", "40"))
SEED = int(os.environ.get("TEST_STATEFUL_SEED", "1"))
SHRINK = "TEST_STATEFUL_SHRINK" in os.environ
MAX_SLOTS = 4

small_integers = st.integers(0, 40)
drawn_numbers = st.builds(
    DrawnNumbers,
    **dict.fromkeys(
        ("kind", "caller", "slot", "user", "booking", "target_slot", "claims", "service_index"),
        small_integers,
    ),
    key=st.integers(0, 15),
    hold=st.booleans(),
    waits=st.booleans(),
)
slot_shapes = st.builds(
    SlotShape,
    capacity=st.integers(1, 3),
    starts_in_minutes=st.sampled_from([30, 240, 600]),
    hold_minutes=st.sampled_from([5, 40]),
    cutoff_minutes=st.sampled_from([0, 60]),
    waitlist_capacity=st.integers(1, 3),
    offer_minutes=st.sampled_from([None, 10, 90]),
    choice_group=st.sampled_from([None, "one of these"]),
    cooldown_minutes=st.sampled_from([0, 0, 10]),
)


class ServiceMachine(RuleBasedStateMachine):
    """The operations and events that can happen to the services."""

    pair: ServicePair
    coverage: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.checker = ModelChecker(self.pair, self.coverage)
        self.coverage["examples"] += 1

    def _run(self, kind: str, drawn: DrawnNumbers) -> None:
        operation = plan_operation(self.checker, kind, drawn)
        self.checker.run(operation, drawn.service_index % 2)

    def _plan_any(self, drawn: DrawnNumbers) -> PlannedOperation:
        kind = pick(OPERATION_KINDS, drawn.kind)
        return plan_operation(self.checker, kind, drawn, allow_unknown_slots=False)

    @initialize(first=slot_shapes, second=slot_shapes)
    def create_two_slots_and_a_team(self, first: SlotShape, second: SlotShape) -> None:
        """Begin with two slots and a team of two."""
        self.checker.add_slot(first)
        self.checker.add_slot(second)
        member, teammate = (caller.user_id for caller in self.pair.callers[:2])
        for operation in (
            PlannedOperation("team_create", "team", member),
            PlannedOperation("team_invite", "", member, booking="team", user_id=teammate),
            PlannedOperation("team_accept", "", teammate, booking="team"),
        ):
            self.checker.run(operation)

    @rule(shape=slot_shapes)
    def add_slot(self, shape: SlotShape) -> None:
        """Create another slot, up to `MAX_SLOTS`."""
        if len(self.checker.model.slots) < MAX_SLOTS:
            self.checker.add_slot(shape)

    @rule(drawn=drawn_numbers)
    def book(self, drawn: DrawnNumbers) -> None:
        """Book or hold a place for a user."""
        self._run("book", drawn)

    @rule(drawn=drawn_numbers)
    def fill(self, drawn: DrawnNumbers) -> None:
        """Let three members book the slot and join its waitlist, one after the other."""
        for offset in range(1, 4):
            for kind in ("book", "join"):
                user_id = pick(self.pair.callers[:-1], drawn.caller + offset).user_id
                operation = replace(
                    plan_operation(self.checker, kind, drawn),
                    caller_id=user_id,
                    user_id=user_id if kind == "book" else "",
                    as_organizer=False,
                    key=None,
                )
                self.checker.run(operation)

    @rule(drawn=drawn_numbers)
    def book_several(self, drawn: DrawnNumbers) -> None:
        """Book several places, all or none."""
        self._run("book_all", drawn)

    @rule(drawn=drawn_numbers, kind=st.sampled_from(["confirm", "extend", "extend", "cancel"]))
    def change_booking(self, drawn: DrawnNumbers, kind: str) -> None:
        """Confirm, extend or cancel a booking."""
        self._run(kind, drawn)

    @rule(
        drawn=drawn_numbers,
        minutes=st.sampled_from([1, 4, 5, 39]),
        kind=st.sampled_from(["extend", "confirm", "move", "cancel"]),
    )
    def hold_and_change(self, drawn: DrawnNumbers, minutes: float, kind: str) -> None:
        """Hold a place and change the hold a little later, mostly before it expires."""
        hold = replace(plan_operation(self.checker, "book", drawn), hold=True, key=None)
        if self.checker.run(hold)[0] == "Booked":
            self.checker.advance_clock(minutes)
            slot_ids = list(self.checker.model.slots)
            operation = replace(
                hold,
                kind=kind,
                token=self.checker.new_token(),
                caller_id=hold.user_id,
                as_organizer=hold.user_id == self.pair.organizer.user_id,
                user_id="",
                booking=hold.token,
                hold=False,
                target_slot_id=pick(slot_ids, drawn.target_slot) if kind == "move" else "",
            )
            self.checker.run(operation, drawn.service_index % 2)

    @rule(drawn=drawn_numbers)
    def move(self, drawn: DrawnNumbers) -> None:
        """Move a booking to another slot."""
        self._run("move", drawn)

    @rule(drawn=drawn_numbers, kind=st.sampled_from(["join", "join", "leave"]))
    def change_waitlist(self, drawn: DrawnNumbers, kind: str) -> None:
        """Join a waitlist or leave it."""
        self._run(kind, drawn)

    @rule(drawn=drawn_numbers, kind=st.sampled_from(["edit", "edit", "postpone", "cancel_slot"]))
    def change_slot(self, drawn: DrawnNumbers, kind: str) -> None:
        """Change a slot as the organizer. Two of three cancellations are edits instead."""
        self._run(kind if kind != "cancel_slot" or drawn.target_slot % 3 == 0 else "edit", drawn)

    @rule(
        drawn=drawn_numbers,
        kind=st.sampled_from(["create", "invite", "invite", "accept", "leave"]),
    )
    def change_team(self, drawn: DrawnNumbers, kind: str) -> None:
        """Create a team, invite to it, accept an invitation or leave."""
        self._run(f"team_{kind}", drawn)

    @rule(drawn=drawn_numbers, kind=st.sampled_from(["sweep", "flush", "lose_locks"]))
    def disturb(self, drawn: DrawnNumbers, kind: str) -> None:
        """Sweep, delete everything in Redis, or delete all locks."""
        self._run(kind, drawn)

    @rule(minutes=st.sampled_from([0.01, 1, 1, 4, 9, 30, 61]))
    def advance_clock(self, minutes: float) -> None:
        """Let time pass."""
        self.checker.advance_clock(minutes)

    @rule(index=small_integers, early_ms=st.sampled_from([0, 1]))
    def advance_to_deadline(self, index: int, early_ms: int) -> None:
        """Advance to a deadline, or to one millisecond before it."""
        states = self.checker.model.slots.values()
        ends = [booking.held_until for state in states for booking in state.bookings]
        deadlines = [held_until for held_until in ends if held_until]
        deadlines += [at for each in states for at in (each.slot.start, each.slot.cancel_cutoff)]
        now = self.checker.now
        if future := sorted(deadline for deadline in deadlines if deadline > now):
            target = pick(future[:3], index) - timedelta(milliseconds=early_ms)
            self.checker.advance_clock(max((target - now).total_seconds(), 0) / 60)

    @rule(drawn=drawn_numbers, reuse_key=st.booleans())
    def send_again(self, drawn: DrawnNumbers, reuse_key: bool) -> None:
        """Repeat a request under its idempotency key, or send another one under that key."""
        if self.checker.sent_with_key:
            old = pick(self.checker.sent_with_key[-8:], drawn.booking)
            new = self._plan_any(drawn)
            with_old_key = replace(
                new, key=old.key, caller_id=old.caller_id, as_organizer=old.as_organizer
            )
            operation = with_old_key if reuse_key and new.kind in OPERATIONS_WITH_KEY else old
            self.checker.run(operation, drawn.service_index % 2)

    @rule(draws=st.lists(drawn_numbers, min_size=2, max_size=4), repeat=st.booleans())
    def run_concurrently(self, draws: list[DrawnNumbers], repeat: bool) -> None:
        """Run two to four operations at once at both services, sometimes one of them twice."""
        operations = [(drawn.service_index % 2, self._plan_any(drawn)) for drawn in draws]
        if repeat:
            operations[-1] = (1 - operations[0][0], operations[0][1])
        self.checker.run_concurrently(operations)

    @rule(
        slow=drawn_numbers,
        quick=drawn_numbers,
        minutes=st.sampled_from([0, 5, 10, 40]),
        repeat=st.booleans(),
    )
    def lose_lock(
        self, slow: DrawnNumbers, quick: DrawnNumbers, minutes: float, repeat: bool
    ) -> None:
        """Let an operation lose its lock before its write, while another one overtakes it."""
        first, second = self._plan_any(slow), self._plan_any(quick)
        second = first if repeat and first.key else second
        self.checker.run_with_lost_lock(first, minutes, second)


@pytest.mark.timeout(0 if LONG_RUN else 120)
def test_random_operations_on_two_services_match_the_model(pair: ServicePair) -> None:
    coverage: Counter[str] = Counter()
    machine = type("Machine", (ServiceMachine,), {"pair": pair, "coverage": coverage})
    try:
        run_state_machine_as_test(
            seed(SEED)(machine) if LONG_RUN else machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                derandomize=not LONG_RUN,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
                report_multiple_bugs=False,
                # Shrinking takes minutes.
                phases=[Phase.generate, *[Phase.shrink] * SHRINK],
            ),
        )
    finally:
        log.info("\n".join(f"{count:7} {what}" for what, count in sorted(coverage.items())))
