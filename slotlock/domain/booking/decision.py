"""What a booking rule decides."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from slotlock.domain.booking.slot import Slot

Outcome = TypeVar("Outcome")
Outcome_co = TypeVar("Outcome_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Outcome_co]):
    """The outcome of one request and the slots that it changes.

    An accepted request may change nothing: confirming a confirmed booking is accepted again.
    """

    outcome: Outcome_co
    accepted: bool
    changed_slots: tuple[Slot, ...] = ()


def accept(outcome: Outcome, *changed_slots: Slot) -> Decision[Outcome]:
    """Return the decision that grants a request and changes these slots."""
    return Decision(outcome, True, changed_slots)


def refuse(outcome: Outcome) -> Decision[Outcome]:
    """Return the decision that refuses a request and changes nothing."""
    return Decision(outcome, False)
