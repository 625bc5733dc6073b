"""One run of acts at two desks beside the model, with everything compared after each."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotKind
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.outcomes import SlotSaved
from slotlock.services.slots import editing, queries
from tests.support.model.booking_model import BookingModel
from tests.support.model.execution import execute_operation, normalize_outcome, record_tokens
from tests.support.model.linearizability import (
    CompletedOperation,
    linearizations,
    states_after_sweep,
)
from tests.support.model.operations import NormalizedOutcome, PlannedOperation
from tests.support.model.service_pair import ServicePair
from tests.support.model.state import ModelSlot
from tests.support.model.stored_state import StoredState

# What is done to the servers, and is nobody's act.
INFRASTRUCTURE_OPERATIONS = {"sweep", "lose_locks", "flush"}


@dataclass(frozen=True)
class SlotShape:
    """What a slot is like."""

    capacity: int = 1
    starts_in_minutes: int = 240
    hold_minutes: int = 5
    cutoff_minutes: int = 0
    waitlist_capacity: int = 3
    offer_minutes: int | None = None
    choice_group: str | None = None


class ModelChecker:
    """Acts, one after the other or together, and what must be so after each."""

    def __init__(self, pair: ServicePair, counts: Counter[str] | None = None) -> None:
        pair.reset()
        self.pair, self.model = pair, BookingModel()
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
        """The time at the desks."""
        return self.pair.clock.now

    def new_token(self, letter: str = "t") -> str:
        """A token that nothing has."""
        self._steps += 1
        return f"{letter}{self._steps}"

    def add_slot(self, shape: SlotShape) -> str:
        """A new slot at the desks and in the model."""
        start = self.now + timedelta(minutes=shape.starts_in_minutes)
        draft = SlotDraft(
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
        )
        organiser = self.pair.callers[-1].user_id
        kept = self.pair.runner.run(editing.create(self.pair.services[0], draft, organiser))
        assert isinstance(kept, SlotSaved)
        self.model.slots[kept.slot.id] = ModelSlot(
            id=kept.slot.id,
            capacity=shape.capacity,
            start=start,
            hold_duration=timedelta(minutes=shape.hold_minutes),
            cutoff=timedelta(minutes=shape.cutoff_minutes),
            waitlist_capacity=shape.waitlist_capacity,
            offer_duration=None
            if shape.offer_minutes is None
            else timedelta(minutes=shape.offer_minutes),
            choice_group=shape.choice_group,
        )
        return kept.slot.id

    def run(self, operation: PlannedOperation, service_index: int = 0) -> NormalizedOutcome:
        """One act alone: its answer and all that becomes of it must be as the model says."""
        self.coverage["rule: alone"] += 1
        again = (operation.caller_id, operation.key or "") in self.model.outcomes_by_key
        outcome = self._execute(service_index, operation)
        (answer,) = self._record([operation], [outcome])
        if operation.kind == "sweep":
            self._adopt_matching_model([self.model])
        elif operation.kind not in INFRASTRUCTURE_OPERATIONS:
            foretold = self.model.apply(operation, self.now)
            assert answer == foretold, f"{operation}\n  answered {answer}\n  expected {foretold}"
            slot = getattr(outcome, "slot", None)
            if isinstance(slot, Slot) and not again:
                assert slot.remaining == self.model.slots[slot.id].free_places, outcome
        self.check_invariants()
        return answer

    def run_concurrently(self, operations: list[tuple[int, PlannedOperation]]) -> None:
        """Some acts at once: some order of them explains all answers and what is so afterwards."""

        async def run_all() -> list[Any]:
            return await asyncio.gather(
                *(execute_operation(self.pair, d, a, self.ids_by_token) for d, a in operations)
            )

        self.coverage[f"rule: {len(operations)} together"] += 1
        outcomes = self.pair.runner.run(run_all())
        answers = self._record([act for _, act in operations], outcomes)
        self._find_explanation(
            [
                (act, (self.now,), answer)
                for (_, act), answer in zip(operations, answers, strict=True)
            ]
        )

    def run_with_lost_lock(
        self, slow: PlannedOperation, minutes: float, quick: PlannedOperation
    ) -> None:
        """An act is about to write when its lock is lost; time passes; another act goes first."""
        began = self.now
        self.coverage["rule: late"] += 1

        async def run_both() -> list[Any]:
            writes = self.pair.slot_writer(0)
            reached = asyncio.create_task(writes.pause_next_commit().wait())
            first = asyncio.create_task(execute_operation(self.pair, 0, slow, self.ids_by_token))
            await asyncio.wait([reached, first], return_when=asyncio.FIRST_COMPLETED)
            writes.paused_event = None
            reached.cancel()
            self.pair.delete_locks()
            self.pair.clock.advance(timedelta(minutes=minutes))
            other = await execute_operation(self.pair, 1, quick, self.ids_by_token)
            writes.resume_event.set()
            return [await first, other]

        answers = self._record([slow, quick], self.pair.runner.run(run_both()))
        self._find_explanation(
            [(slow, (began, self.now), answers[0]), (quick, (self.now,), answers[1])]
        )

    def advance_clock(self, minutes: float) -> None:
        """Let time pass. Nobody does anything, and yet holds run out."""
        self.coverage["rule: jump"] += 1
        self.pair.clock.advance(timedelta(minutes=minutes))
        self.check_invariants()

    def _execute(self, service_index: int, operation: PlannedOperation) -> Any:
        return self.pair.runner.run(
            execute_operation(self.pair, service_index, operation, self.ids_by_token)
        )

    def _record(
        self, operations: list[PlannedOperation], outcomes: list[Any]
    ) -> list[NormalizedOutcome]:
        for act, outcome in zip(operations, outcomes, strict=True):
            record_tokens(act, outcome, self.tokens_by_id)
        self.ids_by_token = {token: id_ for id_, token in self.tokens_by_id.items()}
        answers = [normalize_outcome(outcome, self.tokens_by_id, self.pair) for outcome in outcomes]
        for act, outcome, answer in zip(operations, outcomes, answers, strict=True):
            self.coverage[f"{act.kind}: {answer[0]}"] += 1
            if act.key:
                self.sent_with_key.append(act)
                self._keyed_outcomes.append((act, answer, slot_views(outcome)))
            several = [each.booking for each in getattr(outcome, "booked", ())]
            for booking in (*several, getattr(outcome, "booking", None)):
                if booking is not None:
                    self.acknowledged[booking.id] = (booking.slot_id, booking.user_id)
        return answers

    def _find_explanation(self, completed: list[CompletedOperation]) -> None:
        # A refusal may have been told without the lock, and then nothing was settled for it.
        self._execute(1, PlannedOperation("sweep", "", self.pair.organizer.user_id))
        completed = [each for each in completed if each[0].kind not in INFRASTRUCTURE_OPERATIONS]
        explained = list(linearizations(self.model, completed))
        assert explained, f"no order explains {completed}"
        self._adopt_matching_model(explained)
        self.check_invariants()

    def _adopt_matching_model(self, models: list[BookingModel]) -> None:
        """Go on with the one of the models that is true after a sweep."""
        true = StoredState(self.pair, self.tokens_by_id).snapshot()
        after = [each for model in models for each in states_after_sweep(model, self.now)]
        self.model = next((each for each in after if each.snapshot() == true), after[0])

    def check_invariants(self) -> None:
        """Everything that must be so now."""
        self.coverage["checked"] += 1
        self._check_replays()
        truth = StoredState(self.pair, self.tokens_by_id)
        truth.assert_consistent(self.now)
        truth.assert_acknowledged_present(self.acknowledged)
        true, foretold = truth.snapshot(), self.model.snapshot()
        for name, value in true.items():
            assert value == foretold[name], f"{name}\n  is {value}\n  expected {foretold[name]}"
        self.pair.runner.run(self._check_reads())

    def _check_replays(self) -> None:
        """What is answered under a key is answered the same for ever, its slot as it was then."""
        for act, answer, as_seen in self._keyed_outcomes:
            key = (act.caller_id, act.key or "")
            if self.model.outcomes_by_key.get(key) == (act.request, answer):
                assert self._first_slot_views.setdefault(key, as_seen) == as_seen, act
        self._keyed_outcomes.clear()

    async def _check_reads(self) -> None:
        self._steps += 1
        desk = self.pair.services[self._steps % 2]
        viewer = self.pair.callers[self._steps % len(self.pair.callers)]
        ids = [SlotId(slot_id) for slot_id in self.model.slots]
        slots = await queries.find_slots(desk, ids, viewer)
        for slot_id, facts in self.model.slots.items():
            slot = slots[SlotId(slot_id)]
            assert slot.remaining == facts.remaining(self.now), (slot, facts)
            mine, true = slot.booking_of(viewer.user_id), facts.booking_of(viewer.user_id)
            there = true if true and true not in facts.expired_bookings(self.now) else None
            assert (mine and self.tokens_by_id[mine.id]) == (there and there.token), (slot, facts)
        some = ids[self._steps % len(ids)]
        found = await queries.slot_roster(desk, some, 100, None)
        assert found is not None
        facts = self.model.slots[some]
        live = [p.token for p in facts.bookings if p not in facts.expired_bookings(self.now)]
        assert [self.tokens_by_id[booking.id] for booking in found[1].items] == live


def slot_views(outcome: Any) -> object:
    """What an answer tells of its slots besides."""
    booked = getattr(outcome, "booked", (outcome,))
    slots = [getattr(one, name, None) for one in booked for name in ("slot", "old_slot")]
    return [(s.id, s.version, s.remaining, s.waitlist_length) for s in slots if isinstance(s, Slot)]
