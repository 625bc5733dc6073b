"""Random sequences of operations on a slot, as Hypothesis strategies."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import strategies as st

from slotlock.domain.booking.booking import BookingId, MadeAs, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.rules.booking_changes import (
    cancel,
    confirm,
    extend,
)
from slotlock.domain.booking.rules.promotion import promote_waitlist
from slotlock.domain.booking.rules.waitlist import join, leave
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS
from slotlock.domain.slots.editing import cancel_slot, edit
from slotlock.domain.users.user import Caller, Role, UserId
from tests.support.domain.builders import NOW, build_patch, build_slot
from tests.support.domain.decisions import as_written, decide, expire_and_promote

USER_IDS = tuple(UserId(f"{number:024x}") for number in range(6))
ORGANIZER_ID = UserId("e" * 24)
_id_counter = count(1)


def new_id() -> str:
    """Return an unused id that is a valid id of MongoDB."""
    return f"{next(_id_counter):024x}"


@dataclass(frozen=True)
class Step:
    """An operation by or for a user, some minutes after the previous one."""

    action: str
    user_id: UserId
    as_organizer: bool
    minutes: int
    number: int

    def booking_request(self, hold: bool = False) -> BookingRequest:
        """Return a request for a place for this user."""
        by = ORGANIZER_ID if self.as_organizer else self.user_id
        made_as = MadeAs.ORGANIZER if self.as_organizer else None
        return BookingRequest(self.user_id, BookingId(new_id()), by, hold, made_as=made_as)

    def change_request(self, slot: SlotState) -> BookingChangeRequest:
        """Return a request to change this user's booking."""
        booking = slot.booking_of(self.user_id)
        role = Role.ORGANIZER if self.as_organizer else Role.MEMBER
        client = ORGANIZER_ID if self.as_organizer else self.user_id
        return BookingChangeRequest(
            slot.id, booking.id if booking else BookingId("0" * 24), Caller(client, role, "s", NOW)
        )

    def waitlist_entry(self, slot: SlotState) -> WaitlistEntry:
        """Return a waitlist entry of this user."""
        return WaitlistEntry(WaitlistEntryId(new_id()), slot.id, self.user_id, NOW)


ACTIONS: dict[str, Callable[[SlotState, Step, datetime], tuple[SlotState, Any]]] = {
    "book": lambda slot, step, now: decide(book, slot, step.booking_request(), now),
    "hold": lambda slot, step, now: decide(book, slot, step.booking_request(hold=True), now),
    "join": lambda slot, step, now: decide(join, slot, step.waitlist_entry(slot), now),
    "leave": lambda slot, step, now: decide(leave, slot, step.user_id, now),
    "confirm": lambda slot, step, now: decide(confirm, slot, step.change_request(slot), now),
    "extend": lambda slot, step, now: decide(extend, slot, step.change_request(slot), now),
    "cancel": lambda slot, step, now: decide(cancel, slot, step.change_request(slot), now),
    "resize": lambda slot, step, now: decide(edit, slot, build_patch(capacity=step.number), now),
    "rename": lambda slot, step, now: decide(
        edit, slot, build_patch(title=f"$yoga {step.number}"), now
    ),
    "put off": lambda slot, _step, now: decide(
        edit, slot, build_patch(start=slot.slot.start + timedelta(minutes=9)), now
    ),
    "call off": lambda slot, _step, now: decide(cancel_slot, slot, UserId("f" * 24), now),
    "wait and see": lambda slot, _step, _now: (slot, None),
}
# Frequent operations are drawn often; after a cancellation nothing else has an effect.
FREQUENT_ACTIONS = (
    "book",
    "hold",
    "hold",
    "join",
    "join",
    "join",
    "confirm",
    "extend",
    "cancel",
    "cancel",
)
WEIGHTED_ACTIONS = (*FREQUENT_ACTIONS, *(action for action in ACTIONS if action != "call off"))

step_strategy = st.builds(
    Step,
    action=st.sampled_from((*WEIGHTED_ACTIONS, *WEIGHTED_ACTIONS, "call off")),
    user_id=st.sampled_from(USER_IDS),
    as_organizer=st.booleans(),
    minutes=st.sampled_from((0, 0, 0, 1, 4, 12)),
    number=st.integers(1, 4),
)
# Random steps rarely fill a waiting list, where most errors are possible.
WAITLIST_STEPS = tuple(
    Step("hold" if number < 3 else "join", user_id, False, 0, 1)
    for number, user_id in enumerate(USER_IDS)
)


def step_sequences(max_steps: int) -> st.SearchStrategy[list[Step]]:
    """Generate steps on a slot; half of the sequences begin with a waitlist."""
    opening = st.sampled_from((WAITLIST_STEPS, ()))
    return st.tuples(
        opening, st.lists(step_strategy, min_size=max_steps // 2, max_size=max_steps)
    ).map(lambda parts: [*parts[0], *parts[1]])


slot_strategy = st.builds(
    build_slot,
    capacity=st.integers(1, 3),
    start=st.just(NOW + timedelta(minutes=45)),
    hold_minutes=st.integers(1, 20),
    cancel_cutoff_minutes=st.sampled_from((0, 15)),
    waitlist_capacity=st.integers(2, 4),
    waitlist_offer_minutes=st.sampled_from((None, 5)),
)


def apply_step(before: SlotState, step: Step, now: datetime) -> SlotState:
    """Return the slot after one step."""
    after, _ = ACTIONS[step.action](expire_and_promote(before, now), step, now)
    after = promote_waitlist(after, NO_CONTEXTS, now)
    return before if after == before else as_written(before, after, now)


def as_reloaded(slot: SlotState) -> SlotState:
    """Return the slot as the next command loads it, with all its related data."""
    return replace(slot, loaded_waitlist=len(slot.waitlist), change=EMPTY_CHANGE)
