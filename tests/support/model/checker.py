"""Runs operations on real services and on the model, and compares everything after each."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.slots.slot_outcomes import SlotSaved
from slotlock.services.free_place_hints import FreePlaceHints
from slotlock.services.slots import editing, viewer_queries
from tests.support.domain.builders import build_draft
from tests.support.domain.step_sequences import as_reloaded
from tests.support.model.execution import execute_operation, normalize_outcome, record_tokens
from tests.support.model.linearizability import (
    CompletedOperation,
    linearizations,
    states_after_sweep,
)
from tests.support.model.operations import NormalizedOutcome, PlannedOperation
from tests.support.model.oracle import Oracle
from tests.support.model.reads import check_reads
from tests.support.model.service_pair import ServicePair
from tests.support.model.stored_state import StoredState

# Operations on the servers, which no caller requests.
INFRASTRUCTURE_OPERATIONS = {"sweep", "lose_locks", "flush"}


@dataclass(frozen=True)
class SlotShape:
    """The fields of a slot that matter to bookings, and differ between tests."""

    capacity: int = 1
    starts_in_minutes: int = 240
    hold_minutes: int = 5
    cutoff_minutes: int = 0
    waitlist_capacity: int = 3
    offer_minutes: int | None = None
    choice_group: str | None = None
    cooldown_minutes: int = 0


class ModelChecker:
    """Runs operations one by one or concurrently and checks the invariants after each."""

    def __init__(self, pair: ServicePair, counts: Counter[str] | None = None) -> None:
        pair.reset()
        for services in pair.services:
            # Holds expire as soon as time jumps, and a hint lasts for a second of the machine.
            services.free_place_hints = FreePlaceHints(lambda: 1000 * pair.clock.now.timestamp())
        self.pair, self.model = pair, Oracle()
        self.coverage: Counter[str] = Counter() if counts is None else counts
        self.ids_by_token: dict[str, str] = {}
        self.tokens_by_id: dict[str, str] = {}
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.sent_with_key: list[PlannedOperation] = []
        self._keyed_outcomes: list[tuple[PlannedOperation, NormalizedOutcome, object]] = []
        self._first_slot_views: dict[tuple[str, str], object] = {}
        self._steps = 0

    @property
    def now(self) -> datetime:
        """The time of the services."""
        return self.pair.clock.now

    def new_token(self, letter: str = "t") -> str:
        """Return an unused token."""
        self._steps += 1
        return f"{letter}{self._steps}"

    def add_slot(self, shape: SlotShape) -> str:
        """Create a slot in the services and in the model."""
        start = self.now + timedelta(minutes=shape.starts_in_minutes)
        draft = build_draft(
            title="A slot",
            start=start,
            end=start + timedelta(hours=1),
            time_zone="UTC",
            capacity=shape.capacity,
            location=None,
            kind=SlotKind.OTHER,
            published=True,
            hold_minutes=shape.hold_minutes,
            cancel_cutoff_minutes=shape.cutoff_minutes,
            waitlist_capacity=shape.waitlist_capacity,
            waitlist_offer_minutes=shape.offer_minutes,
            choice_group=shape.choice_group,
            hold_cooldown_minutes=shape.cooldown_minutes,
        )
        organizer_id = self.pair.organizer.user_id
        created = self.pair.runner.run(editing.create(self.pair.services[0], draft, organizer_id))
        assert isinstance(created.outcome, SlotSaved)
        slot_id = created.outcome.slot_id
        self.model.slots[slot_id] = as_reloaded(created.slots[slot_id])
        return slot_id

    def run(self, operation: PlannedOperation, service_index: int = 0) -> NormalizedOutcome:
        """Run an operation alone. Its outcome and its effect must be those of the model."""
        self.coverage["rule: alone"] += 1
        is_replay = (operation.caller_id, operation.key or "") in self.model.outcomes_by_key
        result = self._execute(service_index, operation)
        (actual,) = self._record([operation], [result])
        if operation.kind == "sweep":
            self._adopt_matching_model([self.model])
        elif operation.kind not in INFRASTRUCTURE_OPERATIONS:
            expected = self.model.apply(operation, self.now)
            assert actual == expected, f"{operation}\n  returned {actual}\n  expected {expected}"
            slot = result.slots.get(getattr(result.outcome, "slot_id", SlotId("")))
            if slot is not None and not is_replay:
                assert slot.remaining == self.model.slots[slot.id].remaining, result
        self.check_invariants()
        return actual

    def run_concurrently(self, operations: list[tuple[int, PlannedOperation]]) -> None:
        """Run operations concurrently. Some order must explain all outcomes and the state."""

        async def run_all() -> list[CommandResult[object]]:
            return await asyncio.gather(
                *(
                    execute_operation(self.pair, index, operation, self.ids_by_token)
                    for index, operation in operations
                )
            )

        self.coverage[f"rule: {len(operations)} concurrent"] += 1
        results = self.pair.runner.run(run_all())
        normalized = self._record([operation for _, operation in operations], results)
        self._find_explanation(
            [
                (operation, (self.now,), outcome)
                for (_, operation), outcome in zip(operations, normalized, strict=True)
            ]
        )

    def run_with_lost_lock(
        self, slow: PlannedOperation, minutes: float, quick: PlannedOperation
    ) -> None:
        """Run an operation that loses its lock before its write, while another one overtakes it."""
        started_at = self.now
        self.coverage["rule: lost lock"] += 1

        async def run_both() -> list[CommandResult[object]]:
            writer = self.pair.slot_writer(0)
            paused = asyncio.create_task(writer.pause_next_commit().wait())
            first = asyncio.create_task(execute_operation(self.pair, 0, slow, self.ids_by_token))
            await asyncio.wait([paused, first], return_when=asyncio.FIRST_COMPLETED)
            writer.paused_event = None
            paused.cancel()
            self.pair.delete_locks()
            self.pair.clock.advance(timedelta(minutes=minutes))
            other = await execute_operation(self.pair, 1, quick, self.ids_by_token)
            writer.resume_event.set()
            return [await first, other]

        outcomes = self._record([slow, quick], self.pair.runner.run(run_both()))
        self._find_explanation(
            [(slow, (started_at, self.now), outcomes[0]), (quick, (self.now,), outcomes[1])]
        )

    def advance_clock(self, minutes: float) -> None:
        """Advance the clock, which may expire holds without any operation."""
        self.coverage["rule: clock"] += 1
        self.pair.clock.advance(timedelta(minutes=minutes))
        self.check_invariants()

    def _execute(self, service_index: int, operation: PlannedOperation) -> CommandResult[object]:
        return self.pair.runner.run(
            execute_operation(self.pair, service_index, operation, self.ids_by_token)
        )

    def _record(
        self, operations: list[PlannedOperation], results: list[CommandResult[object]]
    ) -> list[NormalizedOutcome]:
        for operation, result in zip(operations, results, strict=True):
            record_tokens(operation, result.outcome, self.tokens_by_id)
        self.ids_by_token = {token: id_ for id_, token in self.tokens_by_id.items()}
        normalized = [
            normalize_outcome(result.outcome, self.tokens_by_id, self.pair.user_ids)
            for result in results
        ]
        for operation, result, outcome in zip(operations, results, normalized, strict=True):
            self.coverage[f"{operation.kind}: {outcome[0]}"] += 1
            if operation.key:
                self.sent_with_key.append(operation)
                self._keyed_outcomes.append((operation, outcome, slot_views(result)))
            several = [each.booking for each in getattr(result.outcome, "booked", ())]
            for booking in (*several, getattr(result.outcome, "booking", None)):
                if booking is not None:
                    self.acknowledged[booking.id] = (booking.slot_id, booking.user_id)
        return normalized

    def _find_explanation(self, completed: list[CompletedOperation]) -> None:
        # A refusal without the lock expires and promotes nothing, so a sweep does it first.
        self._execute(1, PlannedOperation("sweep", "", self.pair.organizer.user_id))
        completed = [each for each in completed if each[0].kind not in INFRASTRUCTURE_OPERATIONS]
        explanations = list(linearizations(self.model, completed))
        assert explanations, f"no order explains {completed}"
        self._adopt_matching_model(explanations)
        self.check_invariants()

    def _adopt_matching_model(self, models: list[Oracle]) -> None:
        """Continue with the model that equals the stored state after a sweep."""
        stored = StoredState(self.pair, self.tokens_by_id).snapshot()
        swept = [each for model in models for each in states_after_sweep(model, self.now)]
        self.model = next((each for each in swept if each.snapshot() == stored), swept[0])

    def check_invariants(self) -> None:
        """Compare the stored state and all reads with the model, and check the invariants."""
        self.coverage["checked"] += 1
        self._check_replays()
        stored = StoredState(self.pair, self.tokens_by_id)
        stored.assert_consistent(self.now)
        stored.assert_acknowledged_present(self.acknowledged)
        actual, expected = stored.snapshot(), self.model.snapshot()
        for name, value in actual.items():
            assert value == expected[name], f"{name}\n  is {value}\n  expected {expected[name]}"
        self.pair.runner.run(self._check_reads())

    def _check_replays(self) -> None:
        """Assert that every replay returns the first outcome, with the slot as it was then."""
        for operation, outcome, views in self._keyed_outcomes:
            key = (operation.caller_id, operation.key or "")
            if self.model.outcomes_by_key.get(key) == (operation.request, outcome):
                assert self._first_slot_views.setdefault(key, views) == views, operation
        self._keyed_outcomes.clear()

    async def _check_reads(self) -> None:
        self._steps += 1
        services = self.pair.services[self._steps % 2]
        viewer = self.pair.callers[self._steps % len(self.pair.callers)]
        await check_reads(services, viewer, self.model, self.tokens_by_id, self._steps)
        ids = list(self.model.slots)
        sampled_id = ids[self._steps % len(ids)]
        found = await viewer_queries.slot_roster(services, sampled_id, 100, None)
        assert found is not None
        live = [each.id for each in as_of(self.model.slots[sampled_id], self.now).bookings]
        assert [self.tokens_by_id[booking.id] for booking in found[1].items] == live


def slot_views(result: CommandResult[object]) -> object:
    """Return version, free places and waitlist length of the slots that an outcome shows."""
    slots = [result.slots[slot_id] for slot_id in getattr(result.outcome, "shown_slot_ids", ())]
    return [(slot.id, slot.version, slot.remaining, slot.waitlist_length) for slot in slots]
