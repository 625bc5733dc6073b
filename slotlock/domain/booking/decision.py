"""The input and the decision of a booking rule, and the result of its command."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts
from slotlock.domain.shared.values import value_object

Outcome = TypeVar("Outcome")
Outcome_co = TypeVar("Outcome_co", covariant=True)


@value_object
class LoadedState:
    """The slots and the user contexts that were loaded for a decision."""

    slots: Mapping[SlotId, SlotState]
    users: UserContexts = NO_CONTEXTS

    def with_slots(self, changed: Sequence[SlotState]) -> "LoadedState":
        """Return the state with these slots changed, and their new bookings known to the others."""
        if not changed:
            return self
        slots, users = dict(self.slots), self.users
        for after in changed:
            slot_id = after.slot.id
            before = slots[slot_id]
            slots[slot_id] = after
            if after.slot.depends_on_other_bookings:
                known_ids = {booking.id for booking in before.change.added}
                added = [each for each in after.change.added if each.id not in known_ids]
                users = users.with_bookings(after.slot, added)
        return LoadedState(slots, users)


@value_object
class Decision(Generic[Outcome_co]):
    """The outcome of one request and the slots that it changes.

    An accepted request may change nothing: confirming a confirmed booking is accepted again.
    """

    outcome: Outcome_co
    accepted: bool
    changed_slots: tuple[SlotState, ...] = ()


def accept(outcome: Outcome, *changed_slots: SlotState) -> Decision[Outcome]:
    """Return the decision that grants a request and changes these slots."""
    return Decision(outcome, True, changed_slots)


def refuse(outcome: Outcome) -> Decision[Outcome]:
    """Return the decision that refuses a request and changes nothing."""
    return Decision(outcome, False)


@value_object
class CommandResult(Generic[Outcome_co]):
    """The outcome of a command, and the slots that it names as they were afterwards."""

    outcome: Outcome_co
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)
