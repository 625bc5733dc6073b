"""One run of acts at two desks beside the model, with everything compared after each."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from slotlock.desk import keeping, reading
from slotlock.domain.bookings import SlotId
from slotlock.domain.keeping import SlotDraft
from slotlock.domain.outcomes import SlotKept
from slotlock.domain.slots import Slot, SlotKind
from tests.support.acts import Act, Answer
from tests.support.asking import ask, bind, told
from tests.support.desks import House
from tests.support.explaining import Done, futures, swept
from tests.support.foretelling import Model
from tests.support.model import SlotFacts
from tests.support.truth import Truth

# What is done to the servers, and is nobody's act.
MISHAPS = {"sweep", "lose_locks", "flush"}


@dataclass(frozen=True)
class Shape:
    """What a slot is like."""

    capacity: int = 1
    starts_in: int = 240
    hold: int = 5
    cutoff: int = 0
    line: int = 3
    offer: int | None = None
    choice: str | None = None


class Play:
    """Acts, one after the other or together, and what must be so after each."""

    def __init__(self, house: House, counts: Counter[str] | None = None) -> None:
        house.begin_anew()
        self.house, self.model = house, Model()
        self.counts: Counter[str] = Counter() if counts is None else counts
        self.ids: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.history: list[Act] = []
        self._answered: list[tuple[Act, Answer, object]] = []
        self._first_seen: dict[tuple[str, str], object] = {}
        self._steps = 0

    @property
    def now(self) -> datetime:
        """The time at the desks."""
        return self.house.clock.now

    def new_token(self, letter: str = "t") -> str:
        """A token that nothing has."""
        self._steps += 1
        return f"{letter}{self._steps}"

    def add_slot(self, shape: Shape) -> str:
        """A new slot at the desks and in the model."""
        start = self.now + timedelta(minutes=shape.starts_in)
        draft = SlotDraft(
            title="A slot",
            start=start,
            end=start + timedelta(hours=1),
            time_zone="UTC",
            capacity=shape.capacity,
            location=None,
            kind=SlotKind.OTHER,
            published=True,
            hold_minutes=shape.hold,
            cutoff_minutes=shape.cutoff,
            waitlist_capacity=shape.line,
            offer_minutes=shape.offer,
            choice=shape.choice,
        )
        organiser = self.house.people[-1].user_id
        kept = self.house.runner.run(keeping.create(self.house.desks[0], draft, organiser))
        assert isinstance(kept, SlotKept)
        self.model.slots[kept.slot.id] = SlotFacts(
            id=kept.slot.id,
            capacity=shape.capacity,
            start=start,
            hold=timedelta(minutes=shape.hold),
            cutoff=timedelta(minutes=shape.cutoff),
            longest_line=shape.line,
            offer=None if shape.offer is None else timedelta(minutes=shape.offer),
            choice=shape.choice,
        )
        return kept.slot.id

    def do(self, act: Act, desk: int = 0) -> Answer:
        """One act alone: its answer and all that becomes of it must be as the model says."""
        self.counts["rule: alone"] += 1
        again = (act.by, act.key or "") in self.model.kept
        outcome = self._ask(desk, act)
        (answer,) = self._note([act], [outcome])
        if act.verb == "sweep":
            self._adopt([self.model])
        elif act.verb not in MISHAPS:
            foretold = self.model.apply(act, self.now)
            assert answer == foretold, f"{act}\n  answered {answer}\n  expected {foretold}"
            slot = getattr(outcome, "slot", None)
            if isinstance(slot, Slot) and not again:
                assert slot.remaining == self.model.slots[slot.id].free, outcome
        self.check()
        return answer

    def together(self, acts: list[tuple[int, Act]]) -> None:
        """Some acts at once: some order of them explains all answers and what is so afterwards."""

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(ask(self.house, d, a, self.ids) for d, a in acts))

        self.counts[f"rule: {len(acts)} together"] += 1
        outcomes = self.house.runner.run(all_of_them())
        answers = self._note([act for _, act in acts], outcomes)
        self._explain(
            [(act, (self.now,), answer) for (_, act), answer in zip(acts, answers, strict=True)]
        )

    def late(self, slow: Act, minutes: float, quick: Act) -> None:
        """An act is about to write when its lock is lost; time passes; another act goes first."""
        began = self.now
        self.counts["rule: late"] += 1

        async def both() -> list[Any]:
            writes = self.house.writes(0)
            reached = asyncio.create_task(writes.hesitate_once().wait())
            first = asyncio.create_task(ask(self.house, 0, slow, self.ids))
            await asyncio.wait([reached, first], return_when=asyncio.FIRST_COMPLETED)
            writes.reached = None
            reached.cancel()
            self.house.lose_locks()
            self.house.clock.jump(timedelta(minutes=minutes))
            other = await ask(self.house, 1, quick, self.ids)
            writes.go.set()
            return [await first, other]

        answers = self._note([slow, quick], self.house.runner.run(both()))
        self._explain([(slow, (began, self.now), answers[0]), (quick, (self.now,), answers[1])])

    def jump(self, minutes: float) -> None:
        """Let time pass. Nobody does anything, and yet holds run out."""
        self.counts["rule: jump"] += 1
        self.house.clock.jump(timedelta(minutes=minutes))
        self.check()

    def _ask(self, desk: int, act: Act) -> Any:
        return self.house.runner.run(ask(self.house, desk, act, self.ids))

    def _note(self, acts: list[Act], outcomes: list[Any]) -> list[Answer]:
        for act, outcome in zip(acts, outcomes, strict=True):
            bind(act, outcome, self.tokens)
        self.ids = {token: id_ for id_, token in self.tokens.items()}
        answers = [told(outcome, self.tokens, self.house) for outcome in outcomes]
        for act, outcome, answer in zip(acts, outcomes, answers, strict=True):
            self.counts[f"{act.verb}: {answer[0]}"] += 1
            if act.key:
                self.history.append(act)
                self._answered.append((act, answer, seen(outcome)))
            several = [each.booking for each in getattr(outcome, "booked", ())]
            for booking in (*several, getattr(outcome, "booking", None)):
                if booking is not None:
                    self.acknowledged[booking.id] = (booking.slot_id, booking.user_id)
        return answers

    def _explain(self, done: list[Done]) -> None:
        # A refusal may have been told without the lock, and then nothing was settled for it.
        self._ask(1, Act("sweep", "", self.house.organiser.user_id))
        done = [each for each in done if each[0].verb not in MISHAPS]
        explained = list(futures(self.model, done))
        assert explained, f"no order explains {done}"
        self._adopt(explained)
        self.check()

    def _adopt(self, models: list[Model]) -> None:
        """Go on with the one of the models that is true after a sweep."""
        true = Truth(self.house, self.tokens).state()
        after = [each for model in models for each in swept(model, self.now)]
        self.model = next((each for each in after if each.state() == true), after[0])

    def check(self) -> None:
        """Everything that must be so now."""
        self.counts["checked"] += 1
        self._check_sent_again()
        truth = Truth(self.house, self.tokens)
        truth.assert_whole(self.now)
        truth.assert_kept(self.acknowledged)
        true, foretold = truth.state(), self.model.state()
        for name, value in true.items():
            assert value == foretold[name], f"{name}\n  is {value}\n  expected {foretold[name]}"
        self.house.runner.run(self._check_readings())

    def _check_sent_again(self) -> None:
        """What is answered under a key is answered the same for ever, its slot as it was then."""
        for act, answer, as_seen in self._answered:
            key = (act.by, act.key or "")
            if self.model.kept.get(key) == (act.asked, answer):
                assert self._first_seen.setdefault(key, as_seen) == as_seen, act
        self._answered.clear()

    async def _check_readings(self) -> None:
        self._steps += 1
        desk = self.house.desks[self._steps % 2]
        viewer = self.house.people[self._steps % len(self.house.people)]
        ids = [SlotId(slot_id) for slot_id in self.model.slots]
        slots = await reading.find_slots(desk, ids, viewer)
        for slot_id, facts in self.model.slots.items():
            slot = slots[SlotId(slot_id)]
            assert slot.remaining == facts.remaining(self.now), (slot, facts)
            mine, true = slot.booking_of(viewer.user_id), facts.of(viewer.user_id)
            there = true if true and true not in facts.over(self.now) else None
            assert (mine and self.tokens[mine.id]) == (there and there.token), (slot, facts)
        some = ids[self._steps % len(ids)]
        found = await reading.roster(desk, some, 100, None)
        assert found is not None
        facts = self.model.slots[some]
        live = [p.token for p in facts.places if p not in facts.over(self.now)]
        assert [self.tokens[booking.id] for booking in found[1].items] == live


def seen(outcome: Any) -> object:
    """What an answer tells of its slots besides."""
    booked = getattr(outcome, "booked", (outcome,))
    slots = [getattr(one, name, None) for one in booked for name in ("slot", "old_slot")]
    return [(s.id, s.version, s.remaining, s.waiting_count) for s in slots if isinstance(s, Slot)]
