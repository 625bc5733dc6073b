"""Anything that can happen to a slot, in any order: what Hypothesis tells stories of."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import strategies as st

from slotlock.domain.booked import Ask, cancel, confirm, extend
from slotlock.domain.booking import Party, book
from slotlock.domain.bookings import BookingId, WaitId, Waiting
from slotlock.domain.keeping import call_off, edit
from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.settling import serve_line, settle, written
from slotlock.domain.slots import Slot
from slotlock.domain.waitlist import join, leave
from tests.domain.test_booking import NOW, slot

PEOPLE = tuple(UserId(f"{number:024x}") for number in range(6))
ORGANISER = UserId("e" * 24)
_ids = count(1)


def new_id() -> str:
    """An id that nothing has; MongoDB would take it."""
    return f"{next(_ids):024x}"


@dataclass(frozen=True)
class Step:
    """After so many minutes something happens to or for a person."""

    act: str
    person: UserId
    organised: bool
    minutes: int
    number: int

    def party(self, hold: bool = False) -> Party:
        """The person, as somebody who is to have a place."""
        by = ORGANISER if self.organised else self.person
        return Party(self.person, BookingId(new_id()), by, hold, self.organised)

    def ask(self, slot: Slot) -> Ask:
        """The person's booking, as something that somebody asks about."""
        booking = slot.booking_of(self.person)
        role = Role.ORGANIZER if self.organised else Role.MEMBER
        who = ORGANISER if self.organised else self.person
        return Ask(booking.id if booking else BookingId("0" * 24), Caller(who, role, "s", NOW))

    def turn(self, slot: Slot) -> Waiting:
        """The person, as somebody who wants to wait."""
        return Waiting(WaitId(new_id()), slot.id, self.person, NOW)


ACTS: dict[str, Callable[[Slot, Step, datetime], tuple[Slot, Any]]] = {
    "book": lambda slot, step, now: book(slot, step.party(), now),
    "hold": lambda slot, step, now: book(slot, step.party(hold=True), now),
    "join": lambda slot, step, now: join(slot, step.turn(slot), now),
    "leave": lambda slot, step, now: leave(slot, step.person, now),
    "confirm": lambda slot, step, now: confirm(slot, step.ask(slot), now),
    "extend": lambda slot, step, now: extend(slot, step.ask(slot), now),
    "cancel": lambda slot, step, now: cancel(slot, step.ask(slot), now),
    "resize": lambda slot, step, _now: edit(slot, {"capacity": step.number}),
    "rename": lambda slot, step, _now: edit(slot, {"title": f"$yoga {step.number}"}),
    "put off": lambda slot, _step, _now: edit(slot, {"start": slot.start + timedelta(minutes=9)}),
    "call off": lambda slot, _step, now: call_off(slot, UserId("f" * 24), now),
    "wait and see": lambda slot, _step, _now: (slot, None),
}
# What happens often is drawn often; a slot that was called off tells no more stories.
OFTEN = ("book", "hold", "hold", "join", "join", "join", "confirm", "extend", "cancel", "cancel")
USUAL = (*OFTEN, *(act for act in ACTS if act != "call off"))

steps = st.builds(
    Step,
    act=st.sampled_from((*USUAL, *USUAL, "call off")),
    person=st.sampled_from(PEOPLE),
    organised=st.booleans(),
    minutes=st.sampled_from((0, 0, 0, 1, 4, 12)),
    number=st.integers(1, 4),
)
# Left to chance a line would be rare, and with it most of what can go wrong.
LINE = tuple(
    Step("hold" if number < 3 else "join", person, False, 0, 1)
    for number, person in enumerate(PEOPLE)
)


def stories(most: int) -> st.SearchStrategy[list[Step]]:
    """What happens to a slot, in half of the stories once it has a line."""
    opening = st.sampled_from((LINE, ()))
    return st.tuples(opening, st.lists(steps, min_size=most // 2, max_size=most)).map(
        lambda parts: [*parts[0], *parts[1]]
    )


slots = st.builds(
    slot,
    capacity=st.integers(1, 3),
    start=st.just(NOW + timedelta(minutes=45)),
    hold_minutes=st.integers(1, 20),
    cutoff_minutes=st.sampled_from((0, 15)),
    waitlist_capacity=st.integers(2, 4),
    offer_minutes=st.sampled_from((None, 5)),
)


def told(before: Slot, step: Step, now: datetime) -> Slot:
    """The slot after one step, as an act leaves it."""
    after, _ = ACTS[step.act](settle(before, now), step, now)
    after = serve_line(after, now)
    return before if after == before else written(before, after, now)


def looked_at(slot: Slot) -> Slot:
    """The slot as the next act finds it, with everything at hand."""
    return replace(slot, heads=len(slot.waiting), ended=(), left=())
