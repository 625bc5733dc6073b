"""The result of a command."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState

Outcome_co = TypeVar("Outcome_co", covariant=True)


@dataclass(frozen=True, slots=True)
class CommandResult(Generic[Outcome_co]):
    """The outcome of a command, and the slots that it names as they were afterwards."""

    outcome: Outcome_co
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)
